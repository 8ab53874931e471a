"""The kind of thing that an answer holds: a number, a date, a name, a place, a command, a reason, steps."""

from __future__ import annotations

import re
from typing import NamedTuple

from fathom.retrieval.expansion import EVERY, MONTH
from fathom.text.terms import query_terms, terms

_NAMED = r"(?:(?:[A-ZÀ-ÖØ-Þ][\w'’-]+|[A-Z]\.)(?:\s+(?:(?:de|van|von|der|al|bin|of|the)\s+)?[A-ZÀ-ÖØ-Þ][\w.'’-]*)*)"
_ROLE = re.compile(
    r"\b(?:[Tt]he|[Aa]n?|[Ee]ach|[Ee]very|[Oo]ur|[Yy]our|[Tt]heir) (?:[\w-]+ ){0,2}?\*{0,2}"
    r"(?P<role>owner|manager|lead|leader|head|director|chief|captain|president|chair\w*|treasurer|secretary|supervisor|"
    r"editor|author|maintainer|administrator|operator|employer|officer|team|board|committee|members|employees)s?\b"
    r"(?P<behind>(?:\W+\w+){0,6})"
)
_WHO = re.compile(r"\bwho (.+)", re.IGNORECASE)
_MONTHS = rf"(?:{MONTH}|Januar|Februar|März|Mai|Juni|Juli|Oktober|Dezember)"
_DATE = rf"\b(?:1[0-9]|20)\d\ds?\b|\b{_MONTHS}\b|\b\d+(?:st|nd|rd|th) century\b|\b\d{{1,2}}:\d\d\b|\b[A-Z][a-z]+day\b"
_NUMBER = (
    r"(?i)(?<![^\W_])(?<![^\W\d_]-)\d+(?:[.,]\d+)*"  # no "UTF-8"
    r"|\b(?:two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|thirteen|fifteen|twenty|thirty|forty|fifty|"
    r"sixty|seventy|eighty|ninety|hundred|thousand|million|billion|half|once|twice|daily|weekly|monthly|annually|"
    r"zwei|drei|vier|fünf|sechs|sieben|acht|neun|zehn|elf|zwölf|zwanzig|dreißig|hundert|tausend|halbe[nrs]?|einmal|"
    rf"one (?:for|per|in|each|every)|zweimal|jede[mnrs]?|täglich|wöchentlich|monatlich|jährlich|{EVERY})\b"
)
_PLACE = rf"\b(?:in|at|from|near|to|on|of|outside|around|across) (?:the )?(?:\w+ern )?{_NAMED}"
_CONDITION = (
    r"(?i:\b(?:when|whenever|if|before|after|until|once|while|unless|as soon as|"
    r"sobald|wenn|bevor|nachdem|spätestens|innerhalb|binnen)\b)"
)
_TIME = rf"{_DATE}|{_CONDITION}"  # "When does it open?": on a day, or as soon as something is
_REASON = (
    r"(?i)\b(?:because|since|due to|owing to|so that|in order to|as a result|therefore|reasons?|caused?|"
    r"leads? to|led to|results? (?:in|from)|weil|denn|wegen|aufgrund|grund|gründe|ursache|deshalb|daher|sodass|"
    r"parce que|raison|"
    r"(?<!expected )(?<!need )(?<!needs )(?<!have )(?<!has )to (?:avoid|prevent|allow|make|keep|reduce|ensure))\b"
)
_CODE = r"```|`[^`\n]+`|^\s*(?:\$|>>>)\s|(?<!\w)--?\w[\w-]+|\b\w+(?:_\w+)+\b|\w\(\)"

_MECHANISM = (
    r"(?i)\b(?:first|then|next|finally|followed by|(?:start|begin|continu|end)\w* (?:with|from|at|in|through|by)|"
    r"in (?:this|the following) order|each time|for each|by \w+ing|unless|until|otherwise|if|when(?:ever)?)\b"
)

_DECIDED = r"(?i)\b(?:agreed|approved|decided|decision|resolved|consensus|beschlossen|beschluss)\b"
_COMMAND = r"```|^\s*(?:\$|>>>)\s|`[a-z~./$][^`\s:]* [^`\n]+`|(?<!\w)--?[a-z][\w-]+"


class AnswerKind(NamedTuple):
    """The kind of thing that a question asks for."""

    pattern: re.Pattern[str]
    needed: bool  # nothing without it can be the answer

    @property
    def is_thing(self) -> bool:
        """Whether it is told in one way: reasons, conditions and what happens are told in many."""
        return self.pattern.pattern not in (_REASON, _MECHANISM)

    @property
    def is_reason(self) -> bool:
        """Whether it is a reason or a cause."""
        return self.pattern.pattern == _REASON

    @property
    def is_name(self) -> bool:
        """Whether it is a name, which any row of a table may begin with."""
        return self.pattern.pattern == _NAMED

    @property
    def is_number(self) -> bool:
        """Whether it is a number or a quantity."""
        return self.pattern.pattern == _NUMBER


# What is asked, the pattern that an answer to it holds, and whether it must; the first match counts.
_KINDS = [
    (re.compile(asked, re.IGNORECASE), AnswerKind(re.compile(held, re.MULTILINE), needed))
    for asked, held, needed in (
        (r"\bwho(?:m|se)?\b", _NAMED, True),
        (r"\b(?:what|which) (?:person|man|woman|author|actor|actress|director)\b", _NAMED, False),
        (
            r"\b(?:what|which) (?:\w+ )?commands?\b"
            r"|\bwhat (?:do|can|should|must) (?:i|you|we|one) (?:run|type|enter)\b",
            _COMMAND,
            False,
        ),
        (
            r"\b(?:what|which) (?:\w+ )?(?:options?|flags?|settings?|variables?|parameters?|functions?|"
            r"methods?|keys?|attributes?|decorators?|fields?|headers?|signals?|endpoints?|quer(?:y|ies)|expressions?)\b"
            r"|\bwhat (?:do|can|should|must) (?:i|you|we|one) (?:call|set|write|use)\b"
            r"|\bhow (?:do|can|would) (?:i|you|we)\b|\blooks? like\b",
            _CODE,
            False,
        ),
        (
            r"\bhow (?:many|much|long|old|far|large|big|tall|high|deep|wide|fast|heavy|often)\b|\b(?:what|which) "
            r"(?:\w+ )?(?:number|percentage|percent|share|amount|rate|price|cost|size|age|population|speed)\b"
            r"|\bwie(?: ?viele?n?| (?:hoch|lange|oft|alt|groß|weit|schwer|tief|breit|schnell|teuer))\b"
            r"|\bwas kosten?t?\b|\bcombien\b|\bcuánt[oa]s?\b",
            _NUMBER,
            True,
        ),
        (r"\bfor when\b|\bwhen (?:is|are)\b.*\b(?:planned|scheduled|due|held|start|end|take place)", _DATE, False),
        (r"\bwhen (?:is|are|do|does|should|can|may|must|will it)\b|\bwann\b|\bquand\b", _TIME, False),
        (
            r"\bwhen\b|\b(?:what|which) (?:\w+ )?(?:years?|dates?|days?|months?|century|decade|period|time)\b",
            _DATE,
            True,
        ),
        (
            r"\bwhere\b|\b(?:what|which) (?:\w+ )?(?:city|country|place|state|town|county|region|continent|island)\b",
            _PLACE,
            False,
        ),
        (
            r"\bwhat (?:was|were|has been|did) .*\b(?:decide|agree|resolve)d?\b|\bwhat (?:is|was) the decision\b",
            _DECIDED,
            False,
        ),
        (r"\bhow (?:does|do|did|is|are|was|were) (?!i\b|you\b|we\b|one\b|people\b|.*\bdiffer)", _MECHANISM, False),
        (
            r"\bwhy\b|\bhow come\b"
            r"|\bwhat(?:['’]?s| is| was| were| are) (?:the (?:reason|cause|matter|problem)|wrong|broken)\b"
            r"|\bwhat (?:(?:had|has) )?(?:causes?d?|made|makes|set off|triggere?d?s?|led to|went wrong)\b"
            r"|\b(?:warum|wieso|weshalb|weswegen|woran|pourquoi)\b",
            _REASON,
            False,
        ),
        (
            r"^(?:(?:in|of|for|by|to|on|at|from|with) )?which\b|^what (?:is|was) the (?:\w+ )?(?:name|title)\b",
            _NAMED,
            False,
        ),
    )
]
_SMALL_WORDS = """
in at from near to on of outside around across the a an it he she they this these its
"""
_SMALL = frozenset(_SMALL_WORDS.split())


# "Is leave paid out when I quit?" asks for no date; "Do you know when it opens?" does.
_WHEN_CLAUSE = re.compile(
    r"(?P<asked>\W*(?:what|which|how|why|who|where|is|are|was|were|do|does|did|can|could|may|must|will|would|should)\b"
    r".*?)(?<!\bknow)(?<!\bknown)(?<!\bsay)(?<!\bsays)(?<!\btell)(?<!\bme)(?<!\bus)"
    r"(?<!\bfind out)(?<!\bfound out)(?<!\bremember)(?<!\band)"
    r"(?<!\bor)(?<!\bsince)(?<!\buntil)(?<!\bby)(?<!\bexactly)(?<!\bidea)(?<!\bsure)\s+when\b(?!\s*\?*\Z)",
    re.IGNORECASE | re.DOTALL,
)


def kind_of(question: str) -> AnswerKind | None:
    """Return what a sentence with the answer holds, or None where the question does not tell."""
    clause = _WHEN_CLAUSE.match(question)
    text = question[: clause.end("asked")] if clause else question
    return next((kind for asked, kind in _KINDS if asked.search(text)), None)


STEPS = 3  # of what happens, from which a text explains it


def explains(kind: AnswerKind, text: str) -> bool:
    """Whether a text tells several steps of what happens, where that is asked."""
    return kind.pattern.pattern == _MECHANISM and len(kind.pattern.findall(text)) >= STEPS


def has_kind(kind: AnswerKind | None, text: str, question: str) -> bool:
    """Whether a text holds something of a kind that the question does not hold already.

    "Who grants access?" is answered by a name, and by "the owner" where the verb follows.
    """
    if kind is None:
        return True
    known = _SMALL.union(re.findall(r"\w+", question.lower()))
    if any(not known.issuperset(re.findall(r"\w+", found[0].lower())) for found in kind.pattern.finditer(text)):
        return True
    asked = _WHO.search(question) if kind.pattern.pattern == _NAMED else None
    if not asked:
        return False
    verb = next(iter(query_terms(asked[1])), "")
    roles = (found for found in _ROLE.finditer(text) if verb in terms(found["behind"]))
    return any(found["role"] not in known for found in roles)

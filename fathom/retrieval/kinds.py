"""What a sentence with the answer to a question holds: a name, a date, a number, a place or a reason."""

from __future__ import annotations

import re
from typing import NamedTuple

_MONTH = r"(?:January|February|March|April|May|June|July|August|September|October|November|December)"
_NAME = r"(?:(?:[A-ZÀ-ÖØ-Þ][\w'’-]+|[A-Z]\.)(?:\s+(?:(?:de|van|von|der|al|bin|of|the)\s+)?[A-ZÀ-ÖØ-Þ][\w.'’-]*)*)"
_DATE = rf"\b(?:1[0-9]|20)\d\ds?\b|\b{_MONTH}\b|\b\d+(?:st|nd|rd|th) century\b|\b\d{{1,2}}:\d\d\b|\b[A-Z][a-z]+day\b"
_NUMBER = (
    r"\d|\b(?:two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|thirteen|fifteen|twenty|thirty|forty|fifty|"
    r"sixty|seventy|eighty|ninety|hundred|thousand|million|billion|half|once|twice|daily|weekly|monthly|annually)\b"
)
_PLACE = rf"\b(?:in|at|from|near|to|on|of|outside|around|across) (?:the )?(?:\w+ern )?{_NAME}"
_CONDITION = r"\b(?:when|whenever|if|before|after|until|once|while|unless|as soon as)\b"
_REASON = (
    r"\b(?:because|since|due to|owing to|so that|in order to|as a result|therefore|reason|caused?|leads? to|led to|"
    r"results? (?:in|from)|to (?:avoid|prevent|allow|make|keep|reduce|ensure))\b"
)
_CODE = r"```|`[^`\n]+`|^\s*(?:\$|>>>)\s|(?<!\w)--?\w[\w-]+|\b\w+(?:_\w+)+\b|\w\(\)"


class AnswerKind(NamedTuple):
    """The kind of thing that a question asks for."""

    pattern: re.Pattern[str]
    needed: bool  # nothing without it can be the answer


# What is asked, the pattern that an answer to it holds, and whether it must; the first match counts.
_KINDS = [
    (re.compile(asked, re.IGNORECASE), AnswerKind(re.compile(held, re.MULTILINE), needed))
    for asked, held, needed in (
        (r"\bwho(?:m|se)?\b", _NAME, True),
        (r"\b(?:what|which) (?:person|man|woman|author|actor|actress|director)\b", _NAME, False),
        (
            r"\b(?:what|which) (?:\w+ )?(?:commands?|options?|flags?|settings?|variables?|parameters?|functions?|"
            r"methods?|keys?|attributes?|decorators?|fields?|headers?|signals?|endpoints?|quer(?:y|ies)|expressions?)\b"
            r"|\bwhat do i (?:run|type|call|set)\b|\bhow (?:do|can|would) (?:i|you|we)\b|\blooks? like\b",
            _CODE,
            False,
        ),
        (
            r"\bhow (?:many|much|long|old|far|large|big|tall|high|deep|wide|fast|heavy|often)\b|\b(?:what|which) "
            r"(?:\w+ )?(?:number|percentage|percent|share|amount|rate|price|cost|size|age|population|speed)\b",
            _NUMBER,
            True,
        ),
        (r"\bfor when\b|\bwhen (?:is|are)\b.*\b(?:planned|scheduled|due|held|start|end|take place)", _DATE, False),
        (r"\bwhen (?:is|are|do|does|should|can|may|must|will it)\b", _CONDITION, False),
        (r"\bwhen\b|\b(?:what|which) (?:\w+ )?(?:year|date|day|month|century|decade|period|time)\b", _DATE, True),
        (
            r"\bwhere\b|\b(?:what|which) (?:\w+ )?(?:city|country|place|state|town|county|region|continent|island)\b",
            _PLACE,
            False,
        ),
        (r"\bwhy\b|\bwhat (?:is|was|were|are) the (?:reason|cause)|\bwhat causes?d?\b", _REASON, False),
        (
            r"^(?:(?:in|of|for|by|to|on|at|from|with) )?which\b|^what (?:is|was) the (?:\w+ )?(?:name|title)\b",
            _NAME,
            False,
        ),
    )
]
_SMALL_WORDS = """
in at from near to on of outside around across the a an it he she they this these its
"""
_SMALL = frozenset(_SMALL_WORDS.split())


def kind_of(question: str) -> AnswerKind | None:
    """Return what a sentence with the answer holds, or None where the question does not tell."""
    return next((kind for asked, kind in _KINDS if asked.search(question)), None)


def has_kind(kind: AnswerKind | None, text: str, question: str) -> bool:
    """Whether a text holds something of a kind that the question does not hold already."""
    known = _SMALL.union(re.findall(r"\w+", question.lower()))
    found = kind.pattern.finditer(text) if kind else ()
    return kind is None or any(not known.issuperset(re.findall(r"\w+", match[0].lower())) for match in found)

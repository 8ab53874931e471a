"""What a question asks for: its terms with what texts say in their place, the kind of answer, and what defines it."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from fathom.retrieval.dated import newest_words
from fathom.retrieval.expansion import related_terms
from fathom.retrieval.kinds import AnswerKind, kind_of
from fathom.retrieval.quantities import quantities_of, stand_ins_of
from fathom.text.languages import language_of_question
from fathom.text.terms import query_terms, terms

RELATED = 0.4  # weight of a term that texts use in place of the question's
MEASURED = 0.6  # weight of a quantity that stands for a term
LESSER = 0.4  # weight of the "often" of "how often", "difference", "become", and of where to look, as "in Python"
DEFINITION = 1.2  # factor for "Tuples are ..." where tuples are asked for
DEFINED_ONLY = 2.0  # the same where nothing else is asked: "What is a tuple?", or what tells two things apart

_UNSET = re.compile(
    r"\b(?:unless|if|when|where|without) (?:\w+ ){0,3}?(?:nothing|nobody|no one|otherwise|not|configur\w+|specif\w+|"
    r"setting)\b|\bout of the box\b|\bby itself\b",
    re.IGNORECASE,
)
_PRONOUNS = "anybody anyone anything everybody everyone everything nobody nothing somebody someone something"
_INDEFINITE = frozenset(terms(_PRONOUNS))
_ASKING = re.compile(r"\bhow (often|long|many|much|far|old|large|big|tall|fast|deep|wide|high|heavy)\b", re.IGNORECASE)
_ASKS_ELSE = re.compile(r"(?:why|when|where|how|who|which)\b", re.IGNORECASE)
# "How do I get my costs paid back?" and "Why is it so slow?" ask for no quantity; key words alone may.
_ASKS = re.compile(r"\b(?:how|what|which|who|whose|whom|when|where|why)\b|\?\s*\Z", re.IGNORECASE)
_ASKS_QUANTITY = re.compile(
    r"\b(?:how (?!do\b|does\b|did\b|can\b|could\b|should\b|would\b|to\b|is\b|are\b|come\b)\w+|what|which)\b",
    re.IGNORECASE,
)
_ASKS_DEFINITION = re.compile(
    r"\s*what (?:is|are) (?:an? |the )?[\w-]+(?: [\w-]+)?(?: in [\w-]+)?\s*\??\s*\Z", re.IGNORECASE
)
_RELATION = re.compile(r"\b(?:differ\w*|compar\w+|contrast\w*|versus|vs)\b", re.IGNORECASE)
_RELATION_TERMS = frozenset(query_terms("differ difference compare comparison contrast versus relation interaction"))
_GRADED = "cheap|old|young|long|short|larg|bigg|small|high|low|heavi|light|fast|slow|loud|quiet|earli|great|wid|deep"
_COMPARES = re.compile(rf"\b(?:most|least|more|fewer|fewest|versus|vs|later|(?:{_GRADED})(?:er|est))\b", re.IGNORECASE)
_LIGHT = """
become get give happen have make take come go sort kind type good well inside outside within behind across around
actual actually already anyway especially exactly generally likely mainly mostly normally perhaps possible possibly
quite rather really regarding simply still typically usually able aware expect idea know need suppose sure tell tend
think towards understand want wonder somebody someone
"""
_LIGHT_TERMS = frozenset(terms(_LIGHT))
_SETTING = re.compile(r"\A[Hh]ow (?:do|does|did) ([A-Z]\w+)(?= \w+ \w+)|\b(?:in|for|with|using) ([A-Z]\w+)\Z")
_ATTRIBUTE = re.compile(
    r"\b[Ww](?:hat|hich) (?!is |are |was |were |do |does |did |has |have |can |if )((?:[\w-]+ ){0,2}?[\w-]+) "
    r"(?:is|are|was|were|do|does|did|has|have|had|can|may|must|should|will)\b"
    r"|\b[Ww]hat (?:is|are|was|were) (?:the|its|their|his|her) ((?:[\w-]+ ){0,2}?[\w-]+) (?:of|for|in|on)\b"
)
_FORMS = frozenset(
    query_terms("step way kind sort type form part thing purpose point role example idea term word conclusion")
)
_NAME = re.compile(r"(?<=[a-z,] )[A-Z][\w'’-]+(?: [A-Z0-9][\w.'’-]*)*")
_CLAUSE = re.compile(r"(?<=\w) (?:which|that|where|who|whose|whom)\b")
_DEFINITION = re.compile(
    r"(?!(?:If|When|Where|Whether|While|Since|As|For|What|There)\b)(?:In general, |Generally, )?"
    r"(?:[Aa]n? |The (?=[\"“*]))?[\"“*`]*((?:[\w-]+[\"”*`]*\s){1,3}?)"
    r"(?:is|are|was|were|means?|refers? to)\b(?! \w+ed\b)"
)


class Asked(NamedTuple):
    """What a question asks for."""

    wording: str
    weights: Mapping[str, float]  # of its terms
    terms: Mapping[str, Mapping[str, float]]  # each with what texts may say instead and its weight, itself with 1
    pairs: frozenset[tuple[str, str]]
    kind: AnswerKind | None
    definition: float = 1.0  # factor for a definition of what is asked for
    attribute: str = ""  # term of what is asked of something: the colour of "What colour is the lamp?"
    names: Sequence[frozenset[str]] = ()  # of things that an answer is about, each as its terms
    quantities: frozenset[str] = frozenset()  # of which an answer states one, where it is asked "how heavy"


def read_asked(question: str, topic: Sequence[str] | None = None, beside: Mapping[str, float] | None = None) -> Asked:
    """Return what a question asks for.

    `topic` are its terms, if they are not all that are no function words; `beside` has further terms with their
    weights, which count less than 1.
    """
    asked = [term for term in topic or query_terms(question) if term not in _INDEFINITE]
    if _UNSET.search(question):
        asked = list(dict.fromkeys([*asked, "default"]))
    setting = _SETTING.search(question.strip(" ?"))
    lesser = {
        *_RELATION_TERMS,
        *_LIGHT_TERMS,
        *terms(" ".join(newest_words(question))),
        *terms(" ".join(_ASKING.findall(question))),
        *terms(setting[setting.lastindex or 0] if setting else ""),
    }
    lesser = lesser if lesser.issuperset(asked) is False else set()
    weights = {**(beside or {}), **{term: LESSER if term in lesser else 1.0 for term in asked}}
    measured = bool(_ASKS_QUANTITY.search(question)) or not _ASKS.search(question)
    wanted = {term: _instead(term, measured) for term in weights}
    pairs = frozenset(pair for pair in pairwise(terms(question)) if wanted.keys() >= set(pair))
    only = _RELATION.search(question) or _ASKS_DEFINITION.match(question)
    defined = DEFINED_ONLY if only else 1.0 if _ASKS_ELSE.match(question) else DEFINITION
    kind = kind_of(question)
    attribute = "" if kind else _attribute(question, wanted)
    quantities = {found for term in terms(" ".join(_ASKING.findall(question))) for found in quantities_of(term)}
    return Asked(question, weights, wanted, pairs, kind, defined, attribute, _names(question), frozenset(quantities))


def _instead(term: str, measured: bool) -> dict[str, float]:
    """Return what texts may say where a question has a term, each with its weight."""
    stated = dict.fromkeys(stand_ins_of(term) if measured else (), MEASURED)
    return {**dict.fromkeys(related_terms(term), RELATED), **stated, term: 1.0}


def _attribute(question: str, asked: Collection[str]) -> str:
    """Return the term of the noun behind "what", or of the one in "what is the ... of"; nothing if it is no topic."""
    found = _ATTRIBUTE.search(question)
    said = terms(found[1] or found[2]) if found else []
    return said[-1] if said and said[-1] in asked and said[-1] not in _FORMS else ""


def _names(question: str) -> list[frozenset[str]]:
    """Return the names in a question, each as its terms.

    Not those behind "which", "that", "where" or "who" in its middle: an answer is about what they only help to find.
    Not where every word is a capital, or every noun, as in German: nothing tells a name.
    """
    words = question.split()
    if 2 * sum(word[:1].isupper() for word in words) > len(words) or language_of_question(question) not in ("", "en"):
        return []
    about = _CLAUSE.split(question, maxsplit=1)[0]
    return [frozenset(said) for match in _NAME.finditer(about) if (said := terms(match[0]))]


def compares(question: str) -> bool:
    """Whether a question asks which of several things is more, or is the most: no single quotation tells."""
    return bool(_COMPARES.search(re.sub(r"\bat (?:most|least)\b", "", question)))


def defines(text: str, asked: Asked) -> bool:
    """Whether a text opens with a definition of what is asked for."""
    defined = _DEFINITION.match(text)
    subject = terms(defined[1]) if defined else []
    return any(term in said for term in subject for said in asked.terms.values())

"""The kind of answer a question asks for, and whether a text has one that the question does not."""

from __future__ import annotations

import re
from enum import Enum

from fathom.extractive.wording import strip_lead


class Kind(Enum):
    """What an answer must hold."""

    person = "person"
    date = "date"
    condition = "condition"
    number = "number"
    place = "place"
    reason = "reason"
    name = "name"
    any = "any"


_MONTH = r"(?:January|February|March|April|May|June|July|August|September|October|November|December)"
_NAME = r"(?:(?:[A-ZÀ-ÖØ-Þ][\w'’-]+|[A-Z]\.)(?:\s+(?:(?:de|van|von|der|al|bin|of|the)\s+)?[A-ZÀ-ÖØ-Þ][\w.'’-]*)*)"
_NUMBER_WORDS = (
    r"(?:two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|thirteen|fifteen|twenty|thirty|forty|fifty|"
    r"sixty|seventy|eighty|ninety|hundred|thousand|million|billion|half|once|twice|daily|weekly|monthly|annually)"
)
_ASKED = (
    (re.compile(r"\b(?:who|whom|whose)\b|\b(?:what|which) (?:person|man|woman|author|actor|actress|director)\b"),
     Kind.person),
    (re.compile(r"\bhow (?:many|much|long|old|far|large|big|tall|high|deep|wide|fast|heavy|often|big)\b"), Kind.number),
    (re.compile(r"\b(?:what|which) (?:\w+ )?(?:number|percentage|percent|share|amount|rate|price|cost|size|age|"
                r"population|proportion|fraction|temperature|speed|height|length|distance)\b"), Kind.number),
    (re.compile(r"\bwhen (?:is|are|do|does|should|can|may|must|will it)\b"), Kind.condition),
    (re.compile(r"\bwhen\b|\b(?:what|which) (?:\w+ )?(?:year|date|day|month|century|decade|period|time)\b"), Kind.date),
    (re.compile(r"\bwhere\b|\b(?:what|which) (?:\w+ )?(?:city|country|place|state|town|county|region|continent|island|"
                r"river|province|village|street|location|district)\b"), Kind.place),
    (re.compile(r"\bwhy\b|\bwhat (?:is|was|were|are) the (?:reason|cause)|\bwhat (?:caused|causes)\b"), Kind.reason),
    (re.compile(r"^(?:(?:in|of|for|by|to|on|at|from|with) )?which\b|^what (?:is|was) the (?:\w+ )?(?:name|title)\b"),
     Kind.name),
)  # fmt: skip
_HELD = {
    Kind.person: re.compile(_NAME),
    Kind.date: re.compile(
        rf"\b(?:1[0-9]|20)\d\ds?\b|\b{_MONTH}\b|\b\d+(?:st|nd|rd|th) century\b|\b\d{{1,2}}:\d\d\b|"
        r"\b(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day\b"
    ),
    Kind.condition: re.compile(r"\b(?:when|whenever|if|before|after|until|once|while|unless|as soon as)\b", re.I),
    Kind.number: re.compile(rf"\d|\b{_NUMBER_WORDS}\b", re.I),
    Kind.place: re.compile(rf"\b(?:in|at|from|near|to|on|of|outside|around|across) (?:the )?(?:\w+ern )?{_NAME}"),
    Kind.reason: re.compile(
        r"\b(?:because|since|due to|owing to|so that|in order to|as a result|therefore|reason|caused?|leads? to|led to|"
        r"results? (?:in|from)|to (?:avoid|prevent|allow|make|keep|reduce|ensure))\b",
        re.I,
    ),
    Kind.name: re.compile(_NAME),
}

_PLACING = """
in at from near to on of outside around across the a an it he she they this these its
"""
_SMALL = frozenset(_PLACING.split())


def kind_of(question: str) -> Kind:
    """Return the kind of answer a question asks for."""
    plain = strip_lead(question).lower()
    return next((kind for pattern, kind in _ASKED if pattern.search(plain)), Kind.any)


def has_kind(kind: Kind, text: str, question: str) -> bool:
    """Whether a text holds something of a kind that the question does not hold already."""
    if kind is Kind.any:
        return True
    if kind in (Kind.condition, Kind.reason):
        return bool(_HELD[kind].search(text))
    known = set(re.findall(r"\w+", question.lower()))
    return any(not set(re.findall(r"\w+", m[0].lower())) <= known | _SMALL for m in _HELD[kind].finditer(text))

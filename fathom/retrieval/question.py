"""What a question asks for: its terms with weights, its words in order, and the kind of its answer."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from fathom.retrieval.expansion import related_terms
from fathom.retrieval.ranking import Query
from fathom.text.terms import Language, is_cjk, is_particle, query_terms, terms

RELATED = 0.5  # weight of a term that texts use in place of the question's
CHARACTER = 0.3  # weight of a character of CJK writing: words that share one are often related
QUOTED = 2.0  # weight of a term that the question puts in quotation marks

_MONTHS = (
    "January|February|March|April|May|June|July|August|September|October|November|December|"
    "Januar|Februar|März|Mai|Juni|Juli|Oktober|Dezember"
)
_DATE = re.compile(rf"\b(?:1\d{{3}}|20\d\d)\b|\b(?:{_MONTHS})\b|[年月]|\bcentur|\bJahrhundert")
_NUMBER = re.compile(
    r"\d|[一二三四五六七八九十百千万]|\b(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|hundred|thousand|"
    r"million|billion|zwei|drei|vier|fünf|sechs|sieben|acht|neun|zehn|zwölf|hundert|tausend)\b",
    re.IGNORECASE,
)
# Two capitalised words in a row, not counting a sentence's own first capital.
_NAME = re.compile(
    r"(?<=[a-z,;)] )[\"“(]?[A-Z][\w'’.-]+ (?:(?:of|de|van|von|der|the|al|bin) )?[A-Z][\w'’-]+"
    r"|^[A-Z][\w'’.-]+ [A-Z][a-z]"
)
_PLACE = re.compile(r"\b(?:in|at|near|of|from|to|In|At|aus|bei|nach) (?:the )?[A-Z]\w+|[省市县国州区]")
# By what the question says; what was first or is older is settled by dates. The first that matches counts.
_KINDS = (
    (
        re.compile(
            r"\b(?:older|younger|earlier|later|first|longer|more recent|most recent|when|(?:what|which) "
            r"(?:year|date|century|decade|day|month)|date of|wann|welchem jahr)\b|什么时候|哪一?年|何时"
        ),
        _DATE,
    ),
    (
        re.compile(
            r"\bhow (?:many|much|long|old|large|big|far|tall|high|often|fast)\b|\bwhat (?:percent|number|percentage|"
            r"proportion|age|size|amount|is the population)|\bwie ?(?:viele?|lange?|hoch|groß|alt|weit)\b|多少|多大|几"
        ),
        _NUMBER,
    ),
    (re.compile(r"\b(?:who|whom|whose|wer|wem|wen|wessen)\b|谁"), _NAME),
    (
        re.compile(
            r"\b(?:where|(?:what|which) (?:city|country|state|county|place|town|region|continent|province)|place of|"
            r"wo|woher|wohin)\b|哪里|何处|哪个[国城]"
        ),
        _PLACE,
    ),
)
_QUOTED = re.compile(r"[\"“„«]([^\"”“»]{2,200})[\"”“»]")


class Question(NamedTuple):
    """A question as the engine sees it."""

    weights: Mapping[str, float]  # the terms asked for
    related: Mapping[str, float] = {}  # terms that texts may use in their place
    sequence: tuple[str, ...] = ()  # all terms in order: in it, titles are found
    kind: re.Pattern[str] | None = None  # what a sentence with the answer looks like

    @property
    def wanted(self) -> dict[str, float]:
        """All terms with their weights."""
        return {**self.related, **self.weights}


def read_question(query: Query, language: Language = "english") -> Question:
    """Return a question's parts; weighted terms are taken as they are."""
    if not isinstance(query, str):
        return Question(dict(query))
    weights = dict.fromkeys(query_terms(query, language), 1.0)
    for quoted in _QUOTED.findall(query):
        weights |= {term: QUOTED for term in query_terms(quoted, language) if term in weights}
    related: dict[str, float] = {}
    for term, weight in weights.items():
        related |= {other: RELATED * weight for other in related_terms(term) if other not in weights}
        if is_cjk(term):
            related |= {character: CHARACTER for character in term if not is_particle(character)}
    kind = next((held for asked, held in _KINDS if asked.search(query.lower())), None)
    return Question(weights, related, tuple(terms(query, language)), kind)

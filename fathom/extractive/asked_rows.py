"""What a question asks of the rows of a table: the least or greatest, how many, a sum, an average, a bound."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

from fathom.evidence.computed import Value, values_of
from fathom.extractive.comparisons import FOUNDING, Grade, comparison_of, grade_words, superlative_of
from fathom.extractive.questions import BOUND, keywords, topic_terms
from fathom.retrieval.expansion import said_otherwise
from fathom.text.terms import terms

MOST_WORDS = 60  # of a question: a longer one was pasted, and asks nothing of a table
_HOW_MANY = re.compile(r"\b(?:how many|wie ?viele|combien (?:de |d['’]))\s*(?P<what>[\w-]+)", re.IGNORECASE)
_HOW_HIGH = re.compile(r"\b(?:how (?:high|large|big|much)|wie (?:hoch|groß)|quel\w* est)\b", re.IGNORECASE)
_AVERAGE = re.compile(r"\b(?:average|mean|durchschnitt\w*|im schnitt|moyenn?e?s?)\b", re.IGNORECASE)
_SUM = re.compile(r"\b(?:total|sum|altogether|in all|insgesamt|summe|gesamt\w*|somme|au total)\b", re.IGNORECASE)
WHO = re.compile(r"\b(?:who|whom|wer|qui)\b", re.IGNORECASE)
_PEOPLE = frozenset(terms("people persons employees staff workers colleagues members anyone mitarbeiter leute"))
_LISTING = re.compile(r"\A\W*(?:which|who|what|list|name|show|welche\w*|wer|nenne|quel\w*|qui)\b", re.IGNORECASE)
_SHARE = re.compile(
    r"\b(?:percent\w*|per cent|shares?|proportions?|ratios?|median|together|combined|prozent\w*|anteil\w*|zusammen)\b",
    re.IGNORECASE,
)
_SIGNS = {"more": ">", "least": "≥", "less": "<", "most": "≤"}
_ASKING = frozenset(
    terms(
        "name list which what give there number many total sum average mean altogether durchschnitt insgesamt summe "
        "somme moyenne quel quelle quels quelles qui est sont le la les l de des du d combien nenne"
    )
)


def asks_to_compute(question: str) -> bool:
    """Whether a question asks for the least or greatest, a number, a sum, an average or a share, or sets a limit."""
    forms = (_HOW_MANY, _AVERAGE, _SUM, _SHARE, BOUND)
    return bool(superlative_of(question)) or any(form.search(question) for form in forms)


def words_of_superlative(question: str) -> str:
    """Return the words of a question for the greatest or least of a kind, without the superlative; empty for others.

    Where it has no other words ("Which is the cheapest?"), they are what texts call the quantity: price, weight.
    """
    grade = superlative_of(question)
    if not grade or comparison_of(question):
        return ""
    graded = {word.lower() for word in grade_words(question)}
    named = filter(None, [*grade.words, FOUNDING * grade.is_in_time, "name role staff" * bool(WHO.search(question))])
    return " ".join([word for word in keywords(question) if word.lower() not in graded] or named)


def words_for_people(question: str) -> list[str]:
    """Return the words of a question for people, whom a table names without such a word."""
    return [word for word in keywords(question) if is_person(word)]


def is_person(word: str) -> bool:
    """Whether a word stands for people in general."""
    return not _PEOPLE.isdisjoint(terms(word))


class Limit(NamedTuple):
    """A bound that a question sets: "more than 40"."""

    said: str
    sign: str
    value: Value

    @classmethod
    def each(cls, question: str) -> Iterator[Limit]:
        """Yield the only bound of a question, with its unit, and without it: a column's name may have that."""
        found = list(BOUND.finditer(question))
        if len(found) != 1:
            return
        sign = next(sign for name, sign in _SIGNS.items() if found[0][name])
        plain = re.match(r"[\d.,]*\d|\w+", found[0]["limit"])
        for text in dict.fromkeys([found[0]["limit"], plain[0] if plain else ""]):
            if value := next(values_of(text), None):
                yield cls(f"{found[0][0].split(value.text)[0]}{value.text}", sign, value)


class AskedRows(NamedTuple):
    """What a question asks of the rows of a table."""

    question: str
    grade: Grade | None
    counted: str  # what "how many" counts; empty if it is not asked
    is_average: bool
    is_sum: bool
    lists: bool
    limit: Limit | None
    words: Sequence[str]  # its topic's, as written, without those of asking and grading, and the limit
    instead: Mapping[str, Collection[str]]  # the terms that texts have for its phrases

    @classmethod
    def of(cls, question: str, limit: Limit | None = None) -> AskedRows | None:
        """Return what is asked; None for a question that no computing answers."""
        text = question.replace(limit.said, " ") if limit else question
        counted, grade = _HOW_MANY.search(text), superlative_of(text)
        average, summed = bool(_AVERAGE.search(text)), bool(_SUM.search(text))
        listed = bool(limit or _LISTING.search(text))
        if not (grade or counted or average or summed or listed) or len(text.split()) > MOST_WORDS:
            return None
        graded = {word.lower() for word in grade_words(text)}
        topic = set(topic_terms(text)) - _ASKING
        named = keywords(_HOW_HIGH.sub(" ", text)) if summed or average else keywords(text)
        words = [word for word in named if word.lower() not in graded and topic & set(terms(word))]
        what, instead = counted["what"] if counted else "", said_otherwise(text)
        return cls(text, grade, what, average, summed, listed, limit, words, instead)

    @property
    def only_lists(self) -> bool:
        """Whether rows are asked for, and nothing that is counted or computed from them."""
        return not (self.grade or self.counted or self.is_average or self.is_sum or self.limit)

    @property
    def tells_rows(self) -> bool:
        """Whether rows are counted or listed, or dates compared, rather than numbers of a column that is named."""
        return self.grade.is_in_time if self.grade else not (self.is_average or self.is_sum)


def asked_of_rows(question: str) -> list[AskedRows]:
    """Return what a question asks of the rows of a table, with its bound, with its unit and without it."""
    limits: list[Limit | None] = [*Limit.each(question)]
    return [each for limit in limits or [None] if (each := AskedRows.of(question, limit))]

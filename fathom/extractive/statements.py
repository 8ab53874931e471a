"""Statements: what the notes quote, and how much of what is asked each of them says."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from fathom.extractive.wording import topic_terms, with_related
from fathom.models import Note
from fathom.text.terms import query_terms, terms

LESSER = 0.4  # weight of a term that says how things are related, "the difference", or where to look, "in Python"
PAIR = 0.35  # worth of two wanted terms side by side, as a share of what the two are worth
OPENING_TERMS = 4
OPENING = 0.2  # added for a wanted term among the first: the statement is about it
COVERING = 1.5  # exponent: one statement with two wanted terms is worth more than two with one each
USUAL_TERMS = 20  # beyond about this length a statement must hold more to count as much
DEFINITION = 1.2  # factor for "Tuples are ..." where tuples are asked for
DEFINED_APART = 2.0  # the same where two things are told apart: what they are is the difference
_RELATION_TERMS = frozenset(query_terms("differ difference compare comparison contrast versus relation interaction"))
_SETTING = re.compile(r"[Hh]ow (?:do|does|did) ([A-Z]\w+)(?= \w+ \w+)|.*\b(?:in|for|with|using) ([A-Z]\w+)$", re.DOTALL)
_ASKS_ELSE = re.compile(r"(?:why|when|where|how)\b", re.IGNORECASE)
_DEFINITION = re.compile(
    r"(?!(?:If|When|Where|Whether|While|Since|As|For|What|There)\b)(?:In general, |Generally, )?"
    r"(?:[Aa]n? |The (?=[\"“*]))?[\"“*]*((?:[\w-]+[\"”*]*\s){1,3}?)(?:is|are|was|were|means?|refers? to)\b(?! \w+ed\b)"
)


class Statement(NamedTuple):
    """A quotation from a note: one sentence, or a few that belong together, and its sources."""

    text: str
    sources: tuple[str, ...]
    note: int
    order: int


def statements_of(notes: Sequence[Note]) -> list[Statement]:
    """Return what the notes quote, note by note."""
    return [
        Statement(text, sources, number, order)
        for number, note in enumerate(notes)
        for order, (text, sources) in enumerate(note.quotations())
    ]


class Relevance:
    """Scores texts for the terms of a question or heading, among the texts there are.

    What nearly all of them hold tells them apart less than what few do; what none holds tells nothing.
    """

    def __init__(self, wording: str, texts: Sequence[str]) -> None:
        asked = topic_terms(wording)
        relation = _RELATION_TERMS.intersection(asked)
        setting = _SETTING.match(wording.strip(" ?"))
        lesser = relation.union(terms(setting[1] or setting[2]) if setting else ())
        full = set(asked) - lesser or set(asked)
        found = [set(terms(text)) for text in texts]
        frequency = Counter(term for each in found for term in each)
        self._worth = {
            term: weight * math.log(2 + len(found) / (frequency[term] or len(found) or 1))
            for term, weight in with_related({term: 1.0 if term in full else LESSER for term in asked}).items()
        }
        # Beside the share of these, what a lesser or related term adds is a bonus.
        self._total = sum(self._worth[term] for term in asked if term in full) or 1.0
        self._definition = DEFINED_APART if relation else 1.0 if _ASKS_ELSE.match(wording) else DEFINITION
        self._pairs = set(pairwise(term for term in terms(wording) if term in self._worth))

    def share(self, text: str) -> float:
        """Return the share of what is wanted that a text holds, 0 to 1."""
        found = set(terms(text))
        return min(1.0, sum(worth for term, worth in self._worth.items() if term in found) / self._total)

    def score(self, text: str) -> float:
        """Return how much of what is wanted a text says, how directly, for its length."""
        found = terms(text)
        present, opening = set(found), query_terms(text)[:OPENING_TERMS]
        held = sum(worth * (1 + OPENING * (term in opening)) for term, worth in self._worth.items() if term in present)
        together = pairwise(term for term in found if term in self._worth)
        held += sum(PAIR / 2 * (self._worth[a] + self._worth[b]) for a, b in sorted(self._pairs.intersection(together)))
        defined = _DEFINITION.match(text)
        if defined and any(self._worth.get(term, 0) > 0 for term in terms(defined[1])):
            held *= self._definition
        return float((held / self._total) ** COVERING / math.log(math.e + max(1, len(found) / USUAL_TERMS)))

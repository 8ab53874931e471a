"""What each sentence is worth to a question: for its terms, its place and its neighbours."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from fathom.retrieval.analysis import Analysis
from fathom.retrieval.passages import Span
from fathom.text.terms import STOP_WORDS, terms

EARLY = 10  # sentences after which the beginning of a page counts half
DENSE = 30  # words of substance beyond which a sentence is not denser
LITTLE = 0.1  # of a sentence's density counts in any passage
SHORT = 8  # terms: shorter sentences are not cheaper; they say little
_SPOKEN = """
yeah okay uh um mm hmm right think know go get well actually really thing kind sort mean good say said see now yes oh
one two
"""
EMPTY = frozenset(term for word in sorted({*STOP_WORDS, *_SPOKEN.split()}) for term in terms(word))
"""Terms without substance, those of spoken language too."""


class Candidate(NamedTuple):
    """A sentence's worth by term, and for its place and neighbours."""

    span: int  # index of its passage
    terms: dict[str, float]
    place: float
    cost: float  # by which its gain is divided


def candidates(analysis: Analysis) -> list[Candidate]:
    """Return the worth of every sentence, in reading order."""
    own = [sum(part.values()) for part in analysis.parts]
    best = max(own, default=0.0) or 1.0
    weights = analysis.weights
    unit = weights.own / best
    found: list[Candidate] = []
    for number, span in enumerate(analysis.spans.spans):
        for i in range(span.first, span.last):
            place = _place(analysis, i, number, _near(analysis, i, span, own) / best)
            cost = max(SHORT, len(analysis.spans.read[i].terms)) ** weights.length
            worth = {term: value * unit for term, value in analysis.parts[i].items()}
            found.append(Candidate(number, worth, place, cost))
    return found


def _near(analysis: Analysis, i: int, span: Span, own: Sequence[float]) -> float:
    """Return what the neighbours lend to a sentence; those of another passage only on the same page."""
    first, last = (span.first, span.last) if analysis.weights.whole else (0, len(own))
    return sum(
        weight * own[k]
        for distance, weight in enumerate(analysis.weights.window, 1)
        if weight
        for k in (i - distance, i + distance)
        if first <= k < last
    )


def _place(analysis: Analysis, i: int, number: int, near: float) -> float:
    """Return what a sentence is worth for its place and neighbours; `near` is what the neighbours add."""
    weights, passage, span = analysis.weights, analysis.passages[number], analysis.spans.spans[number]
    place = i - span.first
    lead = weights.lead / (1 + place) + (weights.first if place == 0 else 0.0)
    worth = near + passage * (weights.passage + lead + _signs(analysis, i, number, near))
    if weights.early:
        worth += weights.early / (1 + (i - analysis.spans.read.starts[span.text]) / EARLY)
    if weights.density:
        words = {term for term in analysis.spans.read[i].terms if len(term) > 2 and term not in EMPTY}
        worth += weights.density * (passage + LITTLE) * min(DENSE, len(words)) / DENSE
    return worth


def _signs(analysis: Analysis, i: int, number: int, near: float) -> float:
    """Return the worth of the kind of answer asked for, and of naming another relevant passage."""
    worth = 0.0
    weights, kind, read = analysis.weights, analysis.question.kind, analysis.spans.read[i]
    if kind and (analysis.spans.hits[i] or near or weights.whole) and kind.search(read.sentence.text):
        worth += weights.kind
    joined = f" {' '.join(read.terms)} "
    if any(f" {' '.join(phrase)} " in joined for phrase in analysis.links.get(number, ())):
        worth += weights.link
    return worth

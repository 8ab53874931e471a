"""BM25: how well passages answer a query.

Okapi BM25 (Robertson and Zaragoza, 2009) with the titles' terms counted as if they stood in the text twice more, the
simple form of BM25F. Document frequencies come from the passages at hand; there is no index to keep.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from fathom.text.terms import query_terms, terms

__all__ = ["Bm25", "Passage", "Query", "rank_passages", "term_weights"]

K1 = 1.2
B = 0.5
TITLE_WEIGHT = 2

Query = str | Mapping[str, float]
"""A query in words, or its terms with weights."""


class Passage(NamedTuple):
    """A piece of text and the title it stands under."""

    text: str
    title: str = ""


class Bm25:
    """Term statistics of a list of texts."""

    def __init__(self, counts: Iterable[Counter[str]]) -> None:
        self.counts = list(counts)
        self.lengths = [sum(count.values()) for count in self.counts]
        self.mean = sum(self.lengths) / len(self.lengths) if any(self.lengths) else 1.0
        self.frequency = Counter(term for count in self.counts for term in count)

    def idf(self, term: str) -> float:
        """Inverse document frequency, positive also for a term that is in every text."""
        found = self.frequency[term]
        return math.log(1 + (len(self.counts) - found + 0.5) / (found + 0.5))

    def parts(self, index: int, idf: Mapping[str, float]) -> dict[str, float]:
        """Return what each term of the query adds to the score of one text."""
        count = self.counts[index]
        norm = K1 * (1 - B + B * self.lengths[index] / self.mean)
        return {t: w * count[t] * (K1 + 1) / (count[t] + norm) for t, w in idf.items() if t in count}


def term_weights(query: Query) -> dict[str, float]:
    """Return the terms of a query with their weights, 1 each where the query is given in words."""
    return dict.fromkeys(query_terms(query), 1.0) if isinstance(query, str) else dict(query)


def rank_passages(query: Query, passages: Sequence[Passage]) -> list[float]:
    """Return the score of each passage, 0 where it shares no term with the query."""
    counts = []
    for passage in passages:
        count = Counter(terms(passage.text))
        for term in terms(passage.title):
            count[term] += TITLE_WEIGHT
        counts.append(count)
    bm25 = Bm25(counts)
    idf = {term: weight * bm25.idf(term) for term, weight in term_weights(query).items()}
    return [sum(bm25.parts(i, idf).values()) for i in range(len(counts))]

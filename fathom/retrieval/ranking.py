"""BM25: how well passages answer a query.

Okapi BM25 (Robertson and Zaragoza, 2009) with the titles' terms counted as if they stood in the text twice more, the
simple form of BM25F. Document frequencies come from the passages at hand; there is no index to keep.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from fathom.text.terms import query_terms, terms

K1 = 1.2
B = 0.5
TITLE_WEIGHT = 2

Query = str | Mapping[str, float]
"""A query in words, or its terms with weights."""


class Passage(NamedTuple):
    """A piece of text and the title it stands under."""

    text: str
    title: str = ""


def term_weights(query: Query) -> dict[str, float]:
    """Return the terms of a query with their weights, 1 each where the query is given in words."""
    return dict.fromkeys(query_terms(query), 1.0) if isinstance(query, str) else dict(query)


def rank_passages(query: Query, passages: Sequence[Passage]) -> list[float]:
    """Return the score of each passage, 0 where it shares no term with the query."""
    weights = term_weights(query)
    counts: list[Counter[str]] = []
    lengths: list[int] = []
    for passage in passages:
        found, title = terms(passage.text), terms(passage.title)
        counts.append(Counter(term for term in (*found, *title * TITLE_WEIGHT) if term in weights))
        lengths.append(len(found) + TITLE_WEIGHT * len(title))
    mean = sum(lengths) / len(lengths) if any(lengths) else 1.0
    frequency = Counter(term for count in counts for term in count)
    idf = {
        term: weight * math.log(1 + (len(counts) - frequency[term] + 0.5) / (frequency[term] + 0.5))
        for term, weight in weights.items()
    }
    scores = []
    for count, length in zip(counts, lengths, strict=True):
        norm = K1 * (1 - B + B * length / mean)
        scores.append(sum(idf[term] * n * (K1 + 1) / (n + norm) for term, n in count.items()))
    return scores

"""A second look at the passages that a search found: are the query's words near each other, and what else do the best
passages have in common?

Both are small additions to BM25, each of which can only lift a passage. Words that stand together in the query count
once more where they stand near each other in a passage (the unordered window of Metzler and Croft, 2005). Terms that
several of the best passages share count a little although the query does not have them (pseudo-relevance feedback); a
term must be in three of ten, because what only one of them says drags the query away from its topic.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

WINDOW = 8  # terms within which two words are near
NEARNESS = 0.3  # weight of a pair of near words beside a single word
FEEDBACK = 0.1  # weight of the best feedback term beside a word of the query
FEEDBACK_PASSAGES, SHARED_BY, FEEDBACK_TERMS = 10, 3, 30
RARE = 1.4  # of a feedback term: at most one passage in four has it
K1, B = 1.2, 0.75  # as in FTS5
FIELD_GAP = [""] * WINDOW  # no window reaches from one field into the next

Idf = Callable[[Collection[str]], Mapping[str, float]]
"""Inverse document frequencies of terms; a term that no document has is left out."""


class Candidate(NamedTuple):
    """A passage, its BM25 score and its terms in reading order."""

    passage: int
    score: float
    terms: Sequence[str]


def second_look(
    query: Sequence[str], common: Collection[str], candidates: Sequence[Candidate], idf: Idf
) -> dict[int, float]:
    """Return the new scores by passage.

    Args:
        query: topical terms of the query in its order, repeated ones too.
        common: terms of the query that the scores so far leave out.
        candidates: the best passages, the best first.
        idf: looks up how rare terms are.
    """
    mean = sum(len(c.terms) for c in candidates) / max(1, len(candidates)) or 1.0
    norms = [K1 * (1 - B + B * len(c.terms) / mean) for c in candidates]
    pairs = _pair_weights(query, idf)
    left_out = idf(common)
    scores = [
        c.score + _bm25(left_out, c.terms, norm) + NEARNESS * _nearness(pairs, c.terms, norm)
        for c, norm in zip(candidates, norms, strict=True)
    ]
    best = sorted(range(len(candidates)), key=lambda i: -scores[i])[:FEEDBACK_PASSAGES]
    weights = _feedback(set(query), [(scores[i], candidates[i].terms, norms[i]) for i in best], idf)
    return {
        c.passage: score + _bm25(weights, c.terms, norm)
        for c, score, norm in zip(candidates, scores, norms, strict=True)
    }


def _bm25(weights: Mapping[str, float], words: Sequence[str], norm: float) -> float:
    counts = Counter(filter(weights.__contains__, words)) if weights else {}
    return sum(weights[term] * _saturated(count, norm) for term, count in counts.items())


def _saturated(count: int, norm: float) -> float:
    return count * (K1 + 1) / (count + norm) if count else 0.0


def _pair_weights(query: Sequence[str], idf: Idf) -> dict[tuple[str, str], float]:
    """Return the pairs of neighbours in the query that documents have, with their mean rarity."""
    rarity = idf(set(query))
    pairs = dict.fromkeys(pair for pair in pairwise(query) if pair[0] != pair[1])
    return {(a, b): (rarity[a] + rarity[b]) / 2 for a, b in pairs if a in rarity and b in rarity}


def _nearness(pairs: Mapping[tuple[str, str], float], words: Sequence[str], norm: float) -> float:
    """Return the weight of the pairs that stand near each other, each counted as often as its first term does."""
    places: dict[str, list[int]] = {term: [] for pair in pairs for term in pair}
    for place, word in enumerate(words):
        if word in places:
            places[word].append(place)
    total = 0.0
    for (first, second), weight in pairs.items():
        if places[first] and places[second]:
            near = sum(any(-WINDOW < a - b < WINDOW for b in places[second]) for a in places[first])
            total += weight * _saturated(near, norm)
    return total


def _feedback(query: Collection[str], best: Sequence[tuple[float, Sequence[str], float]], idf: Idf) -> dict[str, float]:
    """Return the terms that the best passages share, with their weights."""
    counts = [Counter(words) for _, words, _ in best]
    spread = Counter(term for count in counts for term in count)
    shared = sorted(t for t, n in spread.items() if n >= SHARED_BY and t and t not in query)
    rarity = idf(shared)
    total = sum(score for score, _, _ in best) or 1.0
    value = {
        term: rare
        * sum(score / total * _saturated(c[term], norm) for (score, _, norm), c in zip(best, counts, strict=True))
        for term in shared
        if (rare := rarity.get(term, 0.0)) > RARE
    }
    chosen = sorted(value, key=lambda term: (-value[term], term))[:FEEDBACK_TERMS]
    return {term: FEEDBACK * rarity[term] * value[term] / value[chosen[0]] for term in chosen}

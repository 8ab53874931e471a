"""Choosing sentences: what a reader with little room should see of some texts to answer a query.

A sentence counts for the query terms it holds, for the title it stands under and for what its neighbours hold; a
query term counts less each time a chosen sentence has held it, so that the choice covers the query instead of saying
its commonest word ten times.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable, Sequence
from typing import NamedTuple

from fathom.text.duplicates import DuplicateFilter
from fathom.text.ranking import Bm25, Passage, Query, term_weights
from fathom.text.sentences import Sentence, split_sentences
from fathom.text.terms import terms
from fathom.text.tokens import count_tokens

__all__ = ["Pick", "best_sentences"]

DECAY = 0.75  # of a query term's worth with each chosen sentence that holds it
TITLE = 0.4  # weight of the query terms in the text's title
COVERAGE = 2.0  # weight of the share of the query that a sentence holds
OPENING = 0.3  # added for a query term in a sentence's first characters
OPENING_CHARS = 40
WINDOW = {1: 0.1, 2: 0.05}  # weight of a neighbour's score by its distance


class Pick(NamedTuple):
    """A chosen sentence."""

    text: int  # index of its text
    sentence: Sentence
    score: float  # relevance on its own, before the choice took others into account


class _Candidate(NamedTuple):
    text: int
    sentence: Sentence
    parts: dict[str, float]
    context: float

    def gain(self, worth: dict[str, float]) -> float:
        return sum(part * worth[term] for term, part in self.parts.items()) + self.context


def best_sentences(
    query: Query,
    texts: Sequence[Passage],
    budget_tokens: int,
    *,
    split: Callable[[str], list[Sentence]] = split_sentences,
    usable: Callable[[Sentence], bool] = lambda _sentence: True,
    overhead: int = 1,
) -> list[Pick]:
    """Choose sentences that answer a query within a budget, the best first.

    Args:
        query: in words or as weighted terms.
        texts: what to choose from.
        budget_tokens: tokens all chosen sentences may have together.
        split: cuts a text into what is chosen; sentences, or a few that only make sense together.
        usable: which sentences may be chosen; the others still lend their terms to their neighbours.
        overhead: tokens each sentence takes beyond its own.
    """
    candidates = [c for c in _candidates(term_weights(query), texts, split) if usable(c.sentence)]
    worth = {term: 1.0 for c in candidates for term in c.parts}
    heap = [(-c.gain(worth), i) for i, c in enumerate(candidates)]
    heapq.heapify(heap)
    picks: list[Pick] = []
    seen = DuplicateFilter()
    while heap and budget_tokens > 0:
        before, i = heapq.heappop(heap)
        chosen = candidates[i]
        gain = chosen.gain(worth)
        if heap and -gain > heap[0][0] and -gain > before:  # its terms were taken meanwhile: back in the queue
            heapq.heappush(heap, (-gain, i))
            continue
        cost = count_tokens(chosen.sentence.clean) + overhead
        if cost > budget_tokens or not seen.add(chosen.sentence.clean):
            continue
        budget_tokens -= cost
        picks.append(Pick(chosen.text, chosen.sentence, sum(chosen.parts.values()) + chosen.context))
        for term in chosen.parts:
            worth[term] *= DECAY
    return picks


def _candidates(
    weights: dict[str, float], texts: Sequence[Passage], split: Callable[[str], list[Sentence]]
) -> list[_Candidate]:
    """Return the sentences that have anything to do with the query."""
    texts_split = [split(text.text) for text in texts]
    bm25 = Bm25(Counter(terms(sentence.text)) for sentences in texts_split for sentence in sentences)
    idf = {term: weight * bm25.idf(term) for term, weight in weights.items()}
    total = sum(idf.values()) or 1.0
    candidates: list[_Candidate] = []
    first = 0
    for number, sentences in enumerate(texts_split):
        title = set(terms(texts[number].title))
        parts = [_with_opening(bm25.parts(first + i, idf), sentence) for i, sentence in enumerate(sentences)]
        scores = [sum(part.values()) for part in parts]
        on_title = TITLE * sum(value for term, value in idf.items() if term in title)
        for i, sentence in enumerate(sentences):
            near = sum(
                weight * scores[i + d]
                for step, weight in WINDOW.items()
                for d in (-step, step)
                if 0 <= i + d < len(scores)
            )
            covered = sum(v for t, v in idf.items() if t in parts[i] or t in title) / total
            if scores[i] or near or on_title:
                boost = 1 + COVERAGE * covered
                candidates.append(
                    _Candidate(number, sentence, {t: p * boost for t, p in parts[i].items()}, near + on_title)
                )
        first += len(sentences)
    return candidates


def _with_opening(parts: dict[str, float], sentence: Sentence) -> dict[str, float]:
    """Return the parts with more for a term among the sentence's first: it is what the sentence is about."""
    opening = terms(sentence.text[:OPENING_CHARS]) if parts else ()
    return {term: part * (1 + OPENING * (term in opening)) for term, part in parts.items()}

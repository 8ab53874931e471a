"""What the engine is measured against: the first sentences, BM25 and tf-idf, over sentences and over documents."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from benchmarks import tokens
from benchmarks.metrics import sentences
from fathom.text.terms import query_terms, terms

K1, B = 1.2, 0.75


class Statistics:
    """Term counts of some texts."""

    def __init__(self, texts: Sequence[str]) -> None:
        self.size = len(texts)
        self.postings: dict[str, dict[int, int]] = defaultdict(dict)
        self.lengths: list[int] = []
        for i, text in enumerate(texts):
            counts = Counter(terms(text))
            self.lengths.append(counts.total())
            for term, count in counts.items():
                self.postings[term][i] = count
        self.mean = sum(self.lengths) / max(1, self.size) or 1.0

    def idf(self, term: str) -> float:
        """Return the inverse document frequency."""
        found = len(self.postings.get(term, ()))
        return math.log(1 + (self.size - found + 0.5) / (found + 0.5))

    def bm25(self, query: str) -> list[float]:
        """Score each text by Okapi BM25."""
        scores = [0.0] * self.size
        for term in query_terms(query):
            idf = self.idf(term)
            for i, count in self.postings.get(term, {}).items():
                scores[i] += idf * count * (K1 + 1) / (count + K1 * (1 - B + B * self.lengths[i] / self.mean))
        return scores

    def tf_idf(self, query: str) -> list[float]:
        """Score each text by the cosine of its tf-idf vector and the query's."""
        scores = [0.0] * self.size
        for term in query_terms(query):
            idf = self.idf(term)
            for i, count in self.postings.get(term, {}).items():
                scores[i] += (1 + math.log(count)) * idf**2
        return [score / norm if norm else 0.0 for score, norm in zip(scores, self._norms, strict=True)]

    def lead(self, query: str) -> list[float]:
        """Score each text by its place."""
        return [-float(i) for i in range(self.size)]

    @property
    def _norms(self) -> list[float]:
        if not hasattr(self, "_kept_norms"):
            squares = [0.0] * self.size
            for term, found in self.postings.items():
                idf = self.idf(term)
                for i, count in found.items():
                    squares[i] += ((1 + math.log(count)) * idf) ** 2
            self._kept_norms = [math.sqrt(square) for square in squares]
        return self._kept_norms


SCORERS: Mapping[str, Callable[[Statistics, str], list[float]]] = {
    "lead": Statistics.lead,
    "BM25": Statistics.bm25,
    "tf-idf": Statistics.tf_idf,
}


def compressor(name: str) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """Return a baseline in the form of the engine's `compress` operation."""

    def compress(request: dict[str, Any]) -> dict[str, Any]:
        documents = request["docs"]
        split = [sentences(document["text"]) for document in documents]
        if name == "lead":  # the first sentence of each document, then the second ones, and so on
            flat = sorted((i, d, sentence) for d, group in enumerate(split) for i, sentence in enumerate(group))
            places = {(d, i): -float(rank) for rank, (i, d, _) in enumerate(flat)}
            scores = [places[d, i] for d, group in enumerate(split) for i in range(len(group))]
        else:
            scores = SCORERS[name](Statistics([s for group in split for s in group]), request["question"])
        whole = Statistics([f"{document['title']}\n{document['text']}" for document in documents])
        of_documents = SCORERS[name](whole, request["question"])
        return {
            "note": _packed([s for group in split for s in group], scores, request["budget_tokens"]),
            "score": {d["doc_id"]: score for d, score in zip(documents, of_documents, strict=True)},
        }

    return compress


def _packed(candidates: Sequence[str], scores: Sequence[float], budget: int) -> str:
    """Return the best sentences that fit, in reading order, a line each."""
    chosen: list[int] = []
    left = budget
    for i in sorted(range(len(candidates)), key=lambda i: (-scores[i], i)):
        if (size := tokens.count(candidates[i]) + 1) <= left:
            chosen.append(i)
            left -= size
        if left < 8:
            break
    return "\n".join(candidates[i] for i in sorted(chosen))


def overlap(claim: str, references: Sequence[str]) -> float:
    """Return the share of a claim's topical terms that any reference has: the baseline for support."""
    wanted = query_terms(claim)
    there = {term for reference in references for term in terms(reference)}
    return sum(term in there for term in wanted) / max(1, len(wanted))

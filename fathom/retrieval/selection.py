"""Choosing sentences: what a reader with little room should see of some texts to answer a query.

A sentence counts for the query terms it holds and for its surroundings: its passage, its neighbours,
its place. A term and a passage count less each time a chosen sentence has served them, so that the choice covers the
query instead of saying its commonest word ten times.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from typing import NamedTuple

from fathom.retrieval.analysis import Analysis, analyse
from fathom.retrieval.duplicates import DuplicateFilter
from fathom.retrieval.question import Question
from fathom.retrieval.ranking import Passage, Query
from fathom.retrieval.scoring import Candidate, candidates
from fathom.retrieval.weights import Weights
from fathom.text.parsed import Split
from fathom.text.sentences import Sentence, split_sentences
from fathom.text.tokens import count_tokens

POOL = 200  # sentences considered beyond those that could fit: keeps the choice linear in the input
MOST_MISSES = 300  # sentences in a row that do not fit or repeat others: there is no room left to fill
LEAST_ROOM = 4  # tokens: no sentence is shorter
USEFUL = 0.15  # of the best text's relevance; on public data 92-100 % of the texts that support an answer have it


class Pick(NamedTuple):
    """A chosen sentence."""

    text: int  # index of its text
    sentence: Sentence
    score: float  # its gain when it was chosen
    held: float  # of that, what the query's own terms are worth before the choice took others into account


def quotable(sentence: Sentence) -> bool:
    """Whether a sentence says something: a heading or a rule does not."""
    return sentence.kind not in ("heading", "rule")


class Reader:
    """Texts read with a question in mind.

    `split` cuts a text into what is chosen: sentences, or a few that only make sense together. The weights of the signs
    of relevance are by default those for the shape of the texts.
    """

    def __init__(
        self,
        query: Query | Question,
        texts: Sequence[Passage],
        *,
        split: Split = split_sentences,
        weights: Weights | None = None,
    ) -> None:
        self._analysis = analyse(query, texts, split, weights)
        self.scores = [0.0] * len(texts)
        """How relevant each text is beside the others, from 0 to 1: the score of its best passage."""
        for span, score in zip(self._analysis.spans.spans, self._analysis.passages, strict=True):
            self.scores[span.text] = max(self.scores[span.text], score)

    @property
    def useful(self) -> list[bool]:
        """Whether each text is worth a note; fixed so that hardly any text that supports an answer is refused."""
        return [score >= USEFUL for score in self.scores]

    def select(
        self,
        budget_tokens: int,
        *,
        usable: Callable[[Sentence], bool] = quotable,
        overhead: int = 1,
        count: Callable[[str], int] = count_tokens,
    ) -> list[Pick]:
        """Choose sentences within a budget, the best first; each takes `overhead` tokens beyond its own.

        Sentences that are not usable still lend their terms to their neighbours.
        """
        found = candidates(self._analysis)
        gains = _Gains(self._analysis)
        read = self._analysis.spans.read
        ranked = ((-gains.of(c), i) for i, c in enumerate(found) if usable(read[i].sentence))
        heap = heapq.nsmallest(POOL + max(0, budget_tokens) // LEAST_ROOM, ranked)  # sorted, and so a heap
        picks: list[Pick] = []
        seen, same, misses = DuplicateFilter(), set[str](), 0
        while heap and budget_tokens >= LEAST_ROOM and misses < MOST_MISSES:
            before, i = heapq.heappop(heap)
            candidate, sentence = found[i], read[i].sentence
            gain = gains.of(candidate)
            if heap and -gain > max(before, heap[0][0]):  # it lost meanwhile: back in the queue
                heapq.heappush(heap, (-gain, i))
                continue
            if sentence.text in same:
                continue
            same.add(sentence.text)
            cost = count(sentence.clean) + overhead
            if cost > budget_tokens or not seen.add(sentence.clean):
                misses += 1
                continue
            misses = 0
            budget_tokens -= cost
            gains.take(candidate)
            text = self._analysis.spans.spans[candidate.span].text
            picks.append(Pick(text, sentence, gain, sum(candidate.terms.values())))
        return picks


class _Gains:
    """What a sentence adds to those chosen: a term and a passage count less each time they have been served."""

    def __init__(self, analysis: Analysis) -> None:
        self._weights = analysis.weights
        self._terms = dict.fromkeys([*analysis.question.related, *analysis.question.weights], 1.0)
        self._passages = [1.0] * len(analysis.spans.spans)

    def of(self, candidate: Candidate) -> float:
        """Return the gain, rounded so that no machine's last digit decides between two sentences."""
        held = sum(value * self._terms[term] for term, value in candidate.terms.items())
        return round((held + candidate.place * self._passages[candidate.span]) / candidate.cost, 9)

    def take(self, candidate: Candidate) -> None:
        """Let what a chosen sentence says count less from now on."""
        for term in candidate.terms:
            self._terms[term] *= self._weights.decay
        self._passages[candidate.span] *= self._weights.passage_decay

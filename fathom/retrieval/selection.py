"""Choosing sentences: what a reader with little room should see of some texts to answer a query.

A sentence counts for the query terms it holds and for its surroundings: its passage, its neighbours, its place. A
term and a passage count less each time a chosen sentence has served them, so that the choice covers the query instead
of saying its commonest word ten times.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from fathom.retrieval.duplicates import DuplicateFilter
from fathom.retrieval.passages import (
    RELATED,
    AllRead,
    Links,
    PassageSpan,
    ReadQuestion,
    Spans,
    Weights,
    rank_spans,
    read_question,
    spans_of,
    weights_for,
)
from fathom.retrieval.ranking import Passage, Query, bm25_parts, inverse_document_frequency
from fathom.text.parsed import ParsedText, Split, parse
from fathom.text.sentences import Sentence, split_sentences
from fathom.text.terms import STOP_WORDS, is_cjk, language_of, terms
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
        query: Query | ReadQuestion,
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


def _near(analysis: Analysis, i: int, span: PassageSpan, own: Sequence[float]) -> float:
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


COMPOUND = 5  # letters a German word must have to be looked for inside others
LANGUAGE_TEXTS = 10  # that are asked for their language


@dataclass(frozen=True, eq=False)
class Analysis:
    """What is known of some texts before any sentence is chosen."""

    weights: Weights
    question: ReadQuestion
    spans: Spans
    passages: Sequence[float]  # relevance of each passage beside the others, from 0 to 1
    links: Links

    @cached_property
    def parts(self) -> Sequence[Mapping[str, float]]:
        """What each of the question's terms adds to the BM25 score of each sentence."""
        idf = inverse_document_frequency(self.question.wanted, self.spans.hits)
        return bm25_parts(idf, self.spans.hits, self.spans.read.lengths, self.weights.brevity)


def analyse(
    query: Query | ReadQuestion, texts: Sequence[Passage], split: Split, weights: Weights | None = None
) -> Analysis:
    """Read texts with a question in mind; see `fathom.retrieval.selection.Reader` for the arguments."""
    weights = weights or weights_for([text.text for text in texts])
    known = [query, *(text.text for text in texts[:LANGUAGE_TEXTS])] if isinstance(query, str) else []
    language = language_of(known)  # English if the terms are made already
    question = query if isinstance(query, ReadQuestion) else read_question(query, language)
    parsed = [parse(text.text, language, split) for text in texts]
    if language == "german":
        question = _with_compounds(question, parsed)
    hits = [hit for text in parsed for hit in _hits(question, text)]
    own = spans_of(texts, parsed, weights, language)
    spans = Spans(own, AllRead(parsed), hits, [text.title for text in texts], language)
    passages, links = rank_spans(question, spans, weights)
    return Analysis(weights, question, spans, passages, links)


def _hits(question: ReadQuestion, text: ParsedText) -> list[dict[str, int]]:
    """Return each sentence's counts of the question's terms; of CJK writing also those of single characters."""
    hits: list[dict[str, int]] = [{} for _ in text.sentences]
    for term in question.wanted:
        for number in text.occurrences.get(term, ()):
            hits[number][term] = hits[number].get(term, 0) + 1
    characters = frozenset(term for term in question.related if len(term) == 1 and is_cjk(term))
    if characters:
        for hit, sentence in zip(hits, text.sentences, strict=True):
            hit |= Counter(character for character in sentence.text if character in characters)
    return hits


def _with_compounds(question: ReadQuestion, texts: Sequence[ParsedText]) -> ReadQuestion:
    """Return the question with the texts' compounds of its words: "Einwohner" is also in "Einwohnerzahl"."""
    asked = [term for term in question.weights if len(term) >= COMPOUND]
    words = {term for text in texts for term in text.occurrences if len(term) > COMPOUND} - {*question.weights}
    compounds = {word: RELATED for word in sorted(words) if any(term in word for term in asked)}
    return question._replace(related=compounds | dict(question.related))

"""Texts read with a question in mind: their sentences, passages, and where the question's terms occur."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from fathom.retrieval.passages import AllRead, Links, Spans, rank_spans, spans_of
from fathom.retrieval.question import RELATED, Question, read_question
from fathom.retrieval.ranking import Passage, Query, bm25_parts, inverse_document_frequency
from fathom.retrieval.weights import Weights, weights_for
from fathom.text.parsed import ParsedText, Split, parse
from fathom.text.terms import is_cjk, language_of

COMPOUND = 5  # letters a German word must have to be looked for inside others
LANGUAGE_TEXTS = 10  # that are asked for their language


@dataclass(frozen=True, eq=False)
class Analysis:
    """What is known of some texts before any sentence is chosen."""

    weights: Weights
    question: Question
    spans: Spans
    passages: Sequence[float]  # relevance of each passage beside the others, from 0 to 1
    links: Links

    @cached_property
    def parts(self) -> Sequence[Mapping[str, float]]:
        """What each of the question's terms adds to the BM25 score of each sentence."""
        idf = inverse_document_frequency(self.question.wanted, self.spans.hits)
        return bm25_parts(idf, self.spans.hits, self.spans.read.lengths, self.weights.brevity)


def analyse(
    query: Query | Question, texts: Sequence[Passage], split: Split, weights: Weights | None = None
) -> Analysis:
    """Read texts with a question in mind; see `fathom.retrieval.selection.Reader` for the arguments."""
    weights = weights or weights_for([text.text for text in texts])
    known = [query, *(text.text for text in texts[:LANGUAGE_TEXTS])] if isinstance(query, str) else []
    language = language_of(known)  # English if the terms are made already
    question = query if isinstance(query, Question) else read_question(query, language)
    parsed = [parse(text.text, language, split) for text in texts]
    if language == "german":
        question = _with_compounds(question, parsed)
    hits = [hit for text in parsed for hit in _hits(question, text)]
    own = spans_of(texts, parsed, weights, language)
    spans = Spans(own, AllRead(parsed), hits, [text.title for text in texts], language)
    passages, links = rank_spans(question, spans, weights)
    return Analysis(weights, question, spans, passages, links)


def _hits(question: Question, text: ParsedText) -> list[dict[str, int]]:
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


def _with_compounds(question: Question, texts: Sequence[ParsedText]) -> Question:
    """Return the question with the texts' compounds of its words: "Einwohner" is also in "Einwohnerzahl"."""
    asked = [term for term in question.weights if len(term) >= COMPOUND]
    words = {term for text in texts for term in text.occurrences if len(term) > COMPOUND} - {*question.weights}
    compounds = {word: RELATED for word in sorted(words) if any(term in word for term in asked)}
    return question._replace(related=compounds | dict(question.related))

"""Texts read with a question in mind: their sentences, passages, and where the question's terms occur."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from fathom.retrieval.passages import Links, Read, Spans, rank_spans, spans_of
from fathom.retrieval.question import RELATED, Question, read_question
from fathom.retrieval.ranking import Passage, Query, bm25_parts, inverse_document_frequency
from fathom.retrieval.weights import Weights, weights_for
from fathom.text.sentences import Sentence
from fathom.text.terms import is_cjk, language_of, terms

COMPOUND = 5  # letters a German word must have to be looked for inside others
LANGUAGE_TEXTS = 10  # that are asked for their language


class Analysis(NamedTuple):
    """What is known of some texts before any sentence is chosen."""

    weights: Weights
    question: Question
    spans: Spans
    starts: Sequence[int]  # of each text, its first sentence
    passages: Sequence[float]  # relevance of each passage beside the others, from 0 to 1
    links: Links
    parts: Sequence[Mapping[str, float]]  # what each of the question's terms adds to the BM25 score of each sentence


def analyse(
    query: Query | Question,
    texts: Sequence[Passage],
    split: Callable[[str], list[Sentence]],
    weights: Weights | None = None,
) -> Analysis:
    """Read texts with a question in mind; see `fathom.retrieval.selection.Reader` for the arguments."""
    weights = weights or weights_for([text.text for text in texts])
    known = [query, *(text.text for text in texts[:LANGUAGE_TEXTS])] if isinstance(query, str) else []
    language = language_of(known)  # English if the terms are made already
    question = query if isinstance(query, Question) else read_question(query, language)
    by_text = [[Read(s, terms(s.text, language)) for s in split(text.text)] for text in texts]
    read = [sentence for sentences in by_text for sentence in sentences]
    if language == "german":
        question = _with_compounds(question, read)
    hits = _hits(question, read)
    spans = Spans(spans_of(texts, by_text, weights, language), read, hits, [text.title for text in texts], language)
    passages, links = rank_spans(question, spans, weights)
    starts = list(itertools.accumulate((len(sentences) for sentences in by_text), initial=0))
    idf = inverse_document_frequency(question.wanted, hits)
    parts = bm25_parts(idf, hits, [len(sentence.terms) for sentence in read])
    return Analysis(weights, question, spans, starts, passages, links, parts)


def _hits(question: Question, read: Sequence[Read]) -> list[Mapping[str, int]]:
    """Return each sentence's counts of the question's terms; of CJK writing also those of single characters."""
    wanted = question.wanted
    characters = frozenset(term for term in question.related if len(term) == 1 and is_cjk(term))
    hits: list[Mapping[str, int]] = []
    for sentence, found in read:
        held = [term for term in found if term in wanted]
        if characters:
            held += [character for character in sentence.text if character in characters]
        hits.append(Counter(held))
    return hits


def _with_compounds(question: Question, read: Sequence[Read]) -> Question:
    """Return the question with the texts' compounds of its words: "Einwohner" is also in "Einwohnerzahl"."""
    asked = [term for term in question.weights if len(term) >= COMPOUND]
    words = {term for _, found in read for term in found if len(term) > COMPOUND} - {*question.weights}
    compounds = {word: RELATED for word in sorted(words) if any(term in word for term in asked)}
    return question._replace(related=compounds | dict(question.related))

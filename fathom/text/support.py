"""Lexical support: how much of a claim some texts say, in words that can be compared.

It sees missing words, names and numbers; it cannot see that a text says the opposite.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence

from fathom.text.sentences import split_sentences
from fathom.text.stopwords import STOP_WORDS
from fathom.text.terms import query_terms, terms

__all__ = ["support"]

SENTENCES = 3  # most sentences of a text that may support one claim together
PAIRS = 0.25  # weight of neighbouring terms found as neighbours
NUMBER, NAME = 2.0, 1.6  # weights of a claim's numbers and names; other words have 1
_NAME = re.compile(r"(?<![.!?]\s)(?<!^)\b[A-Z][\w'’-]+")


def support(claim: str, references: Sequence[str]) -> float:
    """Return how far the best window of the references covers a claim, from 0 to 1.

    The window is up to three sentences long. Covered is a term that the window holds; numbers and names weigh more
    than other words, function words nothing. A quarter of the score is for pairs of terms in the claim's order.
    """
    weights = _weights(claim)
    if not weights:
        return 0.0
    pairs = _pairs(_sequence(claim))
    total = sum(weights.values())
    best = 0.0
    for words in _windows(references):
        held = set(words)
        covered = sum(weight for term, weight in weights.items() if term in held) / total
        if covered <= best:
            continue
        together = len(pairs & _pairs(words)) / len(pairs) if pairs else covered
        best = max(best, (1 - PAIRS) * covered + PAIRS * together)
    return min(best, 1.0)


def _sequence(text: str) -> list[str]:
    """Return the topical terms of a text in reading order, repeated ones too."""
    topical = set(query_terms(text))
    return [term for term in terms(text) if term in topical]


def _weights(claim: str) -> dict[str, float]:
    names = {t for name in _NAME.findall(claim) if name.lower() not in STOP_WORDS for t in terms(name)}
    return {t: NUMBER if t[0].isdigit() else NAME if t in names else 1.0 for t in query_terms(claim)}


def _windows(references: Sequence[str]) -> Iterator[list[str]]:
    """Yield the topical terms of every run of one to three sentences."""
    for reference in references:
        sentences = [_sequence(sentence.text) for sentence in split_sentences(reference)]
        for start in range(len(sentences)):
            window: list[str] = []
            for sentence in sentences[start : start + SENTENCES]:
                window = window + sentence
                yield window


def _pairs(words: list[str]) -> set[tuple[str, str]]:
    return set(itertools.pairwise(words))

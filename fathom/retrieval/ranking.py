"""BM25: how well passages answer a query; and the title under which a text is ranked.

Okapi BM25 (Robertson and Zaragoza, 2009) with the titles' terms counted as if the text had them twice more, the
simple form of BM25F. Document frequencies come from the passages at hand; there is no index to keep.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

from fathom.models import SourceText
from fathom.text.terms import query_terms, terms
from fathom.text.urls import ENDING

K1 = 1.2
B = 0.5  # how far a text that is longer than the others is worth less
TITLE_WEIGHT = 2

Query = str | Mapping[str, float]  # in words, or its terms with weights


class Passage(NamedTuple):
    """A piece of text and its title."""

    text: str
    title: str = ""


def rank_passages(query: Query, passages: Sequence[Passage]) -> list[float]:
    """Return the score of each passage, 0 where it shares no term with the query."""
    weights = dict.fromkeys(query_terms(query), 1.0) if isinstance(query, str) else dict(query)
    counts: list[Counter[str]] = []
    lengths: list[int] = []
    for passage in passages:
        found, title = terms(passage.text), terms(passage.title)
        counts.append(Counter(term for term in (*found, *title * TITLE_WEIGHT) if term in weights))
        lengths.append(len(found) + TITLE_WEIGHT * len(title))
    return bm25(weights, counts, lengths)


def bm25(weights: Mapping[str, float], counts: Sequence[Mapping[str, int]], lengths: Sequence[int]) -> list[float]:
    """Return the score of each text for weighted terms, from its counts of them and its number of terms."""
    frequency = Counter(term for count in counts for term in count)
    idf = {
        term: weight * math.log(1 + (len(counts) - frequency[term] + 0.5) / (frequency[term] + 0.5))
        for term, weight in weights.items()
    }
    mean = sum(lengths) / max(1, len(lengths)) or 1.0
    scores: list[float] = []
    for count, length in zip(counts, lengths, strict=True):
        norm = K1 * (1 - B + B * length / mean)
        scores.append(sum(idf[term] * n * (K1 + 1) / (n + norm) for term, n in count.items()))
    return scores


def count_in(numbers: Sequence[int], sentences: range) -> int:
    """Return how many of some numbers, in order, are of a run of sentences."""
    return bisect_left(numbers, sentences.stop) - bisect_left(numbers, sentences.start)


_BETWEEN_WORDS = re.compile(r"[\W_]+")
_ZEROS = re.compile(r"(?<![0-9])0+(?=[0-9]{2})")  # that fill up a number: pep-0572


def titled(text: SourceText) -> Passage:
    """Return a text with its title and the words of its path."""
    return Passage(text.text, f"{text.title} {path_words(text.url)}")


def path_words(url: str) -> str:
    """Return the words of an address behind the host or the folder: "docs:notes/2024/leave.md" is "2024 leave"."""
    parts = urlsplit(url)
    path = parts.path if parts.netloc else parts.path.partition("/")[2]
    return _ZEROS.sub("", _BETWEEN_WORDS.sub(" ", ENDING.sub("", unquote(path)))).strip()

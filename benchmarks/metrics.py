"""What a note keeps, how well passages are told apart, how good a ranking is, and how far a confidence holds.

Texts are compared as in SQuAD: lowercase, without punctuation and articles. An answer is kept when the note holds it
word for word or, if it has six words or more, 80 % of its word pairs; a sentence, when some sentence of the note holds
80 % of its content words.
"""

from __future__ import annotations

import functools
import math
import re
import string
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby, pairwise

KEPT = 0.8  # share of a long answer or a sentence that counts as the whole
LONG_ANSWER = 6  # words
_FUNCTION_WORDS = """
a about an and are as at be been being by can could did do does for from had has have he her him his how in into is it
its may might not of on or over s she should than that the their then there these they this those to was were what when
where which who whom whose why will with would also
"""
_STOP_WORDS = frozenset(_FUNCTION_WORDS.split())
_PUNCTUATION = dict.fromkeys(map(ord, string.punctuation + "–—’‘“”。，、"), " ")
_ARTICLES = re.compile(r"\b(?:a|an|the)\b")
_HAN = re.compile("([\u4e00-\u9fff])")
_MARKUP = re.compile(r"\s*</?(?:P|Tr|Td|Th|Table|Li|Ul|Ol|Dl|Dd|Dt|H\d)(?:_[^>]*)?>\s*")
_BOUNDARY = re.compile(r"(?<=[.!?])[\"”'’)\]]*\s+(?=[\"“'(\[]?[A-Z0-9À-Þ])|(?<=[。！？])")
_ABBREVIATED = re.compile(
    r"\b(?:[A-Z]|[Ff]ig|e\.g|i\.e|et al|vs|cf|Dr|Mrs?|Ms|Prof|St|No|Inc|Ltd|Corp?|Jr|Sr|approx|ca)\.\Z"
)
_LONG_SENTENCE, _PART = 90, 60  # words
_LONG_WORD, _WORD_PART = 400, 200  # characters


def normalized(text: str) -> str:
    """Return the words that are compared, separated by single spaces."""
    plain = unicodedata.normalize("NFKC", text).lower().translate(_PUNCTUATION)
    return " ".join(_HAN.sub(r" \1 ", _ARTICLES.sub(" ", plain)).split())


def holds(text: str, answer: str) -> bool:
    """Whether a normalized text holds an answer."""
    wanted = normalized(answer)
    if not wanted or f" {wanted} " in f" {text} ":
        return bool(wanted)
    words = wanted.split()
    if len(words) < LONG_ANSWER:
        return False
    there = set(pairwise(text.split()))
    pairs = list(pairwise(words))
    return sum(pair in there for pair in pairs) / len(pairs) >= KEPT


@functools.lru_cache(maxsize=100_000)
def content_words(text: str) -> frozenset[str]:
    """Return the normalized words of a text that are no function words."""
    return frozenset(normalized(text).split()) - _STOP_WORDS


def keeps_sentence(note: Iterable[frozenset[str]], sentence: str) -> bool:
    """Whether one of a note's sentences, given by its content words, says what the sentence says."""
    wanted = content_words(sentence)
    return any(len(wanted & words) / len(wanted) >= KEPT for words in note)


def sentences(text: str) -> list[str]:
    """Split a text for measuring. It is plain on purpose: the measure must not depend on the engine it measures."""
    return [part for line in _MARKUP.sub("\n", text).split("\n") for whole in _joined(line) for part in _parts(whole)]


def _joined(line: str) -> Iterator[str]:
    sentence = ""
    for piece in _BOUNDARY.split(line):
        sentence = f"{sentence} {piece}" if sentence else piece
        if not _ABBREVIATED.search(sentence[-12:]):
            yield sentence.strip()
            sentence = ""
    yield sentence.strip()


def _parts(sentence: str) -> list[str]:
    words = sentence.split()
    if len(words) > _LONG_SENTENCE:
        return [" ".join(words[i : i + _PART]) for i in range(0, len(words), _PART)]
    if len(words) == 1 and len(sentence) > _LONG_WORD:
        return [sentence[i : i + _WORD_PART] for i in range(0, len(sentence), _WORD_PART)]
    return [sentence] if sentence else []


def auc(positive: Sequence[float], negative: Sequence[float]) -> float:
    """Return how often a positive scores above a negative, ties counted half (Mann and Whitney, 1947)."""
    marked = sorted([(score, 1) for score in positive] + [(score, 0) for score in negative])
    below, wins = 0, 0.0
    for _, tied in groupby(marked, key=lambda pair: pair[0]):
        labels = [label for _, label in tied]
        above, level = sum(labels), len(labels) - sum(labels)
        wins += above * (below + level / 2)
        below += level
    return wins / (len(positive) * len(negative)) if positive and negative else math.nan


def ndcg(ranking: Sequence[str], relevance: Mapping[str, int], depth: int = 10) -> float:
    """Return the normalized discounted cumulative gain with exponential gains (Burges and others, 2005)."""
    ideal = _gain(sorted(relevance.values(), reverse=True)[:depth])
    return _gain(relevance.get(name, 0) for name in ranking[:depth]) / ideal if ideal else 0.0


def _gain(grades: Iterable[int]) -> float:
    return sum((2.0**grade - 1) / math.log2(rank + 1) for rank, grade in enumerate(grades, 1))


def recall(ranking: Sequence[str], relevance: Mapping[str, int], depth: int = 100) -> float:
    """Return the share of the relevant documents among the first ones."""
    relevant = {name for name, grade in relevance.items() if grade > 0}
    return len(relevant.intersection(ranking[:depth])) / max(1, len(relevant))


def calibration_error(stated: Sequence[tuple[float, bool]], bins: int = 10) -> float:
    """Return the expected calibration error of stated probabilities (Naeini and others, 2015)."""
    by_bin: defaultdict[int, list[tuple[float, bool]]] = defaultdict(list)
    for probability, right in stated:
        by_bin[min(int(probability * bins), bins - 1)].append((probability, right))
    return sum(abs(sum(p - right for p, right in found)) for found in by_bin.values()) / len(stated)


def brier(stated: Sequence[tuple[float, bool]]) -> float:
    """Return the mean squared error of stated probabilities (Brier, 1950)."""
    return sum((probability - right) ** 2 for probability, right in stated) / len(stated)


def calibration(stated: Sequence[tuple[float, bool]]) -> list[str]:
    """Return the cells of a table: answers, share right, AUROC, ECE, Brier, and Brier of always stating that share."""
    share = sum(right for _, right in stated) / len(stated)
    ranked = auc([p for p, right in stated if right], [p for p, right in stated if not right])
    measured = (share, ranked, calibration_error(stated), brier(stated), share * (1 - share))
    return [str(len(stated)), *(f"{value:.2f}" for value in measured[:3]), *(f"{value:.3f}" for value in measured[3:])]

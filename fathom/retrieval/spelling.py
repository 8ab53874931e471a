"""Words that are nearly the same: of one family, one letter apart, or spelt alike."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from itertools import takewhile

FAMILY_LETTERS = 5  # that words of one family share at least
FAMILY_SHARE = 0.6  # of the longer word that they share
MISSPELT_LETTERS = 5  # of a word in which one letter may be wrong: in shorter ones it makes another word
ALIKE = 0.77  # similarity from which a word may be meant by another, by difflib
ALIKE_LETTERS = 6  # of such a word at least
SUGGESTED = 2


def is_family(a: str, b: str) -> bool:
    """Whether two stems are different and of one family, such as "elast" and "elastic"."""
    common = _common(a, b)
    return a != b and common >= FAMILY_LETTERS and common >= FAMILY_SHARE * max(len(a), len(b))


def is_misspelt(a: str, b: str) -> bool:
    """Whether two words of at least five letters differ by one letter: wrong, missing, added, or two exchanged."""
    if min(len(a), len(b)) < MISSPELT_LETTERS or abs(len(a) - len(b)) > 1 or a == b or not (a + b).isalpha():
        return False
    start = _common(a, b)
    rest_a, rest_b = a[start:], b[start:]
    exchanged = rest_a[:2] == rest_b[1::-1] and rest_a[2:] == rest_b[2:]
    return rest_a[1:] == rest_b[1:] or rest_a[1:] == rest_b or rest_a == rest_b[1:] or exchanged


def meant_by(word: str, vocabulary: Mapping[str, int]) -> list[str]:
    """Return the words that a misspelt one may stand for, of a vocabulary in lower case with counts; the best first.

    The first letter is seldom wrong. Words that are one letter apart come alone, the most frequent first; else those
    that are spelt alike.
    """
    word = word.lower()
    like = sorted(known for known in vocabulary if known[:1] == word[:1] and abs(len(known) - len(word)) <= 2)
    if near := [known for known in like if is_misspelt(word, known)]:
        return sorted(near, key=lambda known: -vocabulary[known])[:SUGGESTED]
    return get_close_matches(word, like, SUGGESTED, ALIKE) if len(word) >= ALIKE_LETTERS else []


def _common(a: str, b: str) -> int:
    """Return how many letters two words have in common from the start."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(a, b, strict=False)))

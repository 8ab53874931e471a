"""Words that are nearly the same: of one family, or one letter apart."""

from __future__ import annotations

from itertools import takewhile

FAMILY_LETTERS = 5  # that words of one family share at least
FAMILY_SHARE = 0.6  # of the longer word that they share
MISSPELT_LETTERS = 5  # of a word in which one letter may be wrong: in shorter ones it makes another word


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


def _common(a: str, b: str) -> int:
    """Return how many letters two words have in common from the start."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(a, b, strict=False)))

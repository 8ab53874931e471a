"""Counts and lists as a reader sees them."""

from __future__ import annotations

from collections.abc import Sequence


def joined(words: Sequence[str], conjunction: str) -> str:
    """Return one or more words as a list: `a, b and c`."""
    *first, last = words
    return f"{', '.join(first)} {conjunction} {last}" if first else last


def counted(number: int, noun: str) -> str:
    """Return a number with its noun in the singular or plural: `1 claim`, `1,200 claims`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def size(number: int) -> str:
    """Return a number of bytes in the unit that a person would choose: `512 bytes`, `3.4 MB`."""
    for unit, of in (("TB", 10**12), ("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if number >= of:
            return f"{number / of:,.1f} {unit}"
    return counted(number, "byte")

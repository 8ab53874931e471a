"""Counts as a reader sees them."""

from __future__ import annotations


def counted(number: int, noun: str) -> str:
    """Return a number with its noun in the singular or plural: `1 claim`, `1,200 claims`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"

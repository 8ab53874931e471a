"""Sentences that say the same in nearly the same words."""

from __future__ import annotations

import re

from fathom.text.terms import query_terms

SHARED = 0.8  # of the shorter sentence's terms
LENGTHS = 0.75  # the shorter one's share of the longer one's
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")


def is_near_duplicate(a: str, b: str) -> bool:
    """Whether two sentences hold nearly the same terms and the same numbers."""
    return _same(frozenset(query_terms(a)), frozenset(query_terms(b))) and _numbers(a) == _numbers(b)


def _numbers(text: str) -> frozenset[str]:
    return frozenset(_NUMBER.findall(text))


def _same(a: frozenset[str], b: frozenset[str]) -> bool:
    small, large = sorted((len(a), len(b)))
    return small >= LENGTHS * large and small > 0 and len(a & b) >= SHARED * small

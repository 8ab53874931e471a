"""Sentences that say the same in nearly the same words."""

from __future__ import annotations

import math
import re

from fathom.text.terms import query_terms

SHARED = 0.8  # of the shorter sentence's terms
LENGTHS = 0.75  # the shorter one's share of the longer one's
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")


def is_near_duplicate(a: str, b: str) -> bool:
    """Whether two sentences hold nearly the same terms and the same numbers."""
    return _same(frozenset(query_terms(a)), frozenset(query_terms(b))) and _numbers(a) == _numbers(b)


class DuplicateFilter:
    """Remembers sentences and refuses those that one of them nearly repeats."""

    def __init__(self) -> None:
        self._kept: list[tuple[frozenset[str], frozenset[str]]] = []
        self._holding: dict[str, list[int]] = {}

    def add(self, sentence: str) -> bool:
        """Remember a sentence; False, and nothing is remembered, if it nearly repeats one."""
        found, numbers = frozenset(query_terms(sentence)), _numbers(sentence)
        telling = _telling(found)
        near = {i for term in telling for i in self._holding.get(term, ())}
        if any(_same(found, self._kept[i][0]) and numbers == self._kept[i][1] for i in near):
            return False
        for term in telling:
            self._holding.setdefault(term, []).append(len(self._kept))
        self._kept.append((found, numbers))
        return True


def _telling(found: frozenset[str]) -> list[str]:
    """Return as many of a sentence's terms as every near duplicate must share one of; long ones first, being rarer.

    Prefix filtering (Chaudhuri et al., 2006): sets that share at least `o` elements share one among the first
    `size - o + 1` of each in any common order.
    """
    least = math.ceil(SHARED * math.ceil(LENGTHS * len(found)))
    return sorted(found, key=lambda term: (-len(term), term))[: len(found) - least + 1]


def _numbers(text: str) -> frozenset[str]:
    return frozenset(_NUMBER.findall(text))


def _same(a: frozenset[str], b: frozenset[str]) -> bool:
    small, large = sorted((len(a), len(b)))
    return small >= LENGTHS * large and small > 0 and len(a & b) >= SHARED * small

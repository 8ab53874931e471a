"""Figures and quotations of a claim that no passage shown for it has, though a judge supports it.

A judge that reads quickly takes 42,000 MWh for 42,000 kWh, believes a sum, and overlooks one word of a quotation. What
stands in no passage and does not follow from two of their figures by one operation is named to it, and it looks again.
So is what stands only in cells of another row or column than the claim names: the value of another group, or year.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from decimal import Decimal
from itertools import combinations, permutations
from typing import NamedTuple

from fathom.evidence.support import spaced_words
from fathom.evidence.words import says_nothing, stands_in
from fathom.facts.extraction import facts_of
from fathom.facts.numbers import UNITS, Number
from fathom.text.tables import tables_of
from fathom.text.terms import terms

MOST, MOST_OF_THREE = 60, 40  # figures of passages that are combined, two and three at a time
QUOTED_WORDS = 3  # least words of a quotation; fewer may be a name, or a word that is meant otherwise
FACTORS = tuple(map(Decimal, (2, 7, 12, 100)))  # half of it, of a week, of a year, as a share
CLEARLY = 0.5  # share of the words of its own, 0 to 1, by which one row or column is named more than another
PERCENT = "percent"  # the dimension
_QUOTED = re.compile(r"[“\"„«](?P<words>[^“”\"„«»]+)[”\"“»]")
_LEFT_OUT = re.compile(r"\[?(?:\.{3}|…)\]?|\[[^\]]*\]")


def unfounded(claim: str, passages: Sequence[str]) -> list[str]:
    """Return the figures and quotations of a claim that no passage has, and that do not follow from their figures.

    Numbers in words are left out, and so are amounts of time if the passages have two dates, which it may lie between.
    """
    if says_nothing(claim):
        return []
    said = [spaced_words(passage) for passage in passages]
    quoted = (
        found["words"]
        for found in _QUOTED.finditer(claim)
        for part in map(spaced_words, _LEFT_OUT.split(found["words"]))
        if len(part.split()) >= QUOTED_WORDS and not any(part in text for text in said)
    )
    return list(dict.fromkeys([*_figures(claim, passages), *quoted]))


def misplaced(claim: str, passages: Sequence[str]) -> Iterator[str]:
    """Yield the figures of a claim that only cells of tables have whose row or column it does not name, but another."""
    text = "\n".join(passages)
    outside = "\n".join(line for line in text.splitlines() if not line.startswith("|"))
    tables = list(tables_of(text))
    said = set(terms(claim))
    for number in facts_of(claim).numbers if tables else ():
        homes = [
            _is_named(table.header[1:], column - 1, said) and _is_named(table.cells(0), row, said)
            for table in tables
            for row, cells in enumerate(table.rows)
            for column, cell in enumerate(cells[: len(table.header)])
            if column and stands_in(number, claim, cell)
        ]
        if homes and not any(homes) and not number.spelled and not stands_in(number, claim, outside):
            yield number.text


def _is_named(names: Sequence[str], own: int, said: Collection[str]) -> bool:
    """Whether a claim names one of several rows or columns as much as each other one, by what tells them apart."""
    words = [frozenset(terms(name)) for name in names]
    return all(_share(words[own] - each, said) > _share(each - words[own], said) - CLEARLY for each in words)


def _share(words: Collection[str], said: Collection[str]) -> float:
    return sum(word in said for word in words) / max(1, len(words))


class _Amount(NamedTuple):
    """A number in its dimension's own unit, with or without its scale, and how far it may be rounded."""

    size: Decimal
    rounded: Decimal
    unit: str  # the dimension; empty if it has no unit


def _figures(claim: str, passages: Sequence[str]) -> Iterator[str]:
    read = [facts_of(passage) for passage in passages]
    dates = {found.date for facts in read for found in facts.dates}
    amounts = (amount for facts in read for number in facts.numbers for amount in _amounts(number))
    years = (_Amount(Decimal(year), Decimal(0), "") for year in sorted({one.year for one in dates if one.year}))
    known = list(dict.fromkeys([*amounts, *years]))[:MOST]
    for number in facts_of(claim).numbers:
        own = _amounts(number)
        timed = len(dates) > 1 and any(one.unit == "time" for one in own)
        if number.spelled or timed or any(stands_in(number, claim, text) for text in passages):
            continue
        if not any(abs(size - one.size) <= one.rounded for one in own for size in _computed(one.unit, known)):
            yield number.text


def _amounts(number: Number) -> list[_Amount]:
    unit = UNITS.get(number.unit.lower())
    dimension, factor = (unit.dimension, unit.factor) if unit else (number.unit, Decimal(1))
    found: list[_Amount] = []
    for value in sorted(number.values):
        written = value.scaleb(-number.power)
        digits = len(written.normalize().as_tuple().digits)
        last = max(min(0, int(written.as_tuple().exponent)), written.adjusted() + 1 - max(2, digits))
        half = Decimal((0, (5,), last - 1))
        scales = (factor, factor.scaleb(number.power))  # a table of millions has them without the word
        found += [_Amount(written * scale, half * scale, dimension) for scale in scales]
    return found


def _computed(unit: str, known: Sequence[_Amount]) -> Iterator[Decimal]:
    """Yield what follows from some amounts by one operation, as an amount of a unit."""
    for a in known:
        yield from (a.size * factor for factor in FACTORS)
        yield from (a.size / factor for factor in FACTORS)
        yield 100 - a.size
    for a, b in permutations(known, 2):
        alike = a.unit == b.unit
        if alike or not (a.unit and b.unit):
            yield a.size + b.size
            if {unit, a.unit} != {PERCENT} or b.unit != PERCENT:  # their difference is one of percentage points
                yield abs(a.size - b.size)
        if b.size and unit == PERCENT and alike:
            yield from (100 * a.size / b.size, 100 * abs(a.size - b.size) / b.size)
        elif b.size and unit != PERCENT:
            yield from (a.size * b.size, a.size * b.size / 100, a.size / b.size)
    for three in combinations(known[:MOST_OF_THREE], 3):
        if len({one.unit for one in three}) == 1:
            yield sum((one.size for one in three), Decimal(0))

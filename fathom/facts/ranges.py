"""Ranges of a quantity, as price lists and rules state them, and the case that a question gives.

"ab 24 Jahren", "40 to 60 m²", "below 15", "16 or over": of the rows of a table, the one holds whose range has what the
reader says of the case: an amount, or a time in a period.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from decimal import Decimal
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from fathom.facts.extraction import facts_of
from fathom.facts.numbers import UNITS, Number, numbers_of
from fathom.facts.periods import Moment, in_periods, moments_of, periods_of
from fathom.text.terms import terms

NEAR = 40  # characters before and behind a number that may say where its range begins or ends
_BELOW = r"under|below|(?:less|fewer|younger|lighter|shorter) than|(?:bis )?unter|(?:weniger|jünger) als|moins de|<"
_AT_MOST = r"up to|at most|(?:no|not) more than|maxim(?:um|al)|max\.?|within|bis(?: zu)?|höchstens|jusqu['’]à|≤"
_ABOVE = r"over|above|(?:more|older|heavier|longer) than|über|(?:mehr|älter) als|plus de|>"
_AT_LEAST = r"from|at least|minim(?:um|al)|min\.?|ab|mindestens|à partir de|dès|≥"
_BEFORE = {
    name: re.compile(rf"(?:\A|(?<=[\W_]))(?:{words})[\s-]*\Z", re.IGNORECASE)
    for name, words in (("below", _BELOW), ("at most", _AT_MOST), ("above", _ABOVE), ("at least", _AT_LEAST))
}
_COUNTED = r"\s*(?:[^\W\d]+ )?"
_OR_MORE = re.compile(
    rf"\s*\+|{_COUNTED}(?:and|or|und|oder|et) (?:over|above|more|older|up|mehr|älter|darüber|plus)\b", re.IGNORECASE
)
_OR_LESS = re.compile(
    rf"{_COUNTED}(?:and|or|und|oder) (?:under|below|less|fewer|younger|weniger|jünger)\b", re.IGNORECASE
)
_TO = re.compile(r"\s*(?:to|up to|bis(?: zu)?|à|[-–—])\s*", re.IGNORECASE)
_TO_BELOW = re.compile(r"\s*(?:to (?:under|below)|bis unter)\s*", re.IGNORECASE)
_AGED = re.compile(
    r"\b(?:i['’]?m|am|is|(?:s?he|who)['’]s|turn(?:s|ed)|aged?|bin|ist|wird|wurde)\s+(?P<age>\d{1,3})\b(?!\s*[%°€£$/-]|[.:,]\d)",
    re.IGNORECASE,
)
_OF_AGE = frozenset(terms("age aged year years old child children adult adults alter jahre jahren alt kind kinder"))
_PEOPLE = frozenset(terms("people persons guests visitors participants leute personen gäste teilnehmer"))
_SEATS = frozenset(terms("seats places capacity sleeps pax plätze sitzplätze betten kapazität")) | _PEOPLE
_LIMITS = _SEATS | frozenset(terms("maximum max limit load höchstens maximal zuladung tragkraft"))
"""Words of a column whose numbers say how much there may be: 20 below "seats" is up to 20."""
_WORD = re.compile(r"[^\W\d_]+[²³]?|%|°[CF]")
_TERM = "<range with "


class Amount(NamedTuple):
    """What a question says of the case: "12 kDa", "71 m²", "I'm 31"."""

    written: str  # the number with its unit
    value: Decimal
    unit: str  # its usual sign; empty if there is none
    counted: frozenset[str]  # the terms of what is counted, if there is no unit


Case = Amount | Moment
"""What a question says of the case that a rule is to be applied to."""


def as_term(case: Case) -> str:
    """Return the term of a question that every range with this amount, or period with this time, has."""
    return f"{_TERM}{' '.join([case.written, *sorted(case.counted)])}>"


class StatedRange(NamedTuple):
    """A range with its bounds; None where it has none."""

    least: Decimal | None
    most: Decimal | None
    above: bool  # the least value itself is not in it
    below: bool  # nor is the greatest
    of: Number  # the number with its unit, or with what it counts

    def holds(self, value: Decimal) -> bool:
        """Whether a value, in its unit, lies in it."""
        if self.least is not None and (value < self.least or (self.above and value == self.least)):
            return False
        return self.most is None or value < self.most or (not self.below and value == self.most)


@lru_cache(maxsize=64)
def amounts_of(question: str) -> tuple[Amount, ...]:
    """Return the amounts that a question gives, with their units; of a number alone only an age."""
    text = facts_of(question).undated
    found = [
        Amount(number.text, value, number.unit, frozenset(number.counted))
        for number in numbers_of(text)
        for value in _only(number)
        if number.unit not in ("ordinal", "decade") and (number.unit or number.counted)
        if not (number.spelled and value == 1)  # "one person a year" is no case
    ]
    known = {amount.value for amount in found}
    aged = (each["age"] for each in _AGED.finditer(text))
    year = UNITS["year"].sign
    return (
        *found,
        *(Amount(f"{age} {year}", Decimal(age), year, frozenset()) for age in aged if Decimal(age) not in known),
    )


def cases_of(question: str) -> tuple[Case, ...]:
    """Return the amounts and times that a question gives."""
    return *amounts_of(question), *moments_of(question)


def cases_sought(term: str) -> tuple[Case, ...]:
    """Return the case that a term of a question stands for; nothing for other terms."""
    return cases_of(term[len(_TERM) : -1]) if term.startswith(_TERM) else ()


def in_range(cases: tuple[Case, ...], text: str, around: str) -> bool | None:
    """Return whether a range of a text has one of some amounts or times; None if none can be compared with them.

    `around` is what says the unit of a number that has none: the header of a cell.
    """
    held = [
        span.holds(value)
        for case in cases  # first: without one, which is usual, no text is read
        if isinstance(case, Amount)
        for span in ranges_of(text) or _limit(text, around)
        if (value := _converted(case, span, f"{around} {text}")) is not None
    ]
    moments = [case for case in cases if isinstance(case, Moment)]
    if moments and (there := in_periods(moments, periods_of(text))) is not None:
        held.append(there)
    return any(held) if held else None


@lru_cache(maxsize=4096)
def ranges_of(text: str) -> tuple[StatedRange, ...]:
    """Return the ranges that a text states."""
    return tuple(_ranges(facts_of(text).undated)) if re.search(r"\d", text) else ()


def _limit(cell: str, column: str) -> list[StatedRange]:
    """Return the range that a number alone states in a column of limits."""
    found = numbers_of(cell) if _has_limits(column) else []
    values = [value for number in found if number.text == cell.strip() for value in _only(number)]
    return [StatedRange(None, value, False, False, found[0]) for value in values]


@lru_cache(maxsize=256)
def _has_limits(column: str) -> bool:
    return not _LIMITS.isdisjoint(terms(column))


def _ranges(text: str) -> Iterator[StatedRange]:
    numbers = [number for number in numbers_of(text) if number.unit != "ordinal" and _only(number)]
    paired: set[int] = set()
    for first, second in pairwise(numbers):
        between = text[first.end : second.start]
        exclusive = _TO_BELOW.fullmatch(between)
        if (exclusive or _TO.fullmatch(between)) and _only(first)[0] < _only(second)[0]:
            above = bool(_BEFORE["above"].search(text[max(0, first.start - NEAR) : first.start]))
            yield StatedRange(
                _only(first)[0], _only(second)[0], above, bool(exclusive), second if second.kind else first
            )
            paired |= {first.start, second.start}
    for number in numbers:
        if number.start in paired:
            continue
        before, behind = text[max(0, number.start - NEAR) : number.start], text[number.end : number.end + NEAR]
        [value] = _only(number)
        said = next((name for name, form in _BEFORE.items() if form.search(before)), "")
        if said in ("below", "at most") or _OR_LESS.match(behind):
            yield StatedRange(None, value, False, said == "below", number)
        elif said or _OR_MORE.match(behind):
            yield StatedRange(value, None, said == "above", False, number)


def _only(number: Number) -> list[Decimal]:
    """Return the value of a number if it has only one; `1.000` may be two."""
    return [*number.values] if len(number.values) == 1 else []


def _converted(amount: Amount, span: StatedRange, said: str) -> Decimal | None:
    """Return an amount in the unit of a range; None if they do not measure the same."""
    unit, counts = "" if span.of.unit == "decade" else span.of.unit, span.of.counted  # "under-18s"
    if not amount.unit:
        around = {*terms(said)}
        counted = amount.counted & around or (amount.counted & _PEOPLE and _SEATS & around)
        return amount.value if counted and not unit else None
    own = UNITS[amount.unit.lower()]
    if unit:
        stated = [UNITS[unit.lower()]]
    elif counts and _OF_AGE.isdisjoint(counts):
        return None
    else:
        stated = [found for word in _WORD.findall(said) if (found := UNITS.get(word.lower()))]
        if not stated and own.sign == UNITS["year"].sign and not _OF_AGE.isdisjoint(terms(said)):
            stated = [own]
    factor = next((each.factor for each in stated if each.dimension == own.dimension), None)
    return amount.value * own.factor / factor if factor else None

"""Periods, as rotas, price lists and opening hours state them, and the days, months and weekdays of a question.

"1 November to 31 March", "02.11. - 08.11.2026", "Monday to Friday", a cell below "from" beside one below "to": of the
rows of a table, the one holds whose period has the day that the reader names. A weekday is a date without year and
month, from 1 for Monday.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from fathom.facts.dates import MONTHS, Date, DateFound, asked_dates, find_dates

_NAMES = """
monday mondays mon montag montags mo
tuesday tuesdays tue tues dienstag dienstags di
wednesday wednesdays wed mittwoch mittwochs mi
thursday thursdays thu thur thurs donnerstag donnerstags do
friday fridays fri freitag freitags fr
saturday saturdays sat samstag samstags sonnabend sa
sunday sundays sun sonntag sonntags so
"""
_WEEKDAYS = {name: number for number, line in enumerate(_NAMES.strip().split("\n"), 1) for name in line.split()}
_DIGITS = re.compile(r"\d+").findall
_LAST_DAY = 31  # of any month, where only the month is given
_TO = r"\s*(?:to|until|till|through|bis(?: zum)?|au|[-–—])\s*"
_BETWEEN = re.compile(_TO, re.IGNORECASE)
_FIRST_OF_SPAN = re.compile(rf"(?<![\d.,:/-])(?P<day>\d{{1,2}})(?:st|nd|rd|th|\.)?{_TO}\Z", re.IGNORECASE)
_SHORT = re.compile(
    rf"(?<![\d.])(?P<first>\d{{1,2}}\.\d{{1,2}})\.?{_TO}(?P<last>\d{{1,2}}\.\d{{1,2}})(?:\.(?P<year>\d{{4}})?|(?![\d.]))"
)
_NAME_OF_MONTH = "|".join(sorted((name.title() for name in MONTHS), key=len, reverse=True))
_OF_MONTHS = re.compile(rf"\b({_NAME_OF_MONTH})\b\.?{_TO}({_NAME_OF_MONTH})\b")
_NAME_OF_DAY = "|".join(sorted((name.title() for name in _WEEKDAYS), key=len, reverse=True))
_OF_WEEKDAYS = re.compile(rf"\b({_NAME_OF_DAY})\b\.?{_TO}({_NAME_OF_DAY})\b")
_ASKED_DAY = re.compile(rf"\b({'|'.join(name for name in _WEEKDAYS if len(name) > len('thurs'))})\b", re.IGNORECASE)
_ASKED_MONTH = re.compile(
    rf"\b(?:in|im|during|for|of)\s+({'|'.join(n for n in MONTHS if len(n) > 2)})\b", re.IGNORECASE
)
_BEGINS = re.compile(
    r"\W*(?:valid |gültig )?(?:from|start\w*|first|begin\w*|von|vom|ab|beginn|anfang|du)\b", re.IGNORECASE
)
_ENDS = re.compile(r"\W*(?:valid |gültig )?(?:to|until|till|end\w*|last|bis|ende|au)\b", re.IGNORECASE)


class Moment(NamedTuple):
    """A day, month or weekday that a question names: "20 July 2027", "in December", "on a Wednesday"."""

    written: str
    time: Date
    counted: frozenset[str] = frozenset()  # as an amount may count something


class Period(NamedTuple):
    """A period with its first and last day, month or weekday; one without years is of every year."""

    first: Date
    last: Date

    def holds(self, time: Date) -> bool | None:
        """Whether a time is in it, at least in part.

        None for a weekday and a period of dates, or the reverse, and for a month and a single day.
        """
        if bool(time.month) != bool(self.first.month) or (self.first == self.last and not time.day):
            return None
        first, last = _begin(self.first), _end(self.last)
        begin, end = _begin(time), _end(time)
        if time.year and self.first.year and self.last.year:
            return first <= end and begin <= last
        first, last, begin, end = (each._replace(year=0) for each in (first, last, begin, end))
        if first <= last:
            return first <= end and begin <= last
        return end >= first or begin <= last


def _begin(time: Date) -> Date:
    return time._replace(day=time.day or 1)


def _end(time: Date) -> Date:
    return time._replace(day=time.day or _LAST_DAY)


@lru_cache(maxsize=64)
def moments_of(question: str) -> tuple[Moment, ...]:
    """Return the days, months and weekdays that a question names."""
    dates = [found for found in asked_dates(question) if found.date.month]
    months = [] if dates else [(each[1], Date(0, MONTHS[each[1].lower()])) for each in _ASKED_MONTH.finditer(question)]
    days = [(each[1], Date(0, 0, _WEEKDAYS[each[1].lower()])) for each in _ASKED_DAY.finditer(question)]
    return tuple(Moment(*each) for each in [*((found.text, found.date) for found in dates), *months, *days])


@lru_cache(maxsize=64)
def days_in(question: str) -> frozenset[str]:
    """Return the numbers of days and months in a question's dates: the 16 of "16 July" names no row of a table."""
    said = ((int(number), number, each.time.year) for each in moments_of(question) for number in _DIGITS(each.written))
    return frozenset(number for value, number, year in said if value != year)


def in_periods(moments: Sequence[Moment], periods: Sequence[Period]) -> bool | None:
    """Return whether one of some periods has one of some times; None if there is none to compare."""
    held = [holds for each in moments for period in periods if (holds := period.holds(each.time)) is not None]
    return any(held) if held else None


@lru_cache(maxsize=4096)
def periods_of(text: str) -> tuple[Period, ...]:
    """Return the periods that a text states, also of one day."""
    return tuple(_periods(text)) if re.search(r"\d|[A-Z][a-z.]*\s*(?:to|bis|[-–—])", text) else ()


def period_of_cells(cells: Sequence[str], names: Sequence[str]) -> Period | None:
    """Return the period of a row whose first day is in one cell and its last day in the next; None without one."""
    for (first, last), (begins, ends) in zip(pairwise(cells), pairwise(names), strict=False):
        if _BEGINS.match(begins) or _ENDS.match(ends):
            found = [_only(cell) for cell in (first, last)]
            if found[0] and found[1]:
                return _between(found[0], found[1])
    return None


def _only(cell: str) -> Date | None:
    """Return the date that a cell holds, if it holds nothing else."""
    found = find_dates(cell)
    return found[0].date if len(found) == 1 and found[0].text == cell.strip() and found[0].date.month else None


def _periods(text: str) -> Iterator[Period]:
    dates = [found for found in find_dates(text) if found.date.month]
    inside: set[int] = set()  # where the dates of longer periods begin
    for a, b in pairwise(dates):
        if _BETWEEN.fullmatch(text[a.end : b.start]):
            yield _between(a.date, b.date)
            inside |= {a.start, b.start}
    for found in dates:
        if found.date.day and found.start not in inside:
            yield _of_days(text, found)
    for short in _SHORT.finditer(text):
        (day, month), (last_day, last_month) = (map(int, short[name].split(".")) for name in ("first", "last"))
        if max(month, last_month) <= 12 and max(day, last_day) <= _LAST_DAY:
            yield _between(Date(0, month, day), Date(int(short["year"] or 0), last_month, last_day))
    for months in _OF_MONTHS.finditer(text):
        yield Period(*(Date(0, MONTHS[name.lower()]) for name in months.groups()))
    for days in _OF_WEEKDAYS.finditer(text):
        yield Period(*(Date(0, 0, _WEEKDAYS[name.lower()]) for name in days.groups()))


def _of_days(text: str, found: DateFound) -> Period:
    """Return the period of a date: of one day, or from the number before it: "15 - 19 February 2027"."""
    before = _FIRST_OF_SPAN.search(text[: found.start])
    first = int(before["day"]) if before else found.date.day
    return Period(found.date._replace(day=first) if first <= found.date.day else found.date, found.date)


def _between(first: Date, last: Date) -> Period:
    """Return a period of which perhaps only the last day, or only the first, says its year."""
    wraps = (first.month, first.day) > (last.month, last.day)
    if last.year and not first.year:
        first = first._replace(year=last.year - wraps)
    elif first.year and not last.year:
        last = last._replace(year=first.year + wraps)
    return Period(first, last)

"""Dates as texts write them: 12 March 2019, March 12, 2019-03-12, 12.03.2019, 2019年3月12日, March 2019, 2010-15."""

from __future__ import annotations

import datetime
import re
from collections.abc import Mapping
from typing import NamedTuple

from fathom.facts.numbers import SCALES, UNITS

_MONTHS = """
january jan januar jänner
february feb februar
march mar märz
april apr
may mai
june jun juni
july jul juli
august aug
september sep sept
october oct oktober okt
november nov
december dec dezember dez
"""
MONTHS = {name: number for number, line in enumerate(_MONTHS.strip().split("\n"), 1) for name in line.split()}
"""The number of each month's names, in lowercase."""

WEEKDAYS = frozenset(["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"])

_MONTH = rf"\b(?P<month>{'|'.join(sorted(MONTHS, key=len, reverse=True))})\b\.?"
_YEAR = r"(?P<year>(?:1\d|2[01])\d\d)\b"
_FORMS = [
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"\b(?P<year>\d{4})[-/.](?P<number>\d{1,2})[-/.](?P<day>\d{1,2})(?!\d)",
        r"\b(?P<day>\d{1,2})\.(?P<number>\d{1,2})\.(?P<year>\d{4})\b",
        r"\b(?P<number>\d{1,2})/(?P<day>\d{1,2})/(?P<year>\d{4})\b",
        r"(?P<year>\d{4})\s?[年년](?:\s?(?P<number>\d{1,2})\s?[月월](?:\s?(?P<day>\d{1,2})\s?[日일])?)?",
        rf"\b(?P<day>\d{{1,2}})(?:st|nd|rd|th|\.)?[\s-]+(?:of\s+)?{_MONTH}(?:,?[\s-]+{_YEAR})?",
        rf"{_MONTH}\s+(?P<day>\d{{1,2}})(?:st|nd|rd|th)?\b(?!\s?%)(?:,?\s+{_YEAR})?",
        rf"{_MONTH},?\s+(?:of\s+)?{_YEAR}",
    )
]
_YEARS = re.compile(r"\b(?P<century>\d\d)(?P<first>\d\d)\s?[-–/]\s?(?P<second>\d\d)\b(?![-–/]\d)")
_ALONE = re.compile(
    r"(?<![A-Za-z\d_.,\u00c0-\u024f$€£¥])(?<![A-Z]-)(?<![A-Za-z\d]/)(?<![$€£¥]\s)"
    r"(?P<year>1(?:0[1-9]|[1-9]\d)\d|2[01]\d\d)(?![\w%°$€£¥]|[.,’']\d|\s?[%°$€£¥])(?P<after>[\s\u00a0\u202f-]{0,2}[^\W\d_]+)?"
)


class Date(NamedTuple):
    """A day, month or year; 0 where a part is not given."""

    year: int
    month: int = 0
    day: int = 0

    def within(self, other: Date) -> bool:
        """Whether another date says at least as much, and the same."""
        return all(not own or own == its for own, its in zip(self, other, strict=True))

    def agrees(self, other: Date) -> bool:
        """Whether both can be the same day: "March 2024" and "12 March 2024" can."""
        return all(not (own and its) or own == its for own, its in zip(self, other, strict=True))


def iso(date: Date) -> str:
    """Return a date as `YYYY-MM-DD` or `YYYY-MM`; empty if it has no month or does not exist."""
    try:
        datetime.date(date.year, date.month, date.day or 1)
    except ValueError:
        return ""
    return f"{date.year:04}-{date.month:02}" + (f"-{date.day:02}" if date.day else "")


def of_iso(text: str) -> Date:
    """Return a date that is written as `YYYY-MM-DD`, `YYYY-MM` or `YYYY`."""
    return Date(*map(int, text.split("-")))


class DateFound(NamedTuple):
    """A date, how it is written, and its place."""

    date: Date
    text: str
    start: int
    end: int


def find_dates(text: str) -> list[DateFound]:
    """Return the dates of a text in reading order; a span of years such as 2010-15 gives both ends.

    In 3/12/2019 the month comes first unless it cannot, in 3.12.2019 the day. A number from 1010 to 2199 is a year
    unless it has a unit or sign. A month in lowercase needs a day and a year: "march" and "may" are also verbs.
    """
    found: list[DateFound] = []
    rest = text if re.search(r"\d", text) else ""

    def add(date: Date, start: int, end: int, used: int) -> None:
        nonlocal rest
        found.append(DateFound(date, text[start:end].strip(), start, end))
        rest = rest[:used] + " " * (end - used) + rest[end:]

    for form in _FORMS:
        for match in form.finditer(rest):
            if date := _date(match.groupdict()):
                add(date, match.start(), match.end(), match.start())
    for match in _YEARS.finditer(rest):
        if date := _second(match):
            add(date, match.start(), match.end(), match.start() if date.month else match.start() + 4)
    for match in _ALONE.finditer(rest):
        after = (match["after"] or "").strip(" \u00a0\u202f-").lower()
        if after not in SCALES and after not in UNITS:
            add(Date(int(match["year"])), match.start("year"), match.end("year"), match.end("year"))
    return sorted(found, key=lambda one: (one.start, one.date))


_SMALL_MONTH = re.compile(
    rf"(?P<day>\b\d{{1,2}}(?:st|nd|rd|th|\.)?\s+(?:of\s+)?)(?P<month>{'|'.join(MONTHS)})\b", re.IGNORECASE
)


def asked_dates(question: str) -> list[DateFound]:
    """Return the dates of a question, as people type it: the month behind a day may be in lowercase."""
    return find_dates(_SMALL_MONTH.sub(lambda found: f"{found['day']}{found['month'].title()}", question))


def _date(parts: Mapping[str, str | None]) -> Date | None:
    name, day, year = parts.get("month"), int(parts.get("day") or 0), int(parts.get("year") or 0)
    if name and name.islower() and not (day and year):
        return None
    number = parts.get("number")
    month = MONTHS[name.lower()] if name else int(number or 0)
    if month > 12 >= day:
        month, day = day, month
    return Date(year, month, day) if day <= 31 and (1 <= month <= 12 or not (name or number)) else None


def _second(span: re.Match[str]) -> Date | None:
    """Return the second year of a span, 2010-15, or the month if it cannot be a year: 2015-03."""
    century, first, second = (int(part) for part in span.group("century", "first", "second"))
    if second > first:
        return Date(100 * century + second)
    return Date(100 * century + first, second) if 1 <= second <= 12 else None

"""Which of several dated texts a question prefers: those of the time that it names, or else the newest."""

from __future__ import annotations

import re
from collections.abc import Sequence

from fathom.facts.dates import MONTHS, Date, find_dates

NEWEST = 1.25  # factor for the newest text where the question asks for the newest; others get their share of it
ON_DATE = 1.5  # factor for a text of the time that the question names
TIE = 1e-6  # of the score: between equals the newer one comes first

_NEWEST = re.compile(
    r"\b(?:latest|newest|most recent(?:ly)?|current(?:ly)?|now|nowadays|today|at the moment|at present|these days|"
    r"still|up[ -]to[ -]date|last (?:meeting|version|release|decision|time))\b",
    re.IGNORECASE,
)
_MONTH = re.compile(rf"\b(?:in|of|from|during|since|until|by|last)\s+(?:early\s+|late\s+)?({'|'.join(MONTHS)})\b", re.I)


def preferences(question: str, dates: Sequence[str]) -> list[float]:
    """Return a factor for each text from its date (YYYY-MM-DD, YYYY-MM, or empty), 1 where dates do not matter."""
    wanted = times_of(question)
    rank = {date: place for place, date in enumerate(sorted({date for date in dates if date}), 1)}
    most = NEWEST - 1 if asks_for_newest(question) else TIE
    return [
        (ON_DATE if date and any(time.agrees(_parsed(date)) for time in wanted) else 1.0)
        + (most * rank[date] / len(rank) if date else 0.0)
        for date in dates
    ]


def asks_for_newest(question: str) -> bool:
    """Whether a question asks for what holds now, or for the latest of something."""
    return bool(newest_words(question)) and not times_of(question)


def newest_words(question: str) -> list[str]:
    """Return the words by which a question asks for what holds now, or for the latest of something."""
    return _NEWEST.findall(question)


def times_of(question: str) -> list[Date]:
    """Return the days, months and years that a question names; 0 where a part is not given."""
    months = [Date(0, MONTHS[match[1].lower()]) for match in _MONTH.finditer(question)]
    dates = [found.date for found in find_dates(question)]
    return dates or months


def _parsed(date: str) -> Date:
    return Date(*map(int, date.split("-")))

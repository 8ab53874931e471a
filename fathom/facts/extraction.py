"""The facts of a sentence that can be checked exactly: numbers, dates, names, and figures with their intervals.

A figure is a count or measurement, with the interval of values that it can have. "About 400", "more than 400" and "400"
say different things, and 400 may be 412 rounded: so a figure is an interval, and two figures differ only where their
intervals do not touch.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from decimal import Decimal
from functools import lru_cache
from typing import NamedTuple

from fathom.facts.dates import MONTHS, WEEKDAYS, DateFound, find_dates
from fathom.facts.numbers import UNITS, Number, numbers_of
from fathom.facts.opposites import NEGATION
from fathom.text.terms import STOP_WORDS, terms

_ARTICLES = """
le la les un une des du de d l et au aux ce cette ces dans sur pour par avec el los las una unas unos del y al en con
por para il lo gli della dello degli o os as um uma dos das het een van den te ten ter
"""  # and other function words of French, Spanish, Italian, Portuguese and Dutch: of Le Monde, Monde is the name
_CAPITALIZED = r"(?:[A-Z\u00c0-\u00de][\w’'&-]*[\w]|[A-Z](?:\.[A-Z])+\.?)"
_NAMES = re.compile(rf"\b{_CAPITALIZED}(?:\s+{_CAPITALIZED})*")
_NO_NAMES = STOP_WORDS | frozenset(_ARTICLES.split()) | MONTHS.keys() | WEEKDAYS
_MARKUP = re.compile(r"\*\*|__|`")
_POSSESSIVE = re.compile(r"['’]s?\Z")
_COUNTED = re.compile(r"\d[\s\u00a0\u202f]\Z")
_OPENING = re.compile(r"(?:\A|[.!?:;]\s|[\n|])[\s\"'“‘(*•-]*\Z")


class Name(NamedTuple):
    """A proper name as its words. `opening`: it begins a sentence, where any word has a capital."""

    words: tuple[str, ...]
    opening: bool
    end: int


class Facts(NamedTuple):
    """The numbers, dates and names of a text, without Markdown's emphasis; a bare year is a date.

    Whoever reads the same text is given the same object: nobody changes its lists.
    """

    text: str
    undated: str  # with its dates blanked, everything else in its place
    numbers: list[Number]
    dates: list[DateFound]
    names: list[Name]


@lru_cache(maxsize=512)  # each claim is compared with some ten passages, and each passage with many claims
def facts_of(text: str) -> Facts:
    """Return the checkable facts of a text."""
    text = plain(text)
    dates = find_dates(text)
    undated = blanked(text, ((found.start, found.end) for found in dates))
    return Facts(text, undated, numbers_of(undated), dates, list(_names(text)))


def plain(text: str) -> str:
    """Return a text without Markdown's emphasis."""
    return _MARKUP.sub("", text)


def blanked(text: str, spans: Iterable[tuple[int, int]]) -> str:
    """Return a text with blanks instead of some spans, everything else in its place."""
    for start, end in spans:
        text = text[:start] + " " * (end - start) + text[end:]
    return text


def _names(text: str) -> Iterator[Name]:
    for found in _NAMES.finditer(text):
        words = [_POSSESSIVE.sub("", word) for word in found[0].split()]
        opening = bool(_OPENING.search(text[max(0, found.start() - 12) : found.start()]))
        if opening and words[0].lower() in STOP_WORDS:
            words, opening = words[1:], False
        if len(words) == 1 and _COUNTED.search(text[max(0, found.start() - 2) : found.start()]):
            continue  # "5 Kronen"
        if opening and len(words) == 1 and (text.startswith(",", found.end()) or NEGATION.fullmatch(words[0])):
            continue  # "Overall, ...", "Lack of ..."
        kept = [word for word in words if word.lower() not in _NO_NAMES]
        if kept:
            yield Name(tuple(kept), opening and len(words) == len(kept), found.end())


ROUNDED = 0.05  # largest rounding, as a share of the figure
CLOSE = 0.02  # figures nearer than this are one figure, measured twice
ABOUT = 0.1  # tolerance of "about", as a share of the figure
LARGEST = 10**18  # a longer run of digits is not an amount
BEFORE = 60  # characters before a number that tell what it belongs to

_ABOUT = r"about|around|approximately|approx\.|roughly|nearly|almost|circa|ca\.|some|(?:an )?estimated|close to"
_LEAST = r"more than|over|at least|above|exceed(?:s|ed|ing)?|upwards of|no (?:less|fewer) than|minimum of"
_MOST = r"less than|fewer than|under|up to|at most|below|no more than|maximum of|as (?:much|many) as"
_HEDGE = re.compile(
    rf"(?:(?P<about>\b(?:{_ABOUT})|[~≈])|(?P<least>\b(?:{_LEAST})|[≥>])|(?P<most>\b(?:{_MOST})|[≤<]))(?: the)?\s?\Z",
    re.IGNORECASE,
)
_RANGE = re.compile(r"\s?(?:[-–—]|to|and)\s?")
_RATE = re.compile(
    r"\s*(?:[a-z]+ ){0,2}(?:per|a|an|each|every|/)\s*(second|minute|hour|day|week|month|year|person|head)\b"
)
_WORD = re.compile(r"[\w'’]+")
_NAMING_WORDS = "section figure table chapter page version step level phase type class line route season stage"
_NAMING = frozenset(_NAMING_WORDS.split())
"""A number after one of these is a name, not an amount."""


class Figure(NamedTuple):
    """A figure of a sentence. `kinds`: the unit's dimension, or the stems of what is counted; `rate`: per what."""

    kinds: frozenset[str]
    rate: str
    low: float
    high: float
    start: int
    end: int  # of the figure and its unit, in the sentence


def figures_of(facts: Facts) -> Iterator[Figure]:
    """Yield the figures of a sentence; numbers that are part of a name ("Python 3", "section 4") do not count."""
    text = facts.undated
    waiting = [number for number in facts.numbers if _is_amount(number, text)]
    while waiting:
        first = waiting.pop(0)
        last = waiting.pop(0) if waiting and _RANGE.fullmatch(text[first.end : waiting[0].start]) else first
        before = text[max(0, first.start - BEFORE) : first.start]
        kinds = _kinds(last if last.unit or last.counted else first, before)
        if not kinds or part_of_name(first, text):
            continue
        rate = _RATE.match(text, last.end)
        low, high = _interval(first, last, _HEDGE.search(before))
        yield Figure(kinds, rate[1] if rate else "", low, high, first.start, last.end)


def agree(a: Figure, b: Figure) -> bool:
    """Whether two figures can be the same one: their intervals overlap, or they are as good as equal."""
    if a.low <= b.high and b.low <= a.high:
        return True
    ends = [abs(end) for end in (a.low, a.high, b.low, b.high) if math.isfinite(end)]
    # What is rounded to 14 and to 15 nearly touches: the middles are one apart.
    middles = abs(a.low + a.high - b.low - b.high) / 2
    apart = middles if len(ends) == 4 else max(a.low, b.low) - min(a.high, b.high)
    return apart <= CLOSE * max(ends) / 2


def figures_apart(text: str, other: str) -> list[str]:
    """Return the figures of a text, as it writes them, for which another has only other values of the same kind.

    A limit, such as "up to 4 TB", is no other value than 5 TB.
    """
    facts = facts_of(text)
    theirs = [figure for figure in figures_of(facts_of(other)) if math.isfinite(figure.high - figure.low)]
    found: list[str] = []
    for own in figures_of(facts):
        alike = [
            one for one in theirs if own.kinds & one.kinds and (own.rate == one.rate or "" in (own.rate, one.rate))
        ]
        if alike and not any(agree(own, one) for one in alike):
            found.append(facts.text[own.start : own.end])
    return found


def part_of_name(number: Number, text: str) -> str:
    """Return the name that a number is part of, such as "python 3.11"; empty for an amount."""
    before = _WORD.findall(text[max(0, number.start - BEFORE) : number.start].rpartition("|")[2])
    named = before and (before[-1][0].isupper() or before[-1].lower() in _NAMING)
    if not named or number.unit or number.power or before[-1].lower() in STOP_WORDS:
        return ""
    return "" if _HEDGE.search(text, 0, number.start) else f"{before[-1]} {number.text}".lower()


def _is_amount(number: Number, text: str) -> bool:
    """Whether a number may be one: "no one" and "the one" count nothing, 10:30 is a time and 1990s a decade."""
    joined = text[max(0, number.start - 1) : number.start] in tuple("#:+,/") or re.match(r":\d", text[number.end :])
    counts = max(number.values) > 1 if number.spelled else max(map(abs, number.values)) < LARGEST
    return counts and not joined and number.unit not in ("ordinal", "decade")


def _kinds(number: Number, before: str) -> frozenset[str]:
    """Return the measured or counted thing, or else the last word of topic before: "the population is 400"."""
    if number.unit:
        return frozenset([UNITS[number.unit.lower()].dimension])
    if number.counted:
        return frozenset(number.counted)
    topical = [word for word in _WORD.findall(before)[-4:] if word.lower() not in STOP_WORDS and not word.isdigit()]
    return frozenset(f"={term}" for term in terms(" ".join(topical[-1:])))


def _interval(first: Number, last: Number, hedge: re.Match[str] | None) -> tuple[float, float]:
    """Return the ends of a figure, or of a range such as 30 to 35 million, in the dimension's own unit."""
    unit = UNITS.get((last.unit or first.unit).lower())
    scale = 0 if first.power else last.power
    values = sorted([*(value.scaleb(scale) for value in first.values if last is not first), *last.values])
    factor = float(unit.factor) if unit else 1.0
    about = ABOUT if hedge and hedge["about"] else 0.0
    low, high = (
        (float(value) + sign * max(_slack(value), about * abs(float(value)))) * factor
        for value, sign in ((values[0], -1), (values[-1], 1))
    )
    if hedge and hedge["least"]:
        return low, math.inf
    return (-math.inf, high) if hedge and hedge["most"] else (low, high)


def _slack(value: Decimal) -> float:
    """Return just less than half a unit of the last digit that is not zero, at most a twentieth: 3.5 is not 3 or 4."""
    exponent = value.normalize().as_tuple().exponent
    return min(0.499 * 10.0 ** int(exponent), ROUNDED * abs(float(value)))

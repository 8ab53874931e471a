"""What a sentence says that can be checked exactly: numbers with their units, dates, and names.

Written in different ways they compare equal: 1,000 and 1000, 5 % and five percent, 12 March 2019 and 2019-03-12.
"""

from __future__ import annotations

import re
from decimal import Decimal
from typing import NamedTuple

from fathom.evidence.opposites import is_denial
from fathom.evidence.units import CURRENCIES, MONTHS, NUMBER_WORDS, SCALES, UNITS, WEEKDAYS
from fathom.text.stopwords import STOP_WORDS
from fathom.text.terms import terms

__all__ = ["Date", "Facts", "Name", "Number", "facts_of", "plain"]

_MONTH = "|".join(sorted(MONTHS, key=len, reverse=True))
_DAY = r"(?P<d>\d{1,2})(?:st|nd|rd|th|\.)?"
_DATES = [
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"\b(?P<y>\d{4})[-/.](?P<n>\d{1,2})[-/.](?P<d>\d{1,2})\b",
        r"\b(?P<d>\d{1,2})[./](?P<n>\d{1,2})[./](?P<y>\d{4})\b",
        r"(?P<y>\d{4})\s?[年년](?:\s?(?P<n>\d{1,2})\s?[月월](?:\s?(?P<d>\d{1,2})\s?[日일])?)?",
        rf"\b{_DAY}\s+(?:of\s+)?(?P<m>{_MONTH})\b\.?(?:,?\s+(?P<y>\d{{4}})\b)?",
        rf"\b(?P<m>{_MONTH})\b\.?\s+(?P<d>\d{{1,2}})(?:st|nd|rd|th)?\b(?!\s?%)(?:,?\s+(?P<y>\d{{4}})\b)?",
        rf"\b(?P<m>{_MONTH})\b\.?,?\s+(?:of\s+)?(?P<y>\d{{4}})\b",
    )
]
_DIGITS = r"\d{1,3}(?:[ \u00a0\u2009\u202f]\d{3})+(?!\.?\d)|\d+(?:[.,’']\d+)*"
_NUMBER = re.compile(
    r"(?P<sign>(?:(?<=\s)|(?<=\()|^)[-−](?=\d))?(?P<currency>US\$|[$€£¥])?\s?"
    r"(?<![A-Za-z\d_.\u00c0-\u024f])(?<![A-Z]-)(?<![A-Za-z\d]/)"  # the 19 of COVID-19 is a part of a name
    rf"(?P<digits>{_DIGITS})(?P<tail>(?:st|nd|rd|th|s)\b)?"
    r"(?P<after>[\s\u00a0\u202f-]{0,2}[^\W\d_]+|\s?[%°$€£¥]C?F?)?"
)
_YEARS = re.compile(r"\b(?P<century>\d\d)(?P<first>\d\d)\s?[-–/]\s?(?P<second>\d\d)\b(?![-–/]\d)")
_SPELLED = re.compile(
    rf"\b(?:{'|'.join(sorted(NUMBER_WORDS, key=len, reverse=True))})\b(?P<after>[\s-]+[^\W\d_]+|\s?%)?", re.IGNORECASE
)
_CAPITALIZED = r"(?:[A-Z\u00c0-\u00de][\w’'&-]*[\w]|[A-Z](?:\.[A-Z])+\.?)"
_NAMES = re.compile(rf"\b{_CAPITALIZED}(?:\s+{_CAPITALIZED})*")
_MARKUP = re.compile(r"\*\*|__|`")
_POSSESSIVE = re.compile(r"['’]s?\Z")
_OPENING = re.compile(r"(?:\A|[.!?:;]\s|[\n|])[\s\"'“‘(*•-]*\Z")
_KINDS = {"ordinal", "decade"}


class Number(NamedTuple):
    """A number as it can be read: `1.000` is one or a thousand.

    Attributes:
        values: what it may mean.
        unit: in its usual sign; empty if it has none.
        counted: what is counted, where there is no unit: the term of the word behind the number.
        text: how it is written, with its unit.
        spelled: as a word.
    """

    values: frozenset[Decimal]
    unit: str
    counted: str
    text: str
    spelled: bool = False

    @property
    def kind(self) -> str:
        """What a number can be compared in: numbers of people with others of people."""
        return self.unit or self.counted

    def agrees(self, other: Number) -> bool:
        """Whether two numbers are the same; a unit that only one of them has is no difference, but 20 is not 20th."""
        unknown = not (self.unit and other.unit) and not {self.unit, other.unit} & _KINDS
        return bool(self.values & other.values) and (self.unit == other.unit or unknown)


class Date(NamedTuple):
    """A day, month or year; 0 where a part is not given."""

    year: int
    month: int
    day: int
    text: str

    def within(self, other: Date) -> bool:
        """Whether another date says at least as much, and the same."""
        pairs = zip(self[:3], other[:3], strict=True)
        return all(not own or own == its for own, its in pairs)


class Name(NamedTuple):
    """A proper name as its words. `opening`: it begins a sentence, where any word has a capital."""

    words: tuple[str, ...]
    opening: bool


class Facts(NamedTuple):
    """The numbers, dates and names of a text; a bare year is a date."""

    numbers: tuple[Number, ...]
    dates: tuple[Date, ...]
    names: tuple[Name, ...]


def facts_of(text: str) -> Facts:
    """Return what can be checked of a text."""
    text = plain(text)
    dates, rest = _dates(text)
    numbers: list[Number] = []
    for found in _NUMBER.finditer(rest):
        number = _number(found)
        if _is_year(found, number):
            dates.append(Date(int(found["digits"]), 0, 0, found["digits"]))
        else:
            numbers.append(number)
    for found in _SPELLED.finditer(rest):
        numbers.append(_spelled(found))
    return Facts(tuple(numbers), tuple(dates), tuple(_names(text)))


def plain(text: str) -> str:
    """Return a text without Markdown's emphasis."""
    return _MARKUP.sub("", text)


def _dates(text: str) -> tuple[list[Date], str]:
    """Return the dates and the text with blanks in their place."""
    dates: list[Date] = []
    for pattern in _DATES:
        for found in pattern.finditer(text):
            part = found.groupdict()
            day, year = int(part.get("d") or 0), int(part.get("y") or 0)
            month = MONTHS[part["m"].lower()] if part.get("m") else int(part.get("n") or 0)
            if month > 12 >= day:  # 12/31/2019
                month, day = day, month
            if month <= 12 and day <= 31:
                dates.append(Date(year, month, day, found[0].strip()))
                text = text[: found.start()] + " " * len(found[0]) + text[found.end() :]
    for found in _YEARS.finditer(text):
        if int(found["second"]) > int(found["first"]):  # 2010-15
            dates.append(Date(int(found["century"] + found["second"]), 0, 0, found[0]))
            text = text[: found.start() + 4] + " " * (len(found[0]) - 4) + text[found.end() :]
    return dates, text


def _number(found: re.Match[str]) -> Number:
    digits = found["digits"]
    after = (found["after"] or "").strip(" \u00a0\u202f-")
    values = _values(digits)
    unit = CURRENCIES.get(found["currency"] or "", "")
    scale = SCALES.get(after.lower(), 0) or (
        {"m": 6, "b": 9, "k": 3}.get(after.lower(), 0) if unit and len(after) == 1 else 0
    )
    if scale:
        values = frozenset(value * 10**scale for value in values)
        following = found.string[found.end() :].split(maxsplit=1)[:1]
        after = following[0].strip(".,;:)") if following else ""
    unit = unit or CURRENCIES.get(after, "") or ("%" if after.startswith("%") else UNITS.get(after.lower(), ""))
    if found["tail"]:
        unit = "decade" if found["tail"] == "s" else "ordinal"
    if found["sign"]:
        values = frozenset(-value for value in values)
    text = found[0] if unit or scale else (found["currency"] or "") + digits
    return Number(
        values, unit, "" if unit else _counted(found.string, found.end("digits"), scale), text.strip().rstrip(" -")
    )


def _values(digits: str) -> frozenset[Decimal]:
    """Return what digits with separators may mean; a version such as 3.11.2 keeps its digits as they are."""
    joined = re.sub(r"[’'\s]", "", digits)
    groups = re.split(r"[.,]", joined)
    if len(groups) == 1:
        return frozenset({Decimal(joined)})
    marks = set(re.findall(r"[.,]", joined))
    thousands = all(len(group) == 3 for group in groups[1:]) and len(groups[0]) <= 3 and groups[0] != "0"
    values = {Decimal("".join(groups))} if thousands and len(marks) == 1 else set()
    if len(groups) == 2 and not (thousands and "," in marks):
        values.add(Decimal(".".join(groups)))
    if len(marks) == 2:
        values.add(Decimal(f"{''.join(groups[:-1])}.{groups[-1]}"))
    return frozenset(values) or frozenset({Decimal("0." + "".join(f"{len(group)}{group}" for group in groups))})


def _is_year(found: re.Match[str], number: Number) -> bool:
    return (
        bool(re.fullmatch(r"1[1-9]\d\d|2[01]\d\d", found["digits"]))
        and not number.unit
        and not found["currency"]
        and (found["after"] or "").strip().lower() not in SCALES
    )


def _spelled(found: re.Match[str]) -> Number:
    word, _, after = found[0].partition(found["after"] or "\0")
    after = (found["after"] or "").strip(" -")
    value = Decimal(NUMBER_WORDS[word.lower()]) * 10 ** SCALES.get(after.lower(), 0)
    unit = "%" if after == "%" else UNITS.get(after.lower(), "")
    counted = "" if unit else _counted(found.string, found.start() + len(word), after.lower() in SCALES)
    return Number(frozenset({value}), unit, counted, word, spelled=True)


def _counted(text: str, end: int, skipped: int) -> str:
    """Return the term of the word behind a number, or behind its scale: of `5 million people`, people."""
    found = re.match(rf"(?:[\s-]+[^\W\d_]+){{{int(bool(skipped))}}}[\s-]+([^\W\d_]+)", text[end : end + 60])
    return (terms(found[1]) or [""])[0] if found and found[1].lower() not in STOP_WORDS else ""


def _names(text: str) -> list[Name]:
    names: list[Name] = []
    for found in _NAMES.finditer(text):
        words = [_POSSESSIVE.sub("", word) for word in found[0].split()]
        opening = bool(_OPENING.search(text[max(0, found.start() - 12) : found.start()]))
        if opening and words[0].lower() in STOP_WORDS:
            words, opening = words[1:], False
        if opening and len(words) == 1 and (text.startswith(",", found.end()) or is_denial(words[0])):
            continue  # "Overall, ...", "Lack of ..."
        kept = [w for w in words if w.lower() not in STOP_WORDS and w.lower() not in {*MONTHS, *WEEKDAYS}]
        if kept:
            names.append(Name(tuple(kept), opening and len(words) == len(kept)))
    return names

"""What a sentence says that can be checked exactly: numbers with their units, dates, and names.

Written in different ways they compare equal: 1,000 and 1000, 5 % and five percent, 0.5 km and 500 m. The question is
whether this very number stands in a source, so it may be read in several ways but is never rounded; whether two
figures can both be right is another one (`fathom.facts.intervals`).
"""

from __future__ import annotations

import re
from decimal import Decimal
from typing import NamedTuple

from fathom.facts.dates import MONTHS, WEEKDAYS, Date, find_dates
from fathom.facts.negation import is_denial
from fathom.facts.units import NUMBER_WORDS, SCALES, UNITS
from fathom.text.stopwords import STOP_WORDS
from fathom.text.terms import terms

_DIGITS = r"\d{1,3}(?:[ \u00a0\u2009\u202f]\d{3})+(?!\.?\d)|\d+(?:[.,’']\d+)*"
_NUMBER = re.compile(
    r"(?P<sign>(?:(?<=\s)|(?<=\()|^)[-−](?=\d))?(?P<currency>US\$|[$€£¥])?\s?"
    r"(?<![A-Za-z\d_.\u00c0-\u024f])(?<![A-Z]-)(?<![A-Za-z\d]/)"  # the 19 of COVID-19 is a part of a name
    rf"(?P<digits>{_DIGITS})(?P<tail>(?:st|nd|rd|th|s)\b)?"
    r"(?P<after>[\s\u00a0\u202f-]{0,2}(?:per\scent\b|[^\W\d_]+(?:/[hs]\b)?)|\s?[%°$€£¥]C?F?)?"
)
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
        if self.unit == other.unit or unknown:
            return bool(self.values & other.values)
        own, its = UNITS.get(self.unit.lower()), UNITS.get(other.unit.lower())
        if not own or not its or own.dimension != its.dimension:
            return False
        sizes = {value * own.factor for value in self.values}
        return any(value * its.factor in sizes for value in other.values)


class Dated(NamedTuple):
    """A date, and how it is written."""

    date: Date
    text: str


class Name(NamedTuple):
    """A proper name as its words. `opening`: it begins a sentence, where any word has a capital."""

    words: tuple[str, ...]
    opening: bool


class Facts(NamedTuple):
    """The numbers, dates and names of a text; a bare year is a date."""

    numbers: tuple[Number, ...]
    dates: tuple[Dated, ...]
    names: tuple[Name, ...]


def facts_of(text: str) -> Facts:
    """Return what can be checked of a text."""
    text = plain(text)
    dates, rest = find_dates(text), text
    for found in dates:
        rest = rest[: found.start] + " " * (found.end - found.start) + rest[found.end :]
    numbers = [*map(_number, _NUMBER.finditer(rest)), *map(_spelled, _SPELLED.finditer(rest))]
    dated = (Dated(found.date, text[found.start : found.end].strip()) for found in dates)
    return Facts(tuple(numbers), tuple(dated), tuple(_names(text)))


def plain(text: str) -> str:
    """Return a text without Markdown's emphasis."""
    return _MARKUP.sub("", text)


def _number(found: re.Match[str]) -> Number:
    digits = found["digits"]
    after = (found["after"] or "").strip(" \u00a0\u202f-")
    values = _values(digits)
    unit = _sign(found["currency"] or "")
    scale = SCALES.get(after.lower(), 0) or (
        {"m": 6, "b": 9, "k": 3}.get(after.lower(), 0) if unit and len(after) == 1 else 0
    )
    if scale:
        values = frozenset(value * 10**scale for value in values)
        following = found.string[found.end() :].split(maxsplit=1)[:1]
        after = following[0].strip(".,;:)") if following else ""
    unit = unit or _sign(after)
    if found["tail"]:
        unit = "decade" if found["tail"] == "s" else "ordinal"
    if found["sign"]:
        values = frozenset(-value for value in values)
    text = found[0] if unit or scale else (found["currency"] or "") + digits
    return Number(
        values, unit, "" if unit else _counted(found.string, found.end("digits"), scale), text.strip().rstrip(" -")
    )


def _sign(word: str) -> str:
    """Return the sign of a unit; empty for any other word."""
    unit = UNITS.get(" ".join(word.lower().split()))
    return unit.sign if unit else ""


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


def _spelled(found: re.Match[str]) -> Number:
    word, _, after = found[0].partition(found["after"] or "\0")
    after = (found["after"] or "").strip(" -")
    value = Decimal(NUMBER_WORDS[word.lower()]) * 10 ** SCALES.get(after.lower(), 0)
    unit = _sign(after)
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

"""The figures of a sentence: what is counted or measured, and between which values the figure lies.

"About 400", "more than 400" and "400" say different things, and 400 may be 412 rounded: so a figure is an interval,
and two figures differ only where their intervals do not touch. A claim's number must be in its source as it is, so
`fathom.facts.numbers` reads numbers without any slack; both know the same units, scales and number words.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from itertools import takewhile
from typing import NamedTuple

from fathom.facts.units import CURRENCIES, DIMENSIONS, NUMBER_WORDS, SCALES, UNITS
from fathom.text.stopwords import STOP_WORDS
from fathom.text.terms import terms

ROUNDED = 0.05  # the most that rounding may hide, as a share of the figure
CLOSE = 0.02  # figures nearer than this are one figure, measured twice
ABOUT = 0.1  # what "about" leaves open

_NUMBER = r"\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?"
_WORDS = {word: value for word, value in NUMBER_WORDS.items() if value > 1}  # "no one", "the one" count nothing
_WORD = "|".join(sorted(_WORDS, key=len, reverse=True))
_SCALE = "|".join(sorted(SCALES, key=len, reverse=True))
_ABOUT = r"about|around|approximately|approx\.|roughly|nearly|almost|circa|ca\.|some|(?:an )?estimated|close to|~|≈"
_FROM = r"more than|over|at least|above|exceed(?:s|ed|ing)?|upwards of|no (?:less|fewer) than|minimum of|≥|>"
_TO = r"less than|fewer than|under|up to|at most|below|no more than|maximum of|as (?:much|many) as|≤|<"
_MONEY = r"US\$|[$€£¥]|USD |EUR |GBP "
_FIGURE = re.compile(
    rf"(?:\b(?P<about>{_ABOUT})|\b(?P<from>{_FROM})|\b(?P<to>{_TO}))?(?:the )?\s?(?<![\w.,/:#+-])(?P<money>{_MONEY})?"
    rf"(?P<low>{_NUMBER}|\b(?:{_WORD})\b)(?![\d,.]*\d|(?:st|nd|rd|th)\b|:\d)(?P<plus>\+| or more\b)?"
    rf"(?:\s?(?:[-–—]|to|and)\s?(?:{_MONEY})?(?P<high>{_NUMBER})(?![\d,.]*\d))?"
    rf"[\s-]?(?P<scale>(?:{_SCALE}|k|(?(money)m|(?!)))\b)?"
    r"(?P<after>(?:[\s-]{0,2}(?:%|[°A-Za-zµ][\w²³°/]*)){0,3})",
    re.IGNORECASE,
)
_HEAD = re.compile(r"\b([a-z]+) of\s*\Z")
_LETTER_SCALES = {"k": 3, "m": 6}
_LETTERS = re.compile(r"%|[°A-Za-zµ][\w²³°/]*")
_RATE = re.compile(r"\s*(?:per|a|an|each|every|/)\s*(second|minute|hour|day|week|month|year|person|capita|head)\b")
# Where a number after one of these is a name, not an amount.
_NUMBERED = """
section figure fig table chapter page version step level phase grade type class line route number no model article rule
volume edition round season episode stage generation appendix equation part group room gate
"""
_NAMING = frozenset(_NUMBERED.split())


class Figure(NamedTuple):
    """A figure of a sentence. `kinds`: the unit's dimension, or the stems of what is counted; `rate`: per what."""

    kinds: frozenset[str]
    rate: str
    head: str  # the stem of the noun in "a profit of 4 million"
    low: float
    high: float
    start: int
    end: int  # of the figure and its unit, in the sentence


def figures_of(sentence: str) -> Iterator[Figure]:
    """Yield the figures of a sentence whose years and dates were taken out.

    Numbers that are part of a name ("Python 3", "section 4") are none.
    """
    for found in _FIGURE.finditer(sentence):
        letters = list(_LETTERS.finditer(found["after"]))
        kind = _kind(found, [letter[0].lower() for letter in letters], sentence)
        scale = 10.0 ** (SCALES | _LETTER_SCALES).get((found["scale"] or "").lower(), 0)
        glued = sentence[found.end("low") : found.end("low") + 1].isalpha()
        if not kind.kinds or (glued and scale == 1.0 and kind.kinds.isdisjoint(DIMENSIONS)):
            continue
        size = scale * kind.factor
        low, high = _interval(found)
        end = found.start("after") + (letters[kind.words - 1].end() if kind.words else 0)
        rate = _RATE.match(sentence, end)
        head = _HEAD.search(sentence, 0, found.start())
        of = "".join(terms(head[1])) if head else ""
        yield Figure(kind.kinds, rate[1] if rate else "", of, low * size, high * size, found.start("low"), end)


def agree(a: Figure, b: Figure) -> bool:
    """Whether two figures can be the same one: their ranges overlap, or they are as good as equal."""
    if a.low <= b.high and b.low <= a.high:
        return True
    ends = [abs(end) for end in (a.low, a.high, b.low, b.high) if math.isfinite(end)]
    # What is rounded to 14 and to 15 nearly touches: the middles are one apart.
    middles = abs(a.low + a.high - b.low - b.high) / 2
    apart = middles if len(ends) == 4 else max(a.low, b.low) - min(a.high, b.high)
    return apart <= CLOSE * max(ends) / 2


class _Kind(NamedTuple):
    """What a figure is of, the size of its unit, and how many of the words behind it say so."""

    kinds: frozenset[str]
    factor: float = 1.0
    words: int = 0


def _kind(found: re.Match[str], words: Sequence[str], sentence: str) -> _Kind:
    """Return what is measured or counted; no kinds where the number is a name's."""
    if found["money"]:
        return _Kind(frozenset([UNITS[found["money"].strip().lower()].dimension]))
    if words[:2] == ["per", "cent"]:
        return _Kind(frozenset([UNITS["%"].dimension]), 1.0, 2)
    units = [UNITS.get(word) for word in words[:2]]
    for used, unit in enumerate(units, start=1):
        if unit and (used == 1 or unit.dimension in CURRENCIES):  # "96 million US dollars"
            return _Kind(frozenset([unit.dimension]), float(unit.factor), used)
    before = re.findall(r"[\w'’]+", sentence[max(0, found.start() - 60) : found.start()])
    plain = not (found["about"] or found["from"] or found["to"] or found["scale"])
    if plain and before and (before[-1].lower() in _NAMING or (before[-1][0].isupper() and len(before) > 1)):
        return _Kind(frozenset())
    counted = list(takewhile(lambda word: word not in STOP_WORDS and word != "per", words[:2]))
    if counted:
        return _Kind(frozenset(terms(" ".join(counted))), 1.0, len(counted))
    topical = [word for word in before[-4:] if word.lower() not in STOP_WORDS and not word.isdigit()]
    return _Kind(frozenset(f"={term}" for term in terms(" ".join(topical[-1:]))))


def _interval(found: re.Match[str]) -> tuple[float, float]:
    low, slack = _value(found["low"])
    high, high_slack = _value(found["high"]) if found["high"] else (low, slack)
    if high < low:  # no range: "from 12 to 8"
        low, high = high, low
    if found["about"]:
        slack, high_slack = max(slack, ABOUT * low), max(high_slack, ABOUT * high)
    if found["from"] or found["plus"]:
        return low - slack, math.inf
    if found["to"]:
        return -math.inf, high + high_slack
    return low - slack, high + high_slack


def _value(text: str) -> tuple[float, float]:
    """Return a number and half a unit of its last digit that is not a padding zero, at most a twentieth of it."""
    digits = str(_WORDS.get(text.lower(), text)).replace(",", "")
    value = float(digits)
    whole, _, fraction = digits.partition(".")
    unit = 10.0 ** -len(fraction) if fraction else 10.0 ** (len(whole) - len(whole.rstrip("0")))
    # Just less than half: neither 3 nor 4 is 3.5.
    return value, min(0.499 * unit, ROUNDED * value)

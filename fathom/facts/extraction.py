"""What a sentence says that can be checked exactly: its numbers, dates and names, each with its place."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from fathom.facts.dates import MONTHS, WEEKDAYS, DateFound, find_dates
from fathom.facts.negation import NEGATION
from fathom.facts.numbers import Number, numbers_of
from fathom.text.terms import STOP_WORDS

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
    """The numbers, dates and names of a text, without Markdown's emphasis; a bare year is a date."""

    text: str
    undated: str  # with its dates blanked, everything else in its place
    numbers: list[Number]
    dates: list[DateFound]
    names: list[Name]


def facts_of(text: str) -> Facts:
    """Return what can be checked of a text."""
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

"""Notes that contradict each other: another number or date, from another source, for what reads as the same thing.

A false alarm costs the reader's trust, so two sentences must be nearly alike but for one figure of one kind. What
sources contradict each other in without figures is not seen.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import NamedTuple

from fathom.llm.extractive.statements import Statement
from fathom.text import query_terms, split_sentences, terms
from fathom.text.stopwords import STOP_WORDS

__all__ = ["Disagreement", "disagreements"]

MOST = 5
SHARED = 0.6  # of the shorter sentence's terms, figures aside
LONGER = 0.4  # of the longer one's
SAME = 0.8  # of the longer one's, where they share only two
LEAST_SHARED = 3  # terms
NEAR = 0.02  # figures that differ by a smaller share are the same, rounded

_MONTH = r"(?:January|February|March|April|May|June|July|August|September|October|November|December)"
_DATE = re.compile(rf"\b(?:\d{{1,2}}\.? )?{_MONTH}\b(?: \d{{1,2}}\b,?)?(?: \d{{4}}\b)?")
_YEAR = re.compile(r"(?<![\d.,$€£-])(?:19|20)\d\d(?![\d%-]|[.,]\d)")
_NUMBER = re.compile(
    r"(?<![\w.,-])(?P<money>[$€£])?\s?(?P<value>\d+(?:,\d{3})*(?:\.\d+)?)(?![\w.-]*\d)"
    r"\s?(?P<scale>(?:thousand|million|billion)\b)?\s?(?P<unit>%|[A-Za-z]+)?"
)
_LEANING = re.compile(r"\b(?:this|these|it|they|he|she)\b", re.IGNORECASE)  # what it is about stands elsewhere
_COUNTED = re.compile(r"\b([a-z]{3,}) \d[\d,]* ([a-z]{3,})")
_NAME = re.compile(r"(?<=[\w,;] )(?!I\b)[A-Z][\w-]+|\bQ[1-4]\b")
_SCALES = {"thousand": 1e3, "million": 1e6, "billion": 1e9}


class Disagreement(NamedTuple):
    """Two quotations that cannot both hold, and their sources."""

    a: str
    b: str
    sources: tuple[str, ...]


class _Told(NamedTuple):
    text: str
    sources: tuple[str, ...]
    terms: frozenset[str]
    names: frozenset[str]  # as terms
    counted: frozenset[tuple[str, str]]  # the word before a number and what it counts: ("employ", "people")
    figures: dict[str, list[str | float]]  # by kind: "date", "year", or what is counted


def disagreements(statements: Sequence[Statement]) -> list[Disagreement]:
    """Return the pairs of sentences that give another figure for the same thing, at most five."""
    told = list({(t.text, t.sources): t for t in _told(statements)}.values())
    holding: dict[str, list[int]] = {}
    for i, one in enumerate(told):
        for kind in one.figures:
            holding.setdefault(kind, []).append(i)
    pairs = {pair for same in holding.values() for pair in combinations(same, 2)}
    found = [(told[i], told[j]) for i, j in sorted(pairs) if _exclude(told[i], told[j])]
    return [Disagreement(a.text, b.text, tuple(dict.fromkeys([*a.sources, *b.sources]))) for a, b in found[:MOST]]


def _told(statements: Sequence[Statement]) -> Iterator[_Told]:
    for statement in statements:
        for sentence in split_sentences(statement.text):
            text = sentence.clean
            if (figures := _figures(text)) and not _LEANING.search(text):
                plain = _NUMBER.sub(lambda m: f" {m['unit'] or ''} ", _YEAR.sub(" ", _DATE.sub(" ", text)))
                names = frozenset(terms(" ".join(_NAME.findall(_DATE.sub(" ", text)))))
                yield _Told(text, statement.sources, frozenset(query_terms(plain)), names, _counted(text), figures)


def _counted(text: str) -> frozenset[tuple[str, str]]:
    found = ((m[1], m[2]) for m in _COUNTED.finditer(text) if not {m[1], m[2]} & STOP_WORDS)
    return frozenset(("".join(terms(verb)), "".join(terms(noun))) for verb, noun in found)


def _figures(text: str) -> dict[str, list[str | float]]:
    """Return the dates, years and numbers of a sentence; a number's kind is what it counts."""
    figures: dict[str, list[str | float]] = {}
    for date in _DATE.finditer(text):
        figures.setdefault("date", []).append(" ".join(sorted(date[0].replace(",", "").replace(".", "").split())))
    rest = _DATE.sub(" ", text)
    for year in _YEAR.finditer(rest):
        figures.setdefault("year", []).append(year[0])
    for number in _NUMBER.finditer(_YEAR.sub(" ", rest)):
        unit = "".join(terms(number["unit"] or ""))
        kind = number["money"] or ("%" if number["unit"] in ("%", "percent") else unit)
        value = float(number["value"].replace(",", "")) * _SCALES.get(number["scale"] or "", 1.0)
        figures.setdefault(kind, []).append(value)
    return figures


def _exclude(a: _Told, b: _Told) -> bool:
    """Whether two sentences are about one thing and give one figure of a kind each, not the same."""
    if set(a.sources) & set(b.sources) or (a.names - b.names and b.names - a.names):
        return False
    kinds = set(a.figures) | set(b.figures)
    shared = (a.terms & b.terms) - kinds
    short, long = sorted((len(a.terms - kinds), len(b.terms - kinds)))
    if not shared - a.names - b.names:
        return False  # they are about the same thing, and say something else of it
    alike = len(shared) >= max(LEAST_SHARED, SHARED * short, LONGER * long) or len(shared) >= max(2, SAME * long)
    if not alike and not a.counted & b.counted:
        return False
    differing = [k for k in a.figures if k in b.figures and _differ(a.figures[k], b.figures[k])]
    # Figures of two years or days are figures of two things.
    return len(differing) == 1 and (differing[0] in ("date", "year") or not _other_time(a, b))


def _differ(first: list[str | float], second: list[str | float]) -> bool:
    """Whether one figure stands against one or more others, all unlike it."""
    return min(len(first), len(second)) == 1 and not any(_agree(a, b) for a in first for b in second)


def _agree(a: str | float, b: str | float) -> bool:
    if isinstance(a, str) or isinstance(b, str):
        # "March 2024" and "12 March 2024" agree.
        return set(str(a).split()) <= set(str(b).split()) or set(str(b).split()) <= set(str(a).split())
    return abs(a - b) <= NEAR * max(abs(a), abs(b))


def _other_time(a: _Told, b: _Told) -> bool:
    shared = {"date", "year"} & a.figures.keys() & b.figures.keys()
    return any(a.figures[kind] != b.figures[kind] for kind in sorted(shared))

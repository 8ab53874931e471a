"""A row of a table against the rows of its sources' tables, cell by cell.

A comparison of words alone would take the code of one row and the meaning of the next for a row of the source.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from typing import NamedTuple

from fathom.evidence.complaints import agreeing, complaints_of, doubts
from fathom.evidence.passages import Passage, Row, Search
from fathom.evidence.support import spaced_words, support
from fathom.facts.extraction import facts_of
from fathom.text.sentences import Sentence

SAID = 0.6  # of a cell's words, in other words than the source's, as for a sentence: see `verdict.py`
_CELL = re.compile(r"(?:\\.|[^|\t\\]|\\(?=\Z))+")


class NearestRows(NamedTuple):
    """What the sources' tables have of a row: all of it, in one row of each of some sources, or most of it in one."""

    passages: list[Passage]  # the rows, the best first
    missing: list[str]  # the cells that the best row lacks
    elsewhere: bool  # these are in other rows, which are among the passages

    @property
    def has_figures(self) -> bool:
        """Whether a number or date is missing."""
        facts = [facts_of(cell) for cell in self.missing]
        return any(found.numbers or found.dates for found in facts)


def nearest_rows(claim: str, search: Search, source_ids: Collection[str] | None = None) -> NearestRows | None:
    """Return the rows of some sources that have the cells of a claim, `a | b | c`, or come nearest to it."""
    cells = cells_of(claim)
    rows = search.rows(claim, source_ids)
    lacking = [[cell for cell in cells if not _has(row, cell)] for row in rows]
    if not rows or not cells:
        return None
    whole: dict[str, Passage] = {}
    for row, missing in zip(rows, lacking, strict=True):
        if not missing:
            whole.setdefault(row.passage.text.source.source_id, row.passage)
    if whole:
        return NearestRows(list(whole.values()), [], elsewhere=False)
    fewest = min(range(len(rows)), key=lambda n: len(lacking[n]))
    holders = [_holder(cell, search, source_ids) for cell in lacking[fewest]]
    others = [row.passage for row in holders if row]
    passages = list(dict.fromkeys([rows[fewest].passage, *others]))
    return NearestRows(passages, lacking[fewest], elsewhere=len(lacking[fewest]) < len(cells) and all(holders))


def _holder(cell: str, search: Search, source_ids: Collection[str] | None) -> Row | None:
    return next((row for row in search.rows(cell, source_ids) if _has(row, cell)), None)


def cells_of(text: str) -> list[str]:
    """Return the cells of a row that are not empty."""
    return [cell for found in _CELL.findall(text) if (cell := found.strip())]


def _has(row: Row, cell: str) -> bool:
    """Whether a cell is in a row or names one of its columns; in other words it must agree as a sentence must."""
    cells = list(_passages(row))
    words = spaced_words(cell)
    if any(_alike(cell, words, own.words) for own in cells):
        return True
    return bool(words.strip()) and any(_says(own, cell, words) for own in [*cells, row.passage])


def _alike(cell: str, words: str, other: str) -> bool:
    return spaced_words(other) == words if words.strip() else other == cell


def _says(own: Passage, cell: str, words: str) -> bool:
    if words in spaced_words(own.words):
        return not doubts(cell, own.best.text)
    said = support(cell, [own.words, *agreeing(cell, [own.words])]) >= SAID
    return said and not complaints_of(cell, [own])


def _passages(row: Row) -> Iterator[Passage]:
    """Yield the cells of a row and of its header."""
    for sentence in filter(None, (row.passage.best, row.header)):
        for found in _CELL.finditer(sentence.text):
            if text := found[0].strip():
                start = sentence.start + sentence.text.index(text, found.start())
                cell = Sentence(text, start, start + len(text), "table", sentence.paragraph)
                yield Passage(row.passage.text, cell.start, cell.end, cell)

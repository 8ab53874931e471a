"""How closely some texts match a claim: sentences by their words, rows of a table cell by cell.

It is no verdict: a true sentence in other words is `apart`, and one with two things exchanged may be `alike`. It
finds what to show beside a claim, further sources that say the same, and sentences that changed from one run to a
later one.

A table row is compared with the rows of its sources' tables cell by cell. A comparison of words alone would take the
code of one row and the meaning of the next for a row of the source.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from enum import IntEnum
from typing import NamedTuple

from fathom.evidence.complaints import ClaimComplaint, agreeing, complaints_of, doubts
from fathom.evidence.passages import Search, SourcePassage, TableRow
from fathom.evidence.stored import StoredText
from fathom.evidence.support import spaced_words, support
from fathom.facts.extraction import facts_of
from fathom.facts.numbers import Number
from fathom.text.blocks import Kind
from fathom.text.sentences import Sentence
from fathom.text.tables import filled_cells
from fathom.text.terms import query_terms

ALIKE, NEAR = 0.58, 0.38  # least scores; see docs/evidence.md for what they cost and buy
SCATTERED = 0.38  # least score of a longer stretch, where words meet by chance more often
GRAVE, SLIGHT = 0.3, 0.1  # penalty of a complaint when passages are ranked
MAX_PASSAGES = 3
ADDED = 0.05  # share that a further passage must add
CONSIDERED = 6  # passages that are tried as further ones
APART = ClaimComplaint("the quote has these words, but far from each other", grave=False)
MIXED = ClaimComplaint("the cells are of different rows", grave=True)
OTHER_CODE = ClaimComplaint("the source does not have this code word for word", grave=False)


class Likeness(IntEnum):
    """How closely a text matches a claim."""

    apart = 0
    near = 1
    alike = 2


class Nearest(NamedTuple):
    """A claim and the texts it was compared with. `passages` are the best first."""

    likeness: Likeness
    score: float
    passages: list[SourcePassage]
    complaints: list[str]


class _Rated(NamedTuple):
    """Passages, rated by how they support a claim together."""

    passages: list[SourcePassage]
    score: float
    complaints: list[ClaimComplaint]

    @property
    def worth(self) -> float:
        return self.score - sum(GRAVE if complaint.grave else SLIGHT for complaint in self.complaints)

    @property
    def grave(self) -> bool:
        return any(complaint.grave for complaint in self.complaints)

    @property
    def likeness(self) -> Likeness:
        if self.score < NEAR or self.grave:
            return Likeness.apart
        return Likeness.near if self.score < ALIKE or self.complaints else Likeness.alike


def nearest(claim: str, search: Search, source_ids: Collection[str] | None = None, kind: Kind = "prose") -> Nearest:
    """Compare a claim with the texts of some sources, or of all that are searched.

    What a source says word for word is alike, and the passage is that place. Otherwise one passage has to have the
    claim, or up to three together, each with a good part of it. A claim is apart if the passages lack its numbers,
    dates or names. A claim that they seem to deny is near, and so is a claim in different words if most of its words
    are close together in a source. For `kind` table, a row, every cell must be in one row of a source if any of its
    tables has them; `kind` code must match word for word to be more than near.
    """
    if kind == "table" and (of_row := _nearest_row(claim, search, source_ids)):
        return of_row
    said = verbatim(claim, search, source_ids, kind) if kind != "table" else []
    if said and len(said) == (1 if source_ids is None else len(source_ids)):
        return Nearest(Likeness.alike, 1.0, said[:MAX_PASSAGES], [])
    rated = _rated(claim, search.passages(claim, source_ids))
    if said:
        own = {passage.text.source.source_id for passage in said}
        said += [passage for passage in _supporting(rated) if passage.text.source.source_id not in own]
        return Nearest(Likeness.alike, 1.0, said[:MAX_PASSAGES], [])
    chosen = _together(claim, rated) if rated else None
    if not chosen or (chosen.score < NEAR and not chosen.grave):
        chosen = _scattered(claim, search, source_ids) or chosen
    return _found(chosen, rated, [OTHER_CODE] if kind == "code" else [])


def verbatim(claim: str, search: Search, source_ids: Collection[str] | None, kind: Kind) -> list[SourcePassage]:
    """Return where sources have a claim word for word, in sentences that deny nothing of it: one place of each source.

    It is the first place that is a whole sentence or cell, or else the first. For code, signs and capitals must match,
    too.
    """
    found: dict[str, SourcePassage] = {}
    for passage in search.verbatim(claim, source_ids):
        source_id = passage.text.source.source_id
        if source_id in found and (is_whole(found[source_id]) or not is_whole(passage)):
            continue
        if kind == "code":
            fits = "".join(passage.words.split()) == "".join(claim.split())
        else:
            fits = not doubts(claim, passage.best.text)
        if fits:
            found[source_id] = passage
    return list(found.values())


def is_whole(passage: SourcePassage) -> bool:
    """Whether a place is all that its sentence, or the cell of its row, says: what else it says may limit it.

    The number of an item says nothing.
    """
    best, text = passage.best, passage.text.text
    before, after = best._replace(text=text[best.start : passage.start]).clean, text[passage.end : best.end]
    if best.kind == "table":
        before, after = before.rpartition("|")[2], after.partition("|")[0]
    return not query_terms(f"{before} {after}")


def same_amounts(claim: str, search: Search, source_ids: Collection[str] | None) -> list[SourcePassage]:
    """Return the sentences that say a claim word for word with its amounts in other units: 48 months, four years."""
    own = _around_numbers(claim)
    found: dict[str, SourcePassage] = {}
    for passage in search.passages(claim, source_ids) if own.numbers else ():
        if _are_same(own, _around_numbers(passage.best.text)):
            found.setdefault(passage.text.source.source_id, passage)
    return list(found.values())


class _Numbered(NamedTuple):
    """The words before, between and behind the numbers of a sentence, and the numbers."""

    words: list[str]
    numbers: list[Number]


def _around_numbers(sentence: str) -> _Numbered:
    numbers = facts_of(sentence).numbers
    edges = [0, *(edge for number in numbers for edge in (number.start, number.end)), len(sentence)]
    return _Numbered([spaced_words(sentence[a:b]) for a, b in zip(edges[::2], edges[1::2], strict=True)], numbers)


def _are_same(own: _Numbered, theirs: _Numbered) -> bool:
    return own.words == theirs.words and all(map(_is_same, own.numbers, theirs.numbers))


def _is_same(number: Number, other: Number) -> bool:
    """Whether two numbers are one amount, however they are read; both have a unit, or neither."""
    clear = len(number.values) == len(other.values) == 1 or number.values == other.values
    return clear and bool(number.unit) == bool(other.unit) and number.agrees(other)


def _nearest_row(claim: str, search: Search, source_ids: Collection[str] | None) -> Nearest | None:
    """Compare a row of a table with one row of the sources' tables; None if these say nothing about it."""
    near = nearest_rows(claim, search, source_ids)
    if not near:
        return None
    if not near.missing:
        return Nearest(Likeness.alike, 1.0, near.passages[:MAX_PASSAGES], [])
    prose = [passage for passage in search.passages(claim, source_ids) if passage.best.kind != "table"]
    rated = _rated(claim, prose)
    if rated and (chosen := _together(claim, rated)).likeness is not Likeness.apart:
        return _found(chosen, rated, [])
    absent = ClaimComplaint(f"“{near.missing[0]}” is not in the row that comes nearest", grave=near.has_figures)
    chosen = _rate(claim, near.passages[:1])
    complaints = [MIXED if near.elsewhere else absent, *chosen.complaints]
    chosen = chosen._replace(passages=near.passages[:MAX_PASSAGES], complaints=complaints)
    return _found(chosen, [], [])


def _found(chosen: _Rated | None, rated: Sequence[_Rated], more: Sequence[ClaimComplaint]) -> Nearest:
    if not chosen:
        return Nearest(Likeness.apart, 0.0, [], ["no cited source has a passage on this"])
    chosen = chosen._replace(complaints=[*more, *chosen.complaints])
    passages = chosen.passages + [passage for passage in _supporting(rated) if passage not in chosen.passages]
    complaints = [complaint.text for complaint in chosen.complaints]
    return Nearest(chosen.likeness, round(chosen.score, 4), passages[:MAX_PASSAGES], complaints)


def nearest_in(claim: str, texts: Sequence[StoredText]) -> Nearest:
    """Compare one claim with some texts."""
    return nearest(claim, Search(texts))


def supporting(claim: str, passages: Iterable[SourcePassage]) -> list[SourcePassage]:
    """Return the best of some passages for each source, if it supports the claim alone."""
    return _supporting(_rated(claim, passages))


def _rated(claim: str, passages: Iterable[SourcePassage]) -> list[_Rated]:
    return sorted((_rate(claim, [passage]) for passage in passages), key=lambda found: -found.worth)


def _supporting(rated: Sequence[_Rated]) -> list[SourcePassage]:
    best: dict[str, _Rated] = {}
    for found in rated:
        best.setdefault(found.passages[0].text.source.source_id, found)
    return [found.passages[0] for found in best.values() if found.likeness is Likeness.alike]


def _together(claim: str, rated: Sequence[_Rated]) -> _Rated:
    """Return the best passage and, if it does not support the claim alone, others that add what it lacks."""
    chosen = rated[0]
    others = [found.passages[0] for found in rated[1 : 1 + CONSIDERED] if found.score >= NEAR]
    while chosen.likeness is not Likeness.alike and len(chosen.passages) < MAX_PASSAGES:
        options = [_rate(claim, [*chosen.passages, other]) for other in others if other not in chosen.passages]
        better = max(options, key=lambda found: found.worth, default=chosen)
        if better.worth < chosen.worth + ADDED:
            break
        chosen = better
    return chosen


def _scattered(claim: str, search: Search, source_ids: Collection[str] | None) -> _Rated | None:
    """Return the stretch of a source that has enough of a claim's words, though they are not said together."""
    passage = search.stretch(claim, source_ids)
    found = _rate(claim, [passage]) if passage else None
    return found._replace(complaints=[APART, *found.complaints]) if found and found.score >= SCATTERED else None


def _rate(claim: str, passages: list[SourcePassage]) -> _Rated:
    quotes = [passage.words for passage in passages]
    score = support(claim, [*quotes, *agreeing(claim, quotes)])  # a quote with "eight" supports 8
    return _Rated(passages, score, complaints_of(claim, passages))


SAID = 0.6  # of a cell's words, in other words than the source's, as for a sentence: see `verdict.py`
_CELL = re.compile(r"(?:\\.|[^|\t\\]|\\(?=\Z))+")
_BRACKETS = re.compile(r"\([^()]*\)")


class NearestRows(NamedTuple):
    """The parts of a row that the sources' tables have: all cells in one row of some sources, or most in one row."""

    passages: list[SourcePassage]  # the rows, the best first
    missing: list[str]  # the cells that the best row lacks
    elsewhere: bool  # these are in other rows, which are among the passages

    @property
    def has_figures(self) -> bool:
        """Whether a number or date is missing."""
        facts = [facts_of(cell) for cell in self.missing]
        return any(found.numbers or found.dates for found in facts)


def nearest_rows(
    claim: str, search: Search, source_ids: Collection[str] | None = None, head: str = ""
) -> NearestRows | None:
    """Return the rows of some sources that have the cells of a claim, `a | b | c`, or else come closest to it.

    `head` has the names of its columns: rows that have its figures in columns of other names are left out.
    """
    cells = cells_of(claim)
    rows = [row for row in search.rows(claim, source_ids) if has_below(row, claim, head)]
    lacking = [[cell for cell in cells if not _has(row, cell)] for row in rows]
    if not rows or not cells:
        return None
    whole: dict[str, SourcePassage] = {}
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


def rows_said(claim: str, head: str, search: Search, source_ids: Collection[str] | None) -> list[SourcePassage]:
    """Return the rows, one of each source, that have each cell of a claim, `a | b | c`, in a column of the same name.

    `head` has the names of its columns; without them, a cell may stand in any column. A cell is the same if its words
    or amounts are. A name need not have the unit in brackets that the other has. A claim that leaves cells out, which
    may be conditions, must be true of every row that begins like it.
    """
    cells, names = cells_of(claim), cells_of(head)
    whole: dict[str, SourcePassage] = {}
    parts: dict[str, list[tuple[bool, SourcePassage]]] = {}
    for row in search.rows(claim, source_ids) if cells and len(names) in (0, len(cells)) else ():
        own, named = _cells_and_names(row)
        columns = list(zip(own, named if names else own, strict=False)) if len(named) == len(own) or not names else []
        told = [
            any((not names or _is_name(name, column)) and _is_cell(cell, other) for other, column in columns)
            for cell, name in zip(cells, names or cells, strict=True)
        ]
        source_id = row.passage.text.source.source_id
        if all(told) and len(cells) == len(own):
            whole.setdefault(source_id, row.passage)
        elif told[0]:
            parts.setdefault(source_id, []).append((all(told), row.passage))
    sure = {source_id: rows[0][1] for source_id, rows in parts.items() if all(said for said, _ in rows)}
    return list({**sure, **whole}.values())


def has_below(row: TableRow, claim: str, head: str) -> bool:
    """Whether a row has the figures of a claim's cells in columns whose names say the same; true if any has no name.

    Of two such names, one has all words of the other; units in brackets do not count.
    """
    cells, names = cells_of(claim), cells_of(head)
    own, named = _cells_and_names(row)
    if len(cells) != len(names) or len(own) != len(named):
        return True
    return all(
        any(_are_names(name, column) for column in columns)
        for cell, name in zip(cells, names, strict=True)
        if facts_of(cell).numbers
        if (columns := [column for other, column in zip(own, named, strict=True) if _is_cell(cell, other)])
    )


def _are_names(name: str, other: str) -> bool:
    one, two = (set(query_terms(_BRACKETS.sub("", text))) for text in (name, other))
    return one <= two or two <= one


def _holder(cell: str, search: Search, source_ids: Collection[str] | None) -> TableRow | None:
    return next((row for row in search.rows(cell, source_ids) if _has(row, cell)), None)


def _cells_and_names(row: TableRow) -> tuple[list[str], list[str]]:
    """Return the cells of a row that are not empty, and the names of their columns, as far as these are known."""
    own, named = (part.text if part else "" for part in (row.passage.best, row.header))
    filled = filled_cells(named, own)
    if filled is None:
        return cells_of(own), cells_of(named)
    return [cell for _, cell in filled], [name for name, _ in filled]


def cells_of(text: str) -> list[str]:
    """Return the cells of a row that are not empty."""
    return [cell for found in _CELL.findall(text) if (cell := found.strip())]


def _has(row: TableRow, cell: str) -> bool:
    """Whether a cell is in a row or names one of its columns; a reworded cell must agree like a sentence."""
    cells = list(_passages(row))
    words = spaced_words(cell)
    if any(_alike(cell, words, own.words) for own in cells):
        return True
    return bool(words.strip()) and any(_says(own, cell, words) for own in [*cells, row.passage])


def _is_cell(cell: str, other: str) -> bool:
    if _alike(cell, spaced_words(cell), other):
        return True
    own = _around_numbers(cell)
    return bool(own.numbers) and _are_same(own, _around_numbers(other))


def _is_name(name: str, other: str) -> bool:
    one, two = ({spaced_words(text), spaced_words(_BRACKETS.sub("", text))} for text in (name, other))
    return spaced_words(name) in two or spaced_words(other) in one


def _alike(cell: str, words: str, other: str) -> bool:
    return spaced_words(other) == words if words.strip() else other == cell


def _says(own: SourcePassage, cell: str, words: str) -> bool:
    if words in spaced_words(own.words):
        return not doubts(cell, own.best.text)
    said = support(cell, [own.words, *agreeing(cell, [own.words])]) >= SAID
    return said and not complaints_of(cell, [own])


def _passages(row: TableRow) -> Iterator[SourcePassage]:
    """Yield the cells of a row and of its header."""
    for sentence in filter(None, (row.passage.best, row.header)):
        for found in _CELL.finditer(sentence.text):
            if text := found[0].strip():
                start = sentence.start + sentence.text.index(text, found.start())
                cell = Sentence(text, start, start + len(text), "table", sentence.paragraph)
                yield SourcePassage(row.passage.text, cell.start, cell.end, cell)

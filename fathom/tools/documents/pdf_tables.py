"""Tables in a PDF: cells of one row begin at the same height, those of one column at the same distance from the edge.

A PDF draws no tables. Of two rows or more with the same columns, one below the other, a table is made; two columns of
prose are read one after the other, and so are one row.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

LEVEL = 0.3  # times the size of the letters: how far the cells of a row may be out of line
GAP = 1.5  # at least between two cells of a row
LEADING = 1.7  # at most between the lines of a cell
ROW_GAP = 4.0  # at most between two rows
EDGE = 3.0  # points that cells of a column may be apart
LONG = 25  # characters from which a cell that begins with a small letter may be half a sentence


class Line(NamedTuple):
    """A line of a page."""

    text: str
    size: float  # of the font, in points
    is_code: bool
    y: float  # points from the bottom of the page
    parts: tuple[tuple[float, str], ...]  # with the distance of each from the left edge

    @property
    def x(self) -> float:
        """Where the line begins."""
        return self.parts[0][0]


class Table(NamedTuple):
    """A table: of each cell, its lines."""

    columns: tuple[float, ...]
    rows: list[list[list[str]]]


class _Row(NamedTuple):
    cells: list[tuple[float, list[str]]]
    top: float
    bottom: float
    stop: int  # index of the line after it


def split_tables(lines: Sequence[Line]) -> list[list[Line] | Table]:
    """Return the lines with those of a table as a table."""
    found: list[list[Line] | Table] = []
    between: list[Line] = []
    first = 0
    while first < len(lines):
        rows = _rows(lines, first)
        if len(rows) < 2 or _is_prose(rows):
            between.append(lines[first])
            first += 1
            continue
        columns = tuple(x for x, _ in rows[0].cells)
        found += [between, Table(columns, [_in_columns(row, columns) for row in rows])]
        between, first = [], rows[-1].stop
    return [block for block in (*found, between) if block]


def same_columns(a: Table, b: Table) -> bool:
    """Whether two tables may be one that goes on on the next page."""
    return len(a.columns) == len(b.columns) and all(
        abs(x - y) <= EDGE for x, y in zip(a.columns, b.columns, strict=True)
    )


def _rows(lines: Sequence[Line], first: int) -> list[_Row]:
    """Return the rows that begin with a line, each below the one before and in the columns of the first."""
    rows: list[_Row] = []
    while row := _row(lines, rows[-1].stop if rows else first):
        if rows:
            below = rows[-1].bottom - row.top
            columns = [x for x, _ in rows[0].cells]
            if not 0 < below <= ROW_GAP * lines[first].size or any(_column(columns, x) is None for x, _ in row.cells):
                break
        rows.append(row)
    return rows


def _row(lines: Sequence[Line], first: int) -> _Row | None:
    """Return the row of two cells or more that begins with a line, if one does."""
    cells: list[tuple[float, list[str]]] = []
    number, bottom = first, 0.0
    for number in range(first, len(lines) + 1):
        if number == len(lines):
            break
        line, top = lines[number], lines[first].y
        if abs(line.y - top) <= LEVEL * line.size and (not cells or line.x > cells[-1][0] + GAP * line.size):
            cells += [(x, [text]) for x, text in line.parts]
            bottom = min(bottom, line.y) if number > first else line.y
        elif (
            abs(line.x - cells[-1][0]) <= EDGE
            and len(line.parts) == 1
            and 0 < lines[number - 1].y - line.y <= LEADING * line.size
        ):
            cells[-1][1].append(line.text)
            bottom = min(bottom, line.y)
        else:
            break
    marked = any(not any(c.isalnum() for c in cell[0]) for _, cell in cells[:1])  # a bullet and its text
    return _Row(cells, lines[first].y, bottom, number) if len(cells) > 1 and not marked else None


def _is_prose(rows: Sequence[_Row]) -> bool:
    """Whether most cells are the middle of a sentence: columns of prose, drawn line by line."""
    cells = [" ".join(cell) for row in rows for _, cell in row.cells]
    return 2 * sum(len(cell) >= LONG and cell[0].islower() for cell in cells) > len(cells)


def _in_columns(row: _Row, columns: Sequence[float]) -> list[list[str]]:
    cells: list[list[str]] = [[] for _ in columns]
    for x, cell in row.cells:
        place = _column(columns, x)
        cells[place if place is not None else -1] += cell
    return cells


def _column(columns: Sequence[float], x: float) -> int | None:
    return next((n for n, column in enumerate(columns) if abs(column - x) <= EDGE), None)

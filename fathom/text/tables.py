"""The tables of a Markdown text, read whole: what is computed from a table needs all its rows."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

RULE = re.compile(r"\s*\|(?:\s*:?-+:?\s*\|)+\s*\Z")
"""The line below the header of a table."""
BAR = re.compile(r"(?<!\\)\|")
"""What parts the cells of a row."""
_CUT = re.compile(r"(?:\.\.\.|…)\s*\Z")
_OMITTED = "…"
_MARKS = re.compile(r"[()*`“”\"]")


class WholeTable(NamedTuple):
    """A table of a text: the names of its columns, its rows as cells, and the headings and lead-in above it."""

    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    above: str
    lines: Sequence[str]  # as the text has them, without the rule

    def column(self, name: str) -> int | None:
        """Return the number of the column with a name."""
        return next((number for number, said in enumerate(self.header) if plain_cell(said) == name), None)

    def cells(self, column: int) -> list[str]:
        """Return the cells of a column, of the rows that are long enough."""
        return [row[column] for row in self.rows if column < len(row)]

    def markdown(self, rows: Sequence[Sequence[str]]) -> str:
        """Return the table with only some of its rows."""
        kept = [line for line, row in zip(self.lines[1:], self.rows, strict=True) if row in rows]
        return "\n".join([self.lines[0], f"|{'---|' * len(self.header)}", *kept])


def tables_of(text: str) -> Iterator[WholeTable]:
    """Yield the tables of a text that it has from their header to their last row: none that is cut off with dots."""
    lines = text.split("\n")
    for number, line in enumerate(lines):
        if not RULE.match(line) or not number or not lines[number - 1].startswith("|"):
            continue
        end = next((n for n in range(number + 1, len(lines)) if not lines[n].startswith("|")), len(lines))
        behind = next((after for after in lines[end:] if after.strip()), "")
        above = [before for before in lines[: number - 1] if before.strip()][-2:]
        introduced = [before for before in above if before.startswith("#") or before.rstrip().endswith(":")]
        rows = lines[number + 1 : end]
        cut = _CUT.match(behind) or any(_CUT.match(each) for each in [*above[-1:], *map(_inner, rows)])
        if rows and not cut:
            yield WholeTable(
                cells_of_row(lines[number - 1]),
                list(map(cells_of_row, rows)),
                " ".join(introduced),
                [lines[number - 1], *rows],
            )


NOTHING = frozenset(("", "-", "–", "—", "?", "n/a", "na", "n.a.", "k. a.", "k.a.", "tbd", "null", "unknown"))
"""Cells that state nothing, in small letters."""


def _inner(row: str) -> str:
    return row.strip("| ")


def omission_row(columns: int) -> str:
    """Return the row of a table in Markdown that says that rows are left out."""
    return f"| {_OMITTED} |{' |' * (columns - 1)}"


def is_omission(cells: Sequence[str]) -> bool:
    """Whether a row only says that rows are left out."""
    return "".join(cells).strip() == _OMITTED


def cells_of_row(row: str) -> list[str]:
    """Return the cells of a row."""
    return [cell.strip() for cell in BAR.split(row.strip().removeprefix("|").removesuffix("|"))]


def filled_cells(header: str, row: str) -> list[tuple[str, str]] | None:
    """Return the cells of a row that are not empty, each behind its column's name; None where any is missing."""
    names, cells = cells_of_row(header), cells_of_row(row)
    if len(names) != len(cells):
        return None
    return [(name, cell) for name, cell in zip(names, cells, strict=True) if cell]


def plain_cell(cell: str) -> str:
    """Return a cell without marks of emphasis, brackets and quotation."""
    return " ".join(_MARKS.sub(" ", cell).split())


def joined_tables(texts: Sequence[str]) -> str:
    """Return texts of one source as one, in which the rows below one header are one table, each once."""
    tables: dict[str, dict[str, None]] = {}
    lines: list[str] = []
    for text in texts:
        for table in tables_of(text):
            tables.setdefault(table.lines[0], {}).update(dict.fromkeys(table.lines[1:]))
        lines += [line for line in text.split("\n") if not line.startswith("|")]
    made = ("\n".join([header, f"|{'---|' * (header.count('|') - 1)}", *rows]) for header, rows in tables.items())
    return "\n\n".join(["\n".join(lines), *made])

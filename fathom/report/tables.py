"""The tables of a report: the rows of each for a workbook, and all of them as csv.

A chart by year has no data of its own: it draws a column of a table. Cells come from the open web, and a spreadsheet
program runs a cell of a csv file that begins like a formula. So an apostrophe is put before such a cell, as the program
itself does for a text; numbers stay as they are.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Sequence
from io import StringIO

from fathom.errors import NotThere
from fathom.models import Report
from fathom.report.document import Block, Items, Quotation, StyledText, Table, document_of, plain
from fathom.report.own_words import Added
from fathom.text.tables import is_omission
from fathom.text.wording import Wording, wording

_NUMBER = re.compile(r"[-+]?[\d.,]*\d *%?")
FORMULA_SIGNS = ("=", "+", "-", "@", "\t", "\r")
"""A cell of a csv file that begins with one of them may be run by a spreadsheet program."""


def render_csv(report: Report) -> bytes:
    """Return the tables of a report, but for its steps, as the bytes of a csv file, in UTF-8.

    Of several tables, each follows its chapter's heading, and an empty line is between two.

    Raises:
        NotThere: it has none.
    """
    words = wording(report.language)
    tables = [
        (chapter.heading, rows_of(table, words))
        for chapter in document_of(report).chapters
        if chapter.heading != words(Added.method)
        for table in tables_in(chapter.blocks)
    ]
    if not tables:
        raise NotThere("The report has no table, so there is no csv.", next_step="choose another format, such as xlsx")
    text = StringIO()
    writer = csv.writer(text)
    for number, (heading, rows) in enumerate(tables):
        if len(tables) > 1:
            writer.writerows([[], [_inert(heading)]] if number else [[_inert(heading)]])
        writer.writerows([[_inert(cell) for cell in row] for row in rows])
    return text.getvalue().encode()


def _inert(cell: str) -> str:
    said = plain(cell, lines=True)
    return f"'{said}" if said.startswith(FORMULA_SIGNS) and not _NUMBER.fullmatch(said) else said


def tables_in(blocks: Sequence[Block]) -> Iterator[Table]:
    """Yield the tables among some blocks, and inside of them."""
    for block in blocks:
        match block:
            case Table():
                yield block
            case Items():
                for item in block.items:
                    yield from tables_in(item)
            case Quotation():
                yield from tables_in(block.blocks)


def rows_of(table: Table, words: Wording) -> list[list[str]]:
    """Return a table whose cells can be computed with: the sources of a row are in a last column, dots are left out."""
    rows = [table.head, *(row for row in table.rows if not is_omission(list(map(text_of, row))))]
    cited = [[run.citation for cell in row for run in cell if run.citation] for row in rows]
    cells = [[text_of([run for run in cell if not run.citation]) for cell in row] for row in rows]
    if not any(cited):
        return cells
    sources = [words("Sources"), *(", ".join(map(str, dict.fromkeys(numbers))) for numbers in cited[1:])]
    return [[*row, one] for row, one in zip(cells, sources, strict=True)]


def text_of(runs: Sequence[StyledText]) -> str:
    """Return styled text as plain text."""
    return "".join(run.text for run in runs).strip()

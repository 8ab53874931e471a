"""The tables of a report: all of them as csv, and each on a sheet of an Excel workbook with its claims and its sources.

A chart by year has no data of its own: it draws a column of a table. Titles, quotations and cells come from the open
web, and a spreadsheet program runs a cell of a csv file that begins like a formula. So an apostrophe is put before such
a cell, as the program itself does for a text; numbers stay as they are. In the workbook, made from the same structure
as the Word document, every text is stored as text: no program runs one, not even after it was edited.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Sequence
from io import BytesIO, StringIO
from typing import Any

from fathom.errors import NotThere
from fathom.models import Report
from fathom.report.document import Block, Code, Items, Quotation, StyledText, Table, document_of, plain
from fathom.report.own_words import Added
from fathom.text.tables import is_omission
from fathom.text.wording import Wording, wording

_FIGURE = re.compile(r"[-+]?[\d.,]*\d *%?")
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
    return f"'{said}" if said.startswith(FORMULA_SIGNS) and not _FIGURE.fullmatch(said) else said


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


MOST_CHARS = 32_767  # in a cell
_MOST_IN_NAME = 31
_NOT_IN_NAME = re.compile(r"[\[\]:*?/\\']+")
_NUMBER = re.compile(r"-?(?:0|[1-9]\d{0,14})(?:\.(\d{1,10}))?")  # no zeros before it, nothing to round
_NARROWEST, _WIDEST = 8, 80  # characters
Row = Sequence[str | int]


def render_xlsx(report: Report) -> bytes:
    """Return a report as the bytes of an xlsx file."""
    from openpyxl import Workbook

    found, words = document_of(report), wording(report.language)
    book = Workbook()
    book.remove(book.active)
    about = [
        (words("Title"), found.title),
        (words("Question"), found.question or found.title),
        (words("Made"), found.cover),
        *((chapter.heading, _text_of(chapter.blocks, words)) for chapter in found.chapters),
    ]
    _add(book, words("Report"), about, has_head=False)
    claims = [
        (row.number, row.claim, row.verdict, ", ".join(map(str, row.citations)), row.passage, row.place)
        for row in found.evidence
    ]
    head = ("Number", "Claim", "Verdict", "Sources", "Passage", "Place")
    _add(book, words("Claims"), [tuple(map(words, head)), *claims])
    sources = [(source.number, source.title, source.address, source.details) for source in found.references]
    _add(book, words("Sources"), [tuple(map(words, ("Number", "Title", "Address", "Details"))), *sources])
    for chapter in found.chapters:
        for table in tables_in(chapter.blocks):
            _add(book, chapter.heading, rows_of(table, words))
    book.properties.title, book.properties.creator = found.title, "Fathom"
    stored = BytesIO()
    book.save(stored)
    return stored.getvalue()


def _add(book: Any, name: str, rows: Sequence[Row], *, has_head: bool = True) -> None:
    """Add a sheet, with a name that the program allows and no other sheet has; its first row or column is bold."""
    from openpyxl.styles import Alignment, Font
    from openpyxl.utils import get_column_letter

    wanted = _NOT_IN_NAME.sub(" ", name).strip()[:_MOST_IN_NAME] or "Table"
    taken = {each.lower() for each in book.sheetnames}
    names = (f"{wanted[: _MOST_IN_NAME - 4].rstrip()} {number}" for number in range(2, len(taken) + 3))
    free = (each for each in (wanted, *names) if each.lower() not in taken)
    sheet = book.create_sheet(next(free))
    for number, row in enumerate(rows, 1):
        for column, value in enumerate(row, 1):
            cell = sheet.cell(number, column)
            _write(cell, value)
            cell.alignment = Alignment(vertical="top", wrap_text=True)
            cell.font = Font(bold=number == 1 if has_head else column == 1)
    for column in range(1, max(map(len, rows), default=0) + 1):
        longest = max((len(str(row[column - 1])) for row in rows if column <= len(row)), default=0)
        sheet.column_dimensions[get_column_letter(column)].width = min(max(longest + 2, _NARROWEST), _WIDEST)
    if has_head:
        sheet.freeze_panes = "A2"


def _write(cell: Any, value: str | int) -> None:
    """Write a number as one, with the decimals that it has, and everything else as text."""
    if isinstance(value, str) and (found := _NUMBER.fullmatch(value)):
        cell.value = float(value) if found[1] else int(value)
        cell.number_format = f"0.{'0' * len(found[1])}" if found[1] else "0"
    elif isinstance(value, int):
        cell.value = value
    else:
        cell.value = plain(value, lines=True)[:MOST_CHARS]
        cell.data_type, cell.quotePrefix = "s", True


def _text_of(blocks: Sequence[Block], words: Wording) -> str:
    """Return blocks as plain text; a table is on a sheet of its own."""
    parts = []
    for block in blocks:
        match block:
            case Items():
                items = enumerate((_text_of(item, words) for item in block.items), block.start or 0)
                parts.append("\n".join(f"{'•' if block.start is None else f'{n}.'} {item}" for n, item in items))
            case Quotation():
                parts.append(_text_of(block.blocks, words))
            case Table():
                parts.append(words("(table: see its sheet)"))
            case _:
                parts.append(block.text if isinstance(block, Code) else text_of(block.runs))
    return "\n\n".join(parts)

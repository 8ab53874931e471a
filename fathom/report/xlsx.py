"""A report as an Excel workbook: its claims with their verdicts, its sources, and each of its tables on a sheet.

Made from the same structure as the Word document. Titles, quotations and cells come from the open web, so every text is
stored as text: a spreadsheet program runs none that begins like a formula, not even after it was edited.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from io import BytesIO
from typing import Any

from fathom.models import Report
from fathom.report.document import Block, Code, Items, Quotation, Table, document_of, plain
from fathom.report.tables import rows_of, tables_in, text_of
from fathom.text.wording import Wording, wording

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

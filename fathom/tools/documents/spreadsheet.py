"""Reading spreadsheets: a sheet is a section with tables, its cells as people see them: `19%`, `129.00 €`, 2026-01-05.

Of xlsx, openpyxl gives the values row by row, with their number formats; the XML of ods states the text shown.
"""

from __future__ import annotations

import io
import re
import warnings
import zipfile
from collections.abc import Iterator, Sequence
from datetime import datetime, time
from itertools import groupby, islice, takewhile
from operator import not_
from typing import Any, NamedTuple

from fathom.text.plain import clean_line, counted
from fathom.tools.documents.normal import MAX_SPANNED, Outline, ReadDocument, definition, table, with_one_header
from fathom.tools.documents.opendocument import TABLE, TEXT, line_of
from fathom.tools.documents.zipped import core_properties

MAX_CELLS = 500_000  # cells with a content that are read of a workbook
MAX_ROWS = 1_048_576  # of a sheet in either format
_MERGED = re.compile(rb"<(?:\w+:)?mergeCell [^>]*?ref=\"([A-Z]{1,3})(\d{1,7}):([A-Z]{1,3})(\d{1,7})\"")
_UNCOMPUTED = re.compile(  # a text may be empty, and is stored so
    rb"<(?:\w+:)?c\b(?![^>]*\bt=\"str\")[^>]*>\s*<(?:\w+:)?f\b(?:[^>]*/>|[^>]*>[^<]*</(?:\w+:)?f>)\s*"
    rb"(?:<(?:\w+:)?v\s*(?:/>|></(?:\w+:)?v>)\s*)?</(?:\w+:)?c>"
)
_FORMAT = re.compile(r"(?P<before>[^#0?]*)[#0?](?:[#0?,]*[#0?])?(?:\.(?P<decimals>[#0?]*))?(?P<after>[^#0?,]*)")
_LITERAL = re.compile(r"\[\$([^\]-]*)[^\]]*\]|\[[^\]]*\]|\"([^\"]*)\"|\\(.)|[_*].")
_YEAR = re.compile(r"(?:19|20)\d\d")  # such as a column of a table has as its header


_Rows = dict[int, list[str]]  # the texts of the cells in a row by its number, from 0; empty rows are left out


class _Span(NamedTuple):
    """Merged cells: the numbers of their first and last rows and columns, from 0."""

    top: int
    left: int
    bottom: int
    right: int


def read_xlsx(data: bytes) -> ReadDocument:
    """Return a workbook's sheets as sections; parsers raise various errors for damaged ones."""
    from openpyxl import load_workbook
    from openpyxl.utils import column_index_from_string

    def numbered(column: bytes, row: bytes) -> tuple[int, int]:
        return int(row) - 1, column_index_from_string(column.decode()) - 1

    left, uncomputed = MAX_CELLS, 0
    outline = Outline()
    with warnings.catch_warnings(), zipfile.ZipFile(io.BytesIO(data)) as archive:
        warnings.simplefilter("ignore")  # of what the library would not write again
        book = load_workbook(io.BytesIO(data), read_only=True, data_only=True)
        for sheet in book.worksheets:
            sheet.reset_dimensions()  # a sheet may state wrong ones
            rows: _Rows = {}
            for number, cells in enumerate(islice(sheet.iter_rows(), MAX_ROWS)):
                if filled := [_shown(cell) for cell in cells]:
                    rows[number] = filled
                    left -= sum(map(bool, filled))
                if left < 0:
                    break
            xml = archive.read(sheet._worksheet_path)
            merged, uncomputed = _MERGED.findall(xml), uncomputed + len(_UNCOMPUTED.findall(xml))
            outline.heading(sheet.title, 1)
            spans = [_Span(*numbered(*found[:2]), *numbered(*found[2:])) for found in merged]
            outline.add(*_blocks(rows, spans))
        title, date = core_properties(archive)
    return ReadDocument(title, outline.sections(), date, unread=_unread(left, uncomputed), of_parts=True)


def _shown(cell: Any) -> str:
    """Return a cell as it is shown, with all decimals that it has."""
    value = cell.value
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, datetime):
        return value.date().isoformat() if value.time() == time() else value.isoformat(" ", "minutes")
    if not isinstance(value, int | float):
        return str(value).strip()
    return _number(value, cell.number_format.split(";")[0])


def _number(value: float, shape: str) -> str:
    """Return a number with what its format adds: decimals, a percent sign, a currency, a unit."""
    literals: list[str] = []

    def kept(match: re.Match[str]) -> str:
        literals.append("".join(filter(None, match.groups())))
        return "\x00"

    found = _FORMAT.fullmatch(_LITERAL.sub(kept, shape))
    if not found or re.search(r"[A-DF-Za-z/]|E[+-]", found["before"] + found["after"]):
        return _plain(value)
    before, after = (re.sub("\x00", lambda _: literals.pop(0), found[part]) for part in ("before", "after"))
    value = value * 100 if "%" in after else value
    plain, fixed = _plain(value), f"{value:.{len(found['decimals'] or '')}f}"
    return clean_line(before + (fixed if float(fixed) == float(plain) else plain) + after)


def _plain(value: float) -> str:
    return str(value) if isinstance(value, int) else f"{value:.15g}"


def read_ods(data: bytes) -> ReadDocument:
    """Return a workbook's sheets as sections; parsers raise various errors for damaged ones."""
    from lxml import etree

    left = MAX_CELLS
    outline = Outline()
    number, rows, spans = 0, _Rows(), list[_Span]()
    with zipfile.ZipFile(io.BytesIO(data)) as archive, archive.open("content.xml") as content:
        names = [f"{TABLE}table-row", f"{TABLE}table"]
        for _, element in etree.iterparse(content, tag=names, resolve_entities=False, no_network=True):
            if element.tag == names[1]:
                outline.heading(element.get(f"{TABLE}name") or "", 1)
                outline.add(*_blocks(rows, spans))
                number, rows, spans = 0, {}, []
                continue
            row, more = _row(element, number)
            times = _repeated(element, "rows")
            if row and left >= 0:
                kept = min(times, left // len(row) + 1)
                rows |= {number + n: list(row) for n in range(kept)}
                spans += more
                left -= kept * sum(map(bool, row))
            number += times
            element.clear()
    return ReadDocument("", outline.sections(), unread=_unread(left), of_parts=True)


def _row(element: Any, number: int) -> tuple[list[str], list[_Span]]:
    """Return the texts of a row's cells, and which of them are merged with others."""
    row: list[str] = []
    spans: list[_Span] = []
    empty = 0
    for cell in element.iterchildren(f"{TABLE}table-cell", f"{TABLE}covered-table-cell"):
        text = clean_line(" ".join(map(line_of, cell.iterchildren(f"{TEXT}p"))))
        if not text:
            empty += _repeated(cell, "columns")
            continue
        row += [""] * min(empty, MAX_SPANNED)
        empty = 0
        down, across = (int(cell.get(f"{TABLE}number-{what}-spanned") or 1) for what in ("rows", "columns"))
        if down > 1 or across > 1:
            spans.append(_Span(number, len(row), number + down - 1, len(row) + across - 1))
        row += [text] * min(_repeated(cell, "columns"), MAX_SPANNED)
    return row, spans


def _repeated(element: Any, what: str) -> int:
    return int(element.get(f"{TABLE}number-{what}-repeated") or 1)


def _unread(left: int, uncomputed: int = 0) -> str:
    reasons = [f"only the first {MAX_CELLS:,} cells were read"] if left < 0 else []
    if uncomputed:
        what = (
            f"{counted(uncomputed, 'formula')} without a stored value {'was' if uncomputed == 1 else 'were'} left empty"
        )
        reasons.append(f"{what}: open it in a spreadsheet program and save it")
    return "; ".join(reasons)


def _blocks(rows: _Rows, spans: Sequence[_Span]) -> Iterator[str]:
    """Yield the paragraphs and tables of a sheet; empty rows are between them.

    Rows below an empty one belong to the table above if they begin with values and not with a header.
    """
    _spread(rows, spans)
    filled = [number for number, row in rows.items() if any(row)]
    header: list[str] = []
    for _, group in groupby(enumerate(filled), key=lambda counted: counted[1] - counted[0]):
        held = [number for _, number in group]
        for number in takewhile(lambda number: sum(map(bool, rows[number])) == 1, list(held)):
            yield "".join(rows[number])
            held.pop(0)
        if not held:
            continue
        wide = [span for span in spans if span.top == held[0] and span.left < span.right]
        body = [rows[number] for number in held]
        for span in wide:
            body[0] += [""] * (min(span.right + 1, MAX_SPANNED) - len(body[0]))
            body[0][span.left : span.right + 1] = [body[0][span.left]] * (min(span.right + 1, MAX_SPANNED) - span.left)
        whole = with_one_header(body, 2 if wide and len(body) > 2 else 1)
        first = min(len(list(takewhile(not_, row))) for row in whole)
        body = [list(row[first:]) for row in whole]
        if len(body[0]) == 2 and _are_fields(body):
            yield "\n".join(definition(name, value) for name, *value in body)
            continue
        if len(body[0]) == len(header) and any(_is_value(text) and not _YEAR.fullmatch(text) for text in body[0]):
            body.insert(0, header)
        header = body[0]
        yield table(body)


def _spread(rows: _Rows, spans: Sequence[_Span]) -> None:
    """Put the text of a merged cell into each of the rows that it spans."""
    spare = MAX_SPANNED
    for span in spans:
        top = rows.get(span.top, [])
        if span.left >= len(top) or not top[span.left]:
            continue
        for number in range(span.top + 1, min(span.bottom + 1, span.top + spare)):
            row = rows.get(number, [])
            row += [""] * (span.left + 1 - len(row))
            row[span.left] = top[span.left]
            spare -= 1


def _are_fields(rows: Sequence[Sequence[str]]) -> bool:
    """Return whether rows of two cells are names with values rather than a table with a header."""
    first, *others = (_is_value(row[-1]) for row in rows)
    return first or (any(others) and not all(others))


def _is_value(text: str) -> bool:
    """Return whether a cell holds a number, perhaps with a unit, or a date."""
    return any(map(str.isdigit, text)) and sum(map(str.isalpha, text)) <= 4

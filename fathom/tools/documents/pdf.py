"""Reading a PDF: its pages become sections, and lines of text become headings, paragraphs, items, code and tables.

A PDF holds only the positions of letters. The size of the font shows headings, its name code, and the length of a line
whether the paragraph continues.

A PDF has no tables either: cells of one row begin at the same height, cells of one column at the same distance from the
edge. Two or more rows with the same columns, one below the other, become a table; two columns of prose are read one
after the other, and so is a single row.
"""

from __future__ import annotations

import io
import logging
import re
from collections import Counter
from collections.abc import Sequence
from functools import reduce
from itertools import groupby
from math import nan
from typing import Any, NamedTuple

from fathom.text.plain import clean_line, clean_text
from fathom.tools.documents.normal import MAX_HEADING_CHARS, DocumentSection, fence, item, joined, table

LARGER = 1.15  # multiple of the body's size from which a line is a heading
SMALLER = 0.8  # times the size of the line, up to which something is the mark of a note and no cell
LETTER = 0.6  # of the size of the font: about the width of a letter
FULL = 0.8  # of the width of the page's lines; a line of that width may be wrapped
_MONOSPACE = re.compile(r"courier|mono|consol|menlo|typewriter|(?:CM|SF)TT\d|inconsolata|fixed", re.I)
# 127 is a bullet in PDF's own encoding.
_BULLET = re.compile(r"\s*(?:[\x7f•●▪■◦‣∙\uf0b7\uf0a7\u2043]\s*|[o–]\s+(?=\S))")
_NUMBER = re.compile(r"\s*(?:\d{1,2}[.)]|\(?[a-z][.)])\s+\S")
_PAGE_NUMBER = re.compile(r"\s*(?:page\s+)?\d{1,4}(?:\s*(?:of|/)\s*\d{1,4})?\s*\Z", re.I)
_SENTENCE_END = re.compile(r"[.!?:][\"'”’)\]]*\Z")
_WORD = re.compile(r"[^\W\d_]+")
_DIVIDED = re.compile(r"([^\W\d_]+)[-\u2010]\Z")
_FILE_NAME = re.compile(r"\.\w{2,5}\Z")


def read_pdf(data: bytes) -> tuple[str, list[DocumentSection], str]:
    """Return a document's title, its sections, and the date of its metadata as `YYYY-MM-DD`, if it has one.

    Raises:
        pypdf.errors.PyPdfError: it is damaged or encrypted; parsers raise other errors, too.
    """
    from pypdf import PdfReader

    # It logs every irregularity of a file as a warning; what matters is raised.
    logging.getLogger("pypdf").setLevel(logging.CRITICAL)
    reader = PdfReader(io.BytesIO(data))
    if reader.is_encrypted:
        reader.decrypt("")  # reading fails if that is not the password
    pages = [_lines(page) for page in reader.pages]
    title = clean_line((reader.metadata and reader.metadata.title) or "")
    # The title in the metadata is often the name of the file it was made from.
    title = "" if _FILE_NAME.search(title) or title.lower().strip("()") in ("untitled", "anonymous") else title
    levels = _levels([line for page in pages for line in page])
    words = frozenset(
        word for page in pages for line in page for word in _WORD.findall(_DIVIDED.sub("", line.text).lower())
    )
    sections: list[DocumentSection] = []
    table_above: PrintedTable | None = None
    for number, page in enumerate(pages, 1):
        blocks = _with_header(split_tables(page), table_above)
        sections += _page_sections(blocks, number, levels, words)
        table_above = blocks[-1] if blocks and isinstance(blocks[-1], PrintedTable) else None
    return title, sections, _date(reader)


def _date(reader: Any) -> str:
    """Return the date of the last change; none if it cannot be read."""
    stated = str((reader.metadata or {}).get("/ModDate") or (reader.metadata or {}).get("/CreationDate") or "")
    found = re.match(r"(?:D:)?(\d{4})(\d\d)(\d\d)", stated)
    return "-".join(found.groups()) if found else ""


class _Piece(NamedTuple):
    text: str
    size: float
    is_code: bool
    x: float  # points from the left and from the bottom of the page; not a number where it is not known
    y: float


def _lines(page: Any) -> list[PrintedLine]:
    pieces: list[_Piece] = []

    def piece(text: str, place: Sequence[float], matrix: Sequence[float], font: Any, size: float) -> None:
        scale = abs(matrix[3]) or abs(matrix[1]) or 1.0
        is_code = bool(_MONOSPACE.search(str((font or {}).get("/BaseFont") or "")))
        x = matrix[4] * place[0] + matrix[5] * place[2] + place[4]
        y = matrix[4] * place[1] + matrix[5] * place[3] + place[5]
        pieces.append(_Piece(text, round(size * scale, 1), is_code, x, y))

    page.extract_text(visitor_text=piece)
    lines: list[PrintedLine] = []
    own: list[_Piece] = []
    for each in [*pieces, _Piece("\n", 0.0, False, nan, nan)]:
        for n, part in enumerate(each.text.split("\n")):
            if n:
                if any(one.text.strip() for one in own):
                    lines.append(_line(own))
                own = []
            own.append(_Piece(part, each.size, each.is_code, nan, nan) if n else each._replace(text=part))
    for end in (0, -1):  # where page numbers stand
        if len(lines) > 1 and _PAGE_NUMBER.match(lines[end].text):
            del lines[end]
    return lines


def _line(pieces: Sequence[_Piece]) -> PrintedLine:
    letters, code = Counter[float](), Counter[bool]()
    parts: list[tuple[float, str]] = []
    written = [piece for piece in pieces if piece.text.strip()]
    end = 0.0  # about where the part so far ends
    for text, size, is_code, x, _ in written:
        letters[size] += len(text.strip())
        code[is_code] += len(text.strip())
        if not parts or (x > end + GAP * size and size > SMALLER * written[0].size):
            parts.append((x, ""))
        parts[-1] = (parts[-1][0], parts[-1][1] + text)
        end = x + LETTER * size * len(text)
    whole = "".join(piece.text for piece in pieces).rstrip()
    if len(parts) == 1:
        parts = [(parts[0][0], whole)]
    return PrintedLine(whole, letters.most_common(1)[0][0], code[True] > 9 * code[False], written[0].y, tuple(parts))


def _levels(lines: Sequence[PrintedLine]) -> dict[float, int]:
    """Return the level of each font size of headings."""
    letters = Counter[float]()
    for line in lines:
        letters[line.size] += len(line.text)
    body = letters.most_common(1)[0][0] if letters else 0.0
    sizes = sorted((size for size in letters if size >= LARGER * body > 0), reverse=True)
    return {size: min(level, 6) for level, size in enumerate(sizes, 1)}


def _with_header(
    blocks: list[list[PrintedLine] | PrintedTable], above: PrintedTable | None
) -> list[list[PrintedLine] | PrintedTable]:
    """Return the blocks of a page; a table that continues from the page before gets its header again."""
    first = blocks[0] if blocks else []
    if above and isinstance(first, PrintedTable) and same_columns(above, first) and above.rows[0] != first.rows[0]:
        return [first._replace(rows=[above.rows[0], *first.rows]), *blocks[1:]]
    return blocks


def _page_sections(
    page: Sequence[list[PrintedLine] | PrintedTable], number: int, levels: dict[float, int], words: frozenset[str]
) -> list[DocumentSection]:
    """Return the sections of a page; the first continues the last section of the page before."""
    sections: list[DocumentSection] = []
    heading, level = "", 0
    blocks: list[str] = []

    def end() -> None:
        if (text := clean_text(joined(blocks))) or heading:
            sections.append(DocumentSection(text, heading, level, number))

    for lines in page:
        if isinstance(lines, PrintedTable):
            blocks.append(table([[_cell(cell, words) for cell in row] for row in lines.rows]))
            continue
        for (size, is_code), group in groupby(
            lines, key=lambda line: (line.size if line.size in levels else 0.0, line.is_code)
        ):
            run = [line.text for line in group]
            title = clean_line(" ".join(run))
            if is_code:
                blocks.append(fence("\n".join(run)))
            elif size and len(title) <= MAX_HEADING_CHARS and any(c.isalpha() for c in title):
                end()
                heading, level, blocks = title, levels[size], []
            else:
                blocks.append(joined(_paragraphs(run, words)))
    end()
    return sections


def _cell(lines: Sequence[str], words: frozenset[str]) -> str:
    return reduce(lambda above, line: _glued(above, line.strip(), words), lines) if lines else ""


def _paragraphs(lines: Sequence[str], words: frozenset[str]) -> list[str]:
    """Join wrapped lines."""
    width = max(map(len, lines))
    found: list[str] = []
    is_item: list[bool] = []
    for n, line in enumerate(lines):
        marker = _BULLET.match(line)
        if found and not marker and not _NUMBER.match(line) and _goes_on(lines[n - 1], line, width):
            found[-1] = _glued(found[-1], line.strip(), words)
        else:
            found.append(line[marker.end() :].strip() if marker else line.strip())
            is_item.append(bool(marker))
    texts = [item("-", [text]) if listed else text for text, listed in zip(found, is_item, strict=True)]
    blocks: list[str] = []
    for n, text in enumerate(texts):
        if n and is_item[n] and is_item[n - 1]:
            blocks[-1] += "\n" + text
        else:
            blocks.append(text)
    return blocks


def _goes_on(line: str, after: str, width: int) -> bool:
    line, after = line.strip(), after.strip()
    if after[:1].islower() or line.endswith((",", "-", "\u2010")):
        return True
    is_full = len(line) + 1 + len(after.split(maxsplit=1)[0]) > FULL * width
    return is_full and (not _SENTENCE_END.search(line) or len(line) > 0.9 * width)


def _glued(line: str, after: str, words: frozenset[str]) -> str:
    """Join two lines; the hyphen goes if it only divides a word."""
    divided, rest = _DIVIDED.search(line), _WORD.match(after)
    if not divided or not rest or not rest[0].islower():
        return line + ("" if divided else " ") + after
    is_word = (divided[1] + rest[0]).lower() in words
    are_words = divided[1].lower() in words and rest[0].lower() in words and len(divided[1]) > 1
    return (line if are_words and not is_word else line[:-1]) + after


LEVEL = 0.3  # times the size of the letters: how far the cells of a row may be out of line
GAP = 1.5  # at least between two cells of a row
LEADING = 1.7  # at most between the lines of a cell
ROW_GAP = 4.0  # at most between two rows
EDGE = 3.0  # points that cells of a column may be apart
LONG = 25  # characters from which a cell that begins with a small letter may be half a sentence


class PrintedLine(NamedTuple):
    """A line of a page."""

    text: str
    size: float  # of the font, in points
    is_code: bool
    y: float  # points from the bottom of the page
    parts: tuple[tuple[float, str], ...]  # with the distance of each from the left edge

    @property
    def x(self) -> float:
        """The start of the line, in points from the left edge."""
        return self.parts[0][0]


class PrintedTable(NamedTuple):
    """A table: the lines of each cell."""

    columns: tuple[float, ...]
    rows: list[list[list[str]]]


class _Row(NamedTuple):
    cells: list[tuple[float, list[str]]]
    top: float
    bottom: float
    stop: int  # index of the line after it


def split_tables(lines: Sequence[PrintedLine]) -> list[list[PrintedLine] | PrintedTable]:
    """Return the lines, with the lines of a table replaced by the table."""
    found: list[list[PrintedLine] | PrintedTable] = []
    between: list[PrintedLine] = []
    first = 0
    while first < len(lines):
        rows = _rows(lines, first)
        if len(rows) < 2 or _is_prose(rows):
            between.append(lines[first])
            first += 1
            continue
        columns = tuple(x for x, _ in rows[0].cells)
        found += [between, PrintedTable(columns, [_in_columns(row, columns) for row in rows])]
        between, first = [], rows[-1].stop
    return [block for block in (*found, between) if block]


def same_columns(a: PrintedTable, b: PrintedTable) -> bool:
    """Whether two tables may be one table that continues on the next page."""
    return len(a.columns) == len(b.columns) and all(
        abs(x - y) <= EDGE for x, y in zip(a.columns, b.columns, strict=True)
    )


def _rows(lines: Sequence[PrintedLine], first: int) -> list[_Row]:
    """Return the rows from a line on, each below the one before and in the columns of the first."""
    rows: list[_Row] = []
    while row := _row(lines, rows[-1].stop if rows else first):
        if rows:
            below = rows[-1].bottom - row.top
            columns = [x for x, _ in rows[0].cells]
            if not 0 < below <= ROW_GAP * lines[first].size or any(_column(columns, x) is None for x, _ in row.cells):
                break
        rows.append(row)
    return rows


def _row(lines: Sequence[PrintedLine], first: int) -> _Row | None:
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

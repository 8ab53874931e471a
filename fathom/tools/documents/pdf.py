"""Reading a PDF: its pages become sections, and lines of text become headings, paragraphs, items and code again.

A PDF holds places of letters. The size of the font tells headings, its name code, and the length of a line whether the
paragraph goes on.
"""

from __future__ import annotations

import io
import logging
import re
from collections import Counter
from collections.abc import Sequence
from itertools import groupby
from typing import Any, NamedTuple

from fathom.text.cleaning import clean_line, clean_text
from fathom.tools.documents.normal import fence, item, joined
from fathom.tools.documents.sections import MAX_HEADING_CHARS, Section

LARGER = 1.15  # times the size of the body, from which a line is a heading
FULL = 0.8  # of the width of the page's lines; a line of that width may be wrapped
_MONOSPACE = re.compile(r"courier|mono|consol|menlo|typewriter|(?:CM|SF)TT\d|inconsolata|fixed", re.I)
_BULLET = re.compile(
    r"\s*(?:[\x7f•●▪■◦‣∙\uf0b7\uf0a7\u2043]\s*|[o–]\s+(?=\S))"
)  # 127 is a bullet in PDF's own encoding
_NUMBER = re.compile(r"\s*(?:\d{1,2}[.)]|\(?[a-z][.)])\s+\S")
_PAGE_NUMBER = re.compile(r"\s*(?:page\s+)?\d{1,4}(?:\s*(?:of|/)\s*\d{1,4})?\s*\Z", re.I)
_SENTENCE_END = re.compile(r"[.!?:][\"'”’)\]]*\Z")
_WORD = re.compile(r"[^\W\d_]+")
_DIVIDED = re.compile(r"([^\W\d_]+)[-\u2010]\Z")
_FILE_NAME = re.compile(r"\.\w{2,5}\Z")


class _Line(NamedTuple):
    text: str
    size: float  # of the font, in points
    is_code: bool


def read_pdf(data: bytes) -> tuple[str, list[Section], str]:
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
    title = "" if _FILE_NAME.search(title) or title.lower() in ("untitled", "anonymous") else title
    levels = _levels([line for page in pages for line in page])
    words = frozenset(
        word for page in pages for line in page for word in _WORD.findall(_DIVIDED.sub("", line.text).lower())
    )
    sections = [section for n, page in enumerate(pages, 1) for section in _page_sections(page, n, levels, words)]
    return title, sections, _date(reader)


def _date(reader: Any) -> str:
    """Return when it was last changed; a date that cannot be read is none."""
    stated = str((reader.metadata or {}).get("/ModDate") or (reader.metadata or {}).get("/CreationDate") or "")
    found = re.match(r"(?:D:)?(\d{4})(\d\d)(\d\d)", stated)
    return "-".join(found.groups()) if found else ""


def _lines(page: Any) -> list[_Line]:
    pieces: list[tuple[str, float, bool]] = []

    def piece(text: str, _: Any, matrix: Sequence[float], font: Any, size: float) -> None:
        scale = abs(matrix[3]) or abs(matrix[1]) or 1.0
        pieces.append((text, round(size * scale, 1), bool(_MONOSPACE.search(str((font or {}).get("/BaseFont") or "")))))

    page.extract_text(visitor_text=piece)
    lines: list[_Line] = []
    text, letters, code = "", Counter[float](), Counter[bool]()
    for piece_text, size, is_code in [*pieces, ("\n", 0.0, False)]:
        for n, part in enumerate(piece_text.split("\n")):
            if n:
                if text.strip():
                    size_of_most = letters.most_common(1)[0][0] if letters else 0.0
                    lines.append(_Line(text.rstrip(), size_of_most, code[True] > 9 * code[False]))
                text, letters, code = "", Counter(), Counter()
            text += part
            if weight := len(part.strip()):
                letters[size] += weight
                code[is_code] += weight
    for end in (0, -1):  # where page numbers stand
        if len(lines) > 1 and _PAGE_NUMBER.match(lines[end].text):
            del lines[end]
    return lines


def _levels(lines: Sequence[_Line]) -> dict[float, int]:
    """Return the level of each size in which headings are written."""
    letters = Counter[float]()
    for line in lines:
        letters[line.size] += len(line.text)
    body = letters.most_common(1)[0][0] if letters else 0.0
    sizes = sorted((size for size in letters if size >= LARGER * body > 0), reverse=True)
    return {size: min(level, 6) for level, size in enumerate(sizes, 1)}


def _page_sections(
    lines: Sequence[_Line], number: int, levels: dict[float, int], words: frozenset[str]
) -> list[Section]:
    """Return the sections of a page; the first goes on with the one of the page before."""
    sections: list[Section] = []
    heading, level = "", 0
    blocks: list[str] = []

    def end() -> None:
        if (text := clean_text(joined(blocks))) or heading:
            sections.append(Section(text, heading, level, number))

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

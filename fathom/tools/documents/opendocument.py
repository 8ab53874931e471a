"""Reading texts and presentations of OpenDocument, as LibreOffice writes them: headings, lists, tables and slides."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterator
from typing import Any

from fathom.text.plain import clean_line
from fathom.tools.documents.normal import Outline, ReadDocument, SpanningCell, item, spread, table
from fathom.tools.documents.zipped import parse_xml

OFFICE = "{urn:oasis:names:tc:opendocument:xmlns:office:1.0}"
TABLE = "{urn:oasis:names:tc:opendocument:xmlns:table:1.0}"
TEXT = "{urn:oasis:names:tc:opendocument:xmlns:text:1.0}"
_DRAW = "{urn:oasis:names:tc:opendocument:xmlns:drawing:1.0}"
_SLIDES = "{urn:oasis:names:tc:opendocument:xmlns:presentation:1.0}"
_DC = "{http://purl.org/dc/elements/1.1/}"
_LEFT_OUT = (f"{TEXT}tracked-changes", f"{TEXT}table-of-content", f"{TEXT}note-citation", f"{OFFICE}annotation")


def read_odt(data: bytes) -> ReadDocument:
    """Return the sections of a text; parsers raise various errors for a damaged one."""
    outline = Outline()
    content, title, date = _parts(data)
    _add(content.find(f"{OFFICE}body/{OFFICE}text"), outline)
    return ReadDocument(title, outline.sections(), date)


def read_odp(data: bytes) -> ReadDocument:
    """Return the slides of a presentation as sections; parsers raise various errors for a damaged one."""
    outline = Outline()
    content, title, date = _parts(data)
    for number, slide in enumerate(content.iter(f"{_DRAW}page"), 1):
        titles = [frame for frame in slide.iter(f"{_DRAW}frame") if frame.get(f"{_SLIDES}class") == "title"]
        heading = line_of(titles[0]) if titles else ""
        outline.heading(heading or f"Slide {number}", 1 if number == 1 else 2)
        notes = slide.find(f"{_SLIDES}notes")
        for part in slide:
            if part not in titles[:1] and part is not notes:
                outline.add(*_blocks(part))
        spoken = [] if notes is None else list(_blocks(notes))
        outline.add(*(["Notes:", *spoken] if spoken else []))
    return ReadDocument(title, outline.sections(), date)


def line_of(element: Any) -> str:
    """Return the text of a paragraph, or of all in an element, on one line."""
    return clean_line("".join(_texts(element)))


def _texts(element: Any) -> Iterator[str]:
    if element.tag in (f"{TEXT}s", f"{TEXT}tab", f"{TEXT}line-break"):
        yield " "
    elif element.tag not in _LEFT_OUT:
        yield element.text or ""
        for child in element.iterchildren("{*}*"):
            yield from _texts(child)
            yield child.tail or ""
        yield " " if element.tag == f"{TEXT}p" else ""


def _parts(data: bytes) -> tuple[Any, str, str]:
    """Return the content, the title, and the day of the last change."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        meta = parse_xml(archive.read("meta.xml")) if "meta.xml" in archive.namelist() else None
        content = parse_xml(archive.read("content.xml"))
    title, date = ("" if meta is None else meta.findtext(f".//{_DC}{name}") or "" for name in ("title", "date"))
    return content, title, date[:10]


def _add(parent: Any, outline: Outline) -> None:
    for part in parent.iterchildren("{*}*"):
        if part.tag == f"{TEXT}h":
            outline.heading(line_of(part), min(int(part.get(f"{TEXT}outline-level") or 1), 6))
        elif part.tag == f"{TEXT}section":
            _add(part, outline)
        else:
            outline.add(*_blocks(part))


def _blocks(part: Any) -> Iterator[str]:
    """Yield the paragraphs, lists and tables of an element."""
    if part.tag in (f"{TEXT}p", f"{TEXT}h"):
        yield line_of(part)
    elif part.tag == f"{TEXT}list":
        items = part.iterchildren(f"{TEXT}list-item", f"{TEXT}list-header")
        yield "\n".join(filter(None, (item("-", list(_below(one))) for one in items)))
    elif part.tag == f"{TABLE}table":
        yield table(
            spread([list(map(_cell, row.iterchildren(f"{TABLE}table-cell"))) for row in part.iter(f"{TABLE}table-row")])
        )
    elif part.tag not in _LEFT_OUT:
        yield from _below(part)


def _below(part: Any) -> Iterator[str]:
    for child in part.iterchildren("{*}*"):
        yield from _blocks(child)


def _cell(cell: Any) -> SpanningCell:
    across, down = (int(cell.get(f"{TABLE}number-{what}-spanned") or 1) for what in ("columns", "rows"))
    return SpanningCell(line_of(cell), across, down)

"""Reading a presentation: each slide is a section with its title, its text and tables, and the speaker's notes.

python-docx opens the package, as all formats of Office are packages of the same kind.
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterator
from typing import Any

from fathom.text.plain import clean_line
from fathom.tools.documents.normal import Outline, ReadDocument, SpanningCell, spread, table
from fathom.tools.documents.zipped import core_properties, parse_xml

_A = "{http://schemas.openxmlformats.org/drawingml/2006/main}"
_P = "{http://schemas.openxmlformats.org/presentationml/2006/main}"
_R = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}"
_FALLBACK = "{http://schemas.openxmlformats.org/markup-compatibility/2006}Fallback"  # repeats the shape before it
_RELATION = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_TITLES = frozenset({"title", "ctrTitle"})
_TEMPLATE = ("PowerPoint", "2013-01-27")  # "PowerPoint Presentation" and its translations; python-pptx's empty file
_FURNITURE = frozenset({"dt", "ftr", "hdr", "sldNum", "sldImg"})  # on every slide


def read_pptx(data: bytes) -> ReadDocument:
    """Return a presentation's slides as sections; parsers raise various errors for damaged ones."""
    from docx.opc.package import OpcPackage

    main = OpcPackage.open(io.BytesIO(data)).part_related_by(f"{_RELATION}/officeDocument")
    outline = Outline()
    for number, entry in enumerate(parse_xml(main.blob).iter(f"{_P}sldId"), 1):
        slide = main.related_parts[entry.get(f"{_R}id")]
        shapes = list(_shapes(parse_xml(slide.blob).find(f"{_P}cSld/{_P}spTree")))
        heading = next((_line(shape) for shape in shapes if _role(shape) in _TITLES and _line(shape)), "")
        outline.heading(heading or f"Slide {number}", 1 if number == 1 else 2)
        outline.add(*(block for shape in shapes if _line(shape) != heading for block in _blocks(shape)))
        for relation in slide.rels.values():
            if relation.reltype == f"{_RELATION}/notesSlide":
                notes = _shapes(parse_xml(relation.target_part.blob).find(f"{_P}cSld/{_P}spTree"))
                texts = [block for shape in notes for block in _blocks(shape)]
                outline.add(*(["Notes:", *texts] if texts else []))
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        title, date = core_properties(archive)
    title, date = ("" if value.startswith(_TEMPLATE) else value for value in (title, date))
    return ReadDocument(title, outline.sections(), date)


def _shapes(tree: Any) -> Iterator[Any]:
    """Yield the shapes with text or a table, also those in groups."""
    for shape in () if tree is None else tree.iter(f"{_P}sp", f"{_P}graphicFrame"):
        if _role(shape) not in _FURNITURE and not any(above.tag == _FALLBACK for above in shape.iterancestors()):
            yield shape


def _role(shape: Any) -> str:
    """Return what a shape is the placeholder of: `title`, `body`, `ftr`; empty for other shapes."""
    placeholder = shape.find(f"{_P}nvSpPr/{_P}nvPr/{_P}ph")
    return "" if placeholder is None else placeholder.get("type") or "body"


def _line(shape: Any) -> str:
    return clean_line(" ".join(map(_text, shape.iter(f"{_A}p"))))


def _text(paragraph: Any) -> str:
    parts = paragraph.iter(f"{_A}t", f"{_A}br")
    return clean_line("".join(part.text or "" if part.tag == f"{_A}t" else " " for part in parts))


def _blocks(shape: Any) -> Iterator[str]:
    """Yield a shape's tables and its text: a list if it is the body of a slide with several paragraphs."""
    for found in shape.iter(f"{_A}tbl"):
        rows = [[_cell(cell) for cell in row.iter(f"{_A}tc")] for row in found.iter(f"{_A}tr")]
        yield table(spread([[cell for cell in row if cell] for row in rows]))
    body = shape.find(f"{_P}txBody")
    paragraphs = [] if body is None else [one for one in body.iter(f"{_A}p") if _text(one)]
    if _role(shape) == "body" and len(paragraphs) > 1:
        yield "\n".join(f"{'  ' * _level(one)}- {_text(one)}" for one in paragraphs)
    else:
        yield from map(_text, paragraphs)


def _level(paragraph: Any) -> int:
    properties = paragraph.find(f"{_A}pPr")
    return 0 if properties is None else min(int(properties.get("lvl") or 0), 8)


def _cell(cell: Any) -> SpanningCell | None:
    """Return a cell of a table; None for one that another covers."""
    if cell.get("hMerge") or cell.get("vMerge"):
        return None
    text = " ".join(map(_text, cell.iter(f"{_A}p")))
    return SpanningCell(text, int(cell.get("gridSpan") or 1), int(cell.get("rowSpan") or 1))

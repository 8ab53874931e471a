"""Reading a Word document: its styles and numbering identify headings, items, code and tables."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from functools import cache
from itertools import takewhile
from typing import Any

from fathom.text.plain import clean_line
from fathom.tools.documents.normal import (
    DocumentSection,
    Outline,
    ReadDocument,
    SpanningCell,
    fence,
    inline_code,
    spread,
    table,
)

_HEADING = re.compile(r"heading (\d)", re.I)
_LIST = re.compile(r"list (bullet|number|continue)(?: (\d))?\Z", re.I)
_CODE = re.compile(r"source code|html preformatted|preformatted text|code(?: block)?|macro(?: text)?|verbatim.*", re.I)
_MONOSPACE = re.compile(r"courier|mono|consol|menlo|monaco|lucida console", re.I)
_W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_FALLBACK = "{http://schemas.openxmlformats.org/markup-compatibility/2006}Fallback"  # repeats the text before it
_HIDDEN = frozenset((f"{_W}txbxContent", f"{_W}del", _FALLBACK))
_TEMPLATE_DATE = "2013-12-23"  # default values of python-docx's empty document


def read_docx(data: bytes) -> ReadDocument:
    """Return a document with the day on which it was last changed.

    Raises:
        docx.opc.exceptions.OpcError: it is damaged; parsers raise other errors, too.
    """
    from docx import Document

    document = Document(io.BytesIO(data))
    modified = document.core_properties.modified
    date = f"{modified:%Y-%m-%d}" if modified else ""
    title, sections = _Reader(document).content()
    return ReadDocument(title, sections, "" if date == _TEMPLATE_DATE else date)


class _Reader:
    def __init__(self, document: Any) -> None:
        self._document = document
        self._outline = Outline()
        self._title = ""
        self._items: list[str] = []
        self._numbers: dict[tuple[str, int], int] = {}  # of list and level: the last number
        self._code: list[str] = []
        self._styles: dict[str | None, Any] = {}
        self._format = cache(self._format_of)

    def content(self) -> tuple[str, list[DocumentSection]]:
        for element in _content(self._document.element.body):
            if element.tag == f"{_W}tbl":
                self._end()
                self._outline.add(_table(element))
            else:
                self._paragraph(element)
        self._end()
        return self._title, self._outline.sections()

    def _end(self) -> None:
        self._outline.add("\n".join(self._items), fence("\n".join(self._code)))
        self._items, self._code = [], []

    def _paragraph(self, element: Any) -> None:
        style = self._style(element)
        name = (style.name or "") if style is not None else ""
        text, is_code = _text(element)
        if _CODE.fullmatch(name) or (is_code and text.strip()):
            if self._items:
                self._end()
            self._code.append(text.replace("`", "") if is_code else text)
        elif not text.strip():
            if self._code:
                self._code.append("")
        elif name == "Title" and not self._title:
            self._title = clean_line(text)
        elif heading := _HEADING.fullmatch(name):
            self._end()
            self._outline.heading(text, int(heading[1]))
        elif listed := self._listed(element, style, name):
            if self._code:
                self._end()
            level, marker = listed
            lines = filter(None, map(clean_line, text.split("\n")))
            indent = "  " * level
            self._items.append(f"{indent}{marker} " + f"\n{indent}{' ' * (len(marker) + 1)}".join(lines))
        else:
            self._end()
            self._outline.add(text)
        for box in element.iter(f"{_W}txbxContent"):
            if not any(above.tag == _FALLBACK for above in box.iterancestors()):
                self._end()
                self._outline.add(*filter(str.strip, (_text(one)[0] for one in box.iter(f"{_W}p"))))

    def _style(self, element: Any) -> Any:
        from docx.enum.style import WD_STYLE_TYPE

        own = element.pPr.pStyle if element.pPr is not None else None
        identifier = own.val if own is not None else None
        if identifier not in self._styles:
            self._styles[identifier] = self._document.styles.get_by_id(identifier, WD_STYLE_TYPE.PARAGRAPH)
        return self._styles[identifier]

    def _listed(self, element: Any, style: Any, name: str) -> tuple[int, str] | None:
        """Return the level of an item, from 0, and its marker."""
        named = _LIST.match(name)
        own = element.pPr.numPr if element.pPr is not None else None
        inherited = style.element.pPr.numPr if style is not None and style.element.pPr is not None else None
        number = next((str(n.numId.val) for n in (own, inherited) if n is not None and n.numId is not None), "")
        if number == "0" or (not named and not number):  # 0 takes the numbering of the style away
            return None
        level = int(named[2] or 1) - 1 if named else 0
        if own is not None and own.ilvl is not None:
            level = max(level, min(own.ilvl.val, 8))
        is_bullet = named[1].lower() != "number" if named else self._format(number, level) in ("bullet", "none")
        if is_bullet:
            return level, "-"
        for key in [key for key in self._numbers if key[0] == number and key[1] > level]:
            del self._numbers[key]
        self._numbers[number, level] = self._numbers.get((number, level), 0) + 1
        return level, f"{self._numbers[number, level]}."

    def _format_of(self, number: str, level: int) -> str:
        try:
            numbering = self._document.part.numbering_part.element
        except NotImplementedError:  # python-docx offers none if the document has none
            return "none"
        for abstract in numbering.xpath(f"w:num[@w:numId='{number}']/w:abstractNumId/@w:val"):
            path = f"w:abstractNum[@w:abstractNumId='{int(abstract)}']/w:lvl[@w:ilvl='{level}']/w:numFmt/@w:val"
            for found in numbering.xpath(path):
                return str(found)
        return "decimal"


def _content(parent: Any) -> Iterator[Any]:
    """Yield paragraphs and tables, also those in content controls."""
    for child in parent:
        if child.tag in (f"{_W}p", f"{_W}tbl"):
            yield child
        elif child.tag in (f"{_W}sdt", f"{_W}sdtContent", f"{_W}ins", f"{_W}customXml"):
            yield from _content(child)


def _text(paragraph: Any) -> tuple[str, bool]:
    """Return a paragraph's text with spans of code, without deletions and text boxes; and whether all of it is code."""
    spans: list[tuple[bool, str]] = []
    for run in paragraph.iter(f"{_W}r"):
        if not _HIDDEN.isdisjoint(
            above.tag for above in takewhile(lambda one: one is not paragraph, run.iterancestors())
        ):
            continue
        if text := "".join(_pieces(run)):
            is_code = _is_monospace(run)
            if spans and (spans[-1][0] == is_code or not text.strip()):
                spans[-1] = (spans[-1][0], spans[-1][1] + text)
            else:
                spans.append((is_code, text))
    if spans and all(is_code for is_code, text in spans if text.strip()):
        return "".join(text for _, text in spans), True
    return "".join(_marked(text) if is_code else text for is_code, text in spans), False


def _marked(text: str) -> str:
    body = text.strip()
    return text.replace(body, inline_code(body), 1) if body else text


def _pieces(run: Any) -> Iterator[str]:
    for child in run:
        if child.tag == f"{_W}t":
            yield child.text or ""
        elif child.tag == f"{_W}tab":
            yield "\t"
        elif child.tag in (f"{_W}br", f"{_W}cr"):
            yield "\n"
        elif child.tag == f"{_W}noBreakHyphen":
            yield "-"


def _is_monospace(run: Any) -> bool:
    properties = run.find(f"{_W}rPr")
    if properties is None:
        return False
    fonts, style = properties.find(f"{_W}rFonts"), properties.find(f"{_W}rStyle")
    names = [fonts.get(f"{_W}ascii")] if fonts is not None else []
    styles = [style.get(f"{_W}val")] if style is not None else []
    return any(_MONOSPACE.search(name or "") for name in names) or any(
        re.match(r"verbatim|html ?code|code|inlinecode|sourcetext", name or "", re.I) for name in styles
    )


def _table(element: Any) -> str:
    rows: list[list[SpanningCell]] = []
    for row in element.iter(f"{_W}tr"):
        if next(above for above in row.iterancestors(f"{_W}tbl")) is not element:
            continue  # a table in a cell is part of the cell's text
        cells: list[SpanningCell] = []
        for one in row.iterchildren(f"{_W}tc", f"{_W}sdt"):
            span = one.find(f"{_W}tcPr/{_W}gridSpan")
            across = int(span.get(f"{_W}val")) if span is not None else 1
            merge = one.find(f"{_W}tcPr/{_W}vMerge")
            text = " ".join(filter(None, (_shown(p) for p in one.iter(f"{_W}p"))))
            if merge is not None and merge.get(f"{_W}val") != "restart" and rows:
                text = _above(rows[-1], sum(cell.across for cell in cells))
            cells.append(SpanningCell(text, across, everywhere=not rows))
        rows.append(cells)
    return table(spread(rows))


def _shown(paragraph: Any) -> str:
    text, is_code = _text(paragraph)
    return inline_code(text) if is_code else clean_line(text)


def _above(row: list[SpanningCell], column: int) -> str:
    for cell in row:
        if column < cell.across:
            return cell.text
        column -= cell.across
    return ""

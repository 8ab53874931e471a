"""Parts of a Word document that python-docx cannot make: links, bookmarks, fields, numberings, repeated headings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from docx.document import Document
    from docx.table import Table
    from docx.text.paragraph import Paragraph
    from docx.text.run import Run

_LINK_BLUE = "1F4E9E"
_INK, _SOFT, _RULE, _BOX = "1E2227", "586069", "DFDCD4", "EEF3F7"
TEXT_WIDTH = 16.2  # cm
_RIGHT_TO_LEFT = ("ar", "he")
# The schema sets the order of a paragraph's properties.
_AFTER_SHADING = (
    *("w:tabs", "w:suppressAutoHyphens", "w:kinsoku", "w:wordWrap", "w:overflowPunct", "w:topLinePunct"),
    *("w:autoSpaceDE", "w:autoSpaceDN", "w:bidi", "w:adjustRightInd", "w:snapToGrid", "w:spacing", "w:ind"),
    *("w:contextualSpacing", "w:mirrorIndents", "w:suppressOverlap", "w:jc", "w:textDirection", "w:textAlignment"),
    *("w:textboxTightWrap", "w:outlineLvl", "w:divId", "w:cnfStyle", "w:rPr", "w:sectPr", "w:pPrChange"),
)


def add_bookmarked(paragraph: Paragraph, text: str, name: str, number: int) -> None:
    """Add a text that links can lead to; its name and number must be unique in the document."""
    paragraph._p.append(_element("w:bookmarkStart", {"w:id": str(number), "w:name": name}))
    paragraph.add_run(text)
    paragraph._p.append(_element("w:bookmarkEnd", {"w:id": str(number)}))


def add_link(paragraph: Paragraph, text: str, *, bookmark: str = "", address: str = "") -> Run:
    """Add a link to a place in the document or on the web, and return its run."""
    from docx.opc.constants import RELATIONSHIP_TYPE
    from docx.shared import RGBColor

    target = {"w:anchor": bookmark}
    if address:
        target = {"r:id": paragraph.part.relate_to(address, RELATIONSHIP_TYPE.HYPERLINK, is_external=True)}
    link = _element("w:hyperlink", target)
    run = paragraph.add_run(text)
    run.font.color.rgb = RGBColor.from_string(_LINK_BLUE)
    run.font.underline = bool(address) or None
    link.append(run._r)
    paragraph._p.append(link)
    return run


def new_numbering(document: Document, style: str, start: int) -> int:
    """Return the id of a new numbering that looks like the style's own; otherwise Word would continue the last one."""
    numbering = document.part.numbering_part.element
    own = document.styles[style].element.pPr.numPr.numId.val
    added = numbering.add_num(numbering.num_having_numId(own).abstractNumId.val)
    added.add_lvlOverride(0).add_startOverride(start)
    return int(added.numId)


def number_paragraph(paragraph: Paragraph, numbering: int) -> None:
    """Make a paragraph an item of a numbering, given by its id."""
    properties = paragraph._p.get_or_add_pPr().get_or_add_numPr()
    properties.get_or_add_numId().val = numbering
    properties.get_or_add_ilvl().val = 0


def repeat_heading(table: Table) -> None:
    """Repeat the first row of a table on each page."""
    row: Any = table.rows[0]._tr
    row.get_or_add_trPr().append(_element("w:tblHeader", {}))


def set_mono(run: Run) -> None:
    """Set a run in a font for code."""
    run.font.name = "Consolas"


def add_contents(document: Document, entries: Sequence[tuple[str, str]]) -> None:
    """Add a list of links to bookmarks, each with the number of its page, which Word and LibreOffice fill in."""
    from docx.enum.text import WD_TAB_ALIGNMENT, WD_TAB_LEADER
    from docx.shared import Cm, Pt

    for bookmark, heading in entries:
        paragraph = document.add_paragraph(style="No Spacing")
        paragraph.paragraph_format.space_after = Pt(2)
        paragraph.paragraph_format.tab_stops.add_tab_stop(Cm(15), WD_TAB_ALIGNMENT.RIGHT, WD_TAB_LEADER.DOTS)
        add_link(paragraph, heading, bookmark=bookmark)
        paragraph.add_run("\t")
        _add_field(paragraph, f"PAGEREF {bookmark}")


def add_page_number(paragraph: Paragraph) -> None:
    """Add "page of pages" to a footer."""
    _add_field(paragraph, "PAGE")
    paragraph.add_run(" / ")
    _add_field(paragraph, "NUMPAGES")


def _add_field(paragraph: Paragraph, instruction: str) -> None:
    """Add a field that is computed when the document is opened."""
    field = _element("w:fldSimple", {"w:instr": instruction, "w:dirty": "true"})
    run = paragraph.add_run(" ")
    field.append(run._r)
    paragraph._p.append(field)


def set_fonts(document: Document) -> None:
    """Set the fonts and sizes of the styles that a report uses."""
    from docx.shared import Pt, RGBColor

    styles: Any = document.styles
    styles["Normal"].font.name, styles["Normal"].font.size = "Cambria", Pt(10.5)
    styles["Normal"].paragraph_format.space_after = Pt(6)
    for name, size in (("Title", 24), ("Heading 1", 15), ("Heading 2", 12), ("Subtitle", 10), ("Caption", 9)):
        font = styles[name].font
        font.name, font.size = "Calibri", Pt(size)
        font.color.rgb = RGBColor.from_string(_INK if name in ("Title", "Heading 1", "Heading 2") else _SOFT)


def set_language(document: Document, tag: str) -> None:
    """Set the language of the text, and its direction."""
    normal: Any = document.styles["Normal"].element
    normal.get_or_add_rPr().append(_element("w:lang", {"w:val": tag, "w:eastAsia": tag, "w:bidi": tag}))
    if tag in _RIGHT_TO_LEFT:
        properties = normal.get_or_add_pPr()
        properties.insert_element_before(_element("w:bidi", {}), *_AFTER_SHADING[_AFTER_SHADING.index("w:bidi") + 1 :])


def set_page(document: Document) -> None:
    """Set the page to A4 with the margins that `TEXT_WIDTH` leaves room for."""
    from docx.shared import Cm

    page = document.sections[0]
    page.page_width, page.page_height = Cm(21), Cm(29.7)
    page.left_margin = page.right_margin = Cm((21 - TEXT_WIDTH) / 2)
    page.top_margin = page.bottom_margin = Cm(2.2)


def lay_out(table: Table, weights: Sequence[float]) -> None:
    """Give a table of the whole width thin rules between its rows, and its columns widths in proportion."""
    from docx.shared import Cm

    table.autofit = False
    borders = _element("w:tblBorders", {})
    for side in ("bottom", "insideH"):
        borders.append(_element(f"w:{side}", {"w:val": "single", "w:sz": "4", "w:color": _RULE}))
    table._tbl.tblPr.insert_element_before(borders, "w:shd", "w:tblLayout", "w:tblCellMar", "w:tblLook")
    widths = [Cm(TEXT_WIDTH * weight / sum(weights)) for weight in weights]
    for column, width in zip(table.columns, widths, strict=True):
        column.width = width
    for row in table.rows:
        for cell, width in zip(row.cells, widths, strict=True):
            cell.width = width
            for paragraph in cell.paragraphs:
                paragraph.paragraph_format.space_after = 0
    for cell in table.rows[0].cells:
        for run in cell.paragraphs[0].runs:
            run.bold = True


def shade(paragraph: Paragraph) -> None:
    """Give a paragraph the background of a box."""
    from docx.oxml.ns import qn

    properties = paragraph._p.get_or_add_pPr()
    for present in properties.findall(qn("w:shd")):
        properties.remove(present)
    shading = _element("w:shd", {"w:val": "clear", "w:color": "auto", "w:fill": _BOX})
    properties.insert_element_before(shading, *_AFTER_SHADING)


def _element(tag: str, attributes: dict[str, str]) -> Any:
    from docx.oxml import OxmlElement
    from docx.oxml.ns import qn

    return OxmlElement(tag, {qn(name): value for name, value in attributes.items()})

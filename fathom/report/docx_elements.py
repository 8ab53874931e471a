"""Parts of a Word document that python-docx cannot make: links, bookmarks, restarted numberings, repeated headings."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from fathom.text.cleaning import clean_text

if TYPE_CHECKING:
    from docx.document import Document
    from docx.table import Table
    from docx.text.paragraph import Paragraph
    from docx.text.run import Run

_LINK_BLUE = "1F4E9E"
_NOT_IN_XML = {0xFFFE: None, 0xFFFF: None}


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


def plain(text: str, *, lines: bool = False) -> str:
    """Return a text without the characters that XML does not allow or a reader does not see, on one line by default."""
    cleaned = clean_text(text).translate(_NOT_IN_XML)
    return cleaned if lines else re.sub(r"\s*\n\s*", " ", cleaned)


def _element(tag: str, attributes: dict[str, str]) -> Any:
    from docx.oxml import OxmlElement
    from docx.oxml.ns import qn

    return OxmlElement(tag, {qn(name): value for name, value in attributes.items()})

"""A report as a Word document: real headings, lists and tables, and citations that lead to a numbered reference.

The text is not trusted: it becomes runs of characters and nothing else. Links lead to the web or into the document.

python-docx makes no links, bookmarks, fields, numberings and repeated headings: these are made here of their elements.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from io import BytesIO
from typing import TYPE_CHECKING, Any

from fathom.models import Report
from fathom.report.document import (
    COLUMNS,
    Block,
    Code,
    EvidenceRow,
    Heading,
    Items,
    Layout,
    Paragraph,
    Quotation,
    SourceReference,
    StyledText,
    Table,
    document_of,
)

if TYPE_CHECKING:
    from docx.document import Document
    from docx.table import Table as WordTable
    from docx.text.paragraph import Paragraph as WordParagraph
    from docx.text.run import Run


_DEEPEST = 3  # list levels for which Word has styles
_ALIGNED = {"left": 0, "center": 1, "right": 2}  # of docx.enum.text.WD_ALIGN_PARAGRAPH
_NARROWEST, _WIDEST = 13, 45  # characters of a table's column that count for its width


def render_docx(report: Report) -> bytes:
    """Return a report as the bytes of a `.docx` file."""
    from docx import Document as new_document

    paged, document = document_of(report), new_document()
    properties = document.core_properties
    properties.title, properties.author, properties.comments = paged.title[:255], "Fathom", ""
    properties.created = properties.modified = datetime.now(UTC)  # the template has its own
    set_page(document)
    set_fonts(document)
    if paged.language:
        set_language(document, paged.language)
    _front(document, paged)
    writer = _Writer(document)
    for number, chapter in enumerate(paged.chapters, 1):
        _chapter(document, chapter.heading, number)
        first = len(document.paragraphs)
        writer.blocks(chapter.blocks)
        if number == 1:
            for paragraph in document.paragraphs[first:]:
                shade(paragraph)
    _chapter(document, paged.words["Sources"], len(paged.chapters) + 1)
    for reference in paged.references:
        _reference(document, reference)
    if not paged.references:
        document.add_paragraph(paged.words["No source is cited."])
    if paged.evidence:
        _chapter(document, paged.words["Evidence"], len(paged.chapters) + 2)
        _evidence(document, paged.evidence, [paged.words[name] for name in COLUMNS])
    file = BytesIO()
    document.save(file)
    return file.getvalue()


def _front(document: Document, paged: Layout) -> None:
    document.add_paragraph(paged.words["Research report"], style="Subtitle")
    document.add_heading(paged.title, 0)
    if paged.question:
        document.add_paragraph(paged.question, style="Intense Quote")
    document.add_paragraph(paged.cover, style="Caption")
    headings = [chapter.heading for chapter in paged.chapters]
    headings += [paged.words["Sources"], *[paged.words["Evidence"]] * bool(paged.evidence)]
    add_contents(document, [(f"chapter_{number}", heading) for number, heading in enumerate(headings, 1)])
    footer = document.sections[0].footer.paragraphs[0]
    footer.alignment = _ALIGNED["center"]
    add_page_number(footer)


def _chapter(document: Document, heading: str, number: int) -> None:
    paragraph = document.add_heading("", 1)
    add_bookmarked(paragraph, heading, f"chapter_{number}", 10_000 + number)


class _Writer:
    """Writes blocks into a document."""

    def __init__(self, document: Document) -> None:
        self._document = document

    def blocks(self, blocks: Sequence[Block], style: str | None = None) -> None:
        """Add blocks; paragraphs get a style."""
        for block in blocks:
            match block:
                case Paragraph():
                    self._runs(self._document.add_paragraph(style=style), block.runs)
                case Heading():
                    self._runs(self._document.add_heading("", block.level), block.runs)
                case Code():
                    paragraph = self._document.add_paragraph(style="No Spacing")
                    set_mono(paragraph.add_run(block.text))
                    shade(paragraph)
                    self._document.add_paragraph(style="No Spacing")
                case Items():
                    self._items(block, 0)
                case Quotation():
                    self.blocks(block.blocks, "Quote")
                case Table():
                    self._table(block)

    def _items(self, block: Items, depth: int) -> None:
        level = f" {min(depth + 1, _DEEPEST)}" if depth else ""
        style = f"List Bullet{level}" if block.start is None else f"List Number{level}"
        numbering = None if block.start is None else new_numbering(self._document, style, block.start)
        for item in block.items:
            first = True
            for part in item:
                if isinstance(part, Items):
                    self._items(part, depth + 1)
                elif isinstance(part, Paragraph):
                    paragraph = self._document.add_paragraph(style=style if first else f"List Continue{level}")
                    if first and numbering is not None:
                        number_paragraph(paragraph, numbering)
                    self._runs(paragraph, part.runs)
                else:
                    self.blocks([part])
                first = False

    def _table(self, block: Table) -> None:
        from docx.shared import Pt

        cells = [block.head, *block.rows]
        table = self._document.add_table(len(cells), len(block.head))
        repeat_heading(table)
        for row, texts in zip(table.rows, cells, strict=True):
            for cell, runs, side in zip(row.cells, texts, block.sides, strict=True):
                cell.paragraphs[0].alignment = _ALIGNED[side]
                self._runs(cell.paragraphs[0], runs)
                for run in cell.paragraphs[0].runs:
                    run.font.size = Pt(9)
        lengths = [max(sum(len(run.text) for run in row[n]) for row in cells) for n in range(len(block.head))]
        lay_out(table, [min(max(length, _NARROWEST), _WIDEST) for length in lengths])
        self._document.add_paragraph()  # tables that touch become one

    @staticmethod
    def _runs(paragraph: WordParagraph, runs: Sequence[StyledText]) -> None:
        for run in runs:
            if run.text == "\n":
                paragraph.add_run().add_break()
                continue
            if run.citation:
                made = add_link(paragraph, run.text, bookmark=f"source_{run.citation}")
            elif run.address:
                made = add_link(paragraph, run.text, address=run.address)
            else:
                made = paragraph.add_run(run.text)
            # None leaves it to the style, which False would override.
            made.bold, made.italic = run.bold or None, run.italic or None
            made.font.strike = run.strike or None
            if run.code:
                set_mono(made)


def _reference(document: Document, reference: SourceReference) -> None:
    from docx.shared import Cm

    paragraph = document.add_paragraph()
    paragraph.paragraph_format.left_indent, paragraph.paragraph_format.first_line_indent = Cm(1), Cm(-1)
    add_bookmarked(paragraph, f"[{reference.number}]", f"source_{reference.number}", reference.number)
    paragraph.add_run("\t")
    if reference.address:
        add_link(paragraph, reference.title, address=reference.address)
    else:
        paragraph.add_run(reference.title)
    if reference.details:
        paragraph.add_run(f", {reference.details}")


def _evidence(document: Document, rows: Sequence[EvidenceRow], columns: Sequence[str]) -> None:
    from docx.shared import Pt

    table = document.add_table(1 + len(rows), len(columns))
    repeat_heading(table)
    cells = [columns, *((str(row.number), row.claim, row.verdict, _passage(row)) for row in rows)]
    for row, texts in zip(table.rows, cells, strict=True):
        for cell, text in zip(row.cells, texts, strict=True):
            run = cell.paragraphs[0].add_run(text)
            run.font.size = Pt(8)
    lay_out(table, [1, 5, 3, 7])


def _passage(row: EvidenceRow) -> str:
    cited = "".join(f"[{number}]" for number in row.citations)
    return "\n".join(filter(None, [f"{row.passage} {cited}".strip(), row.place]))


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


def add_bookmarked(paragraph: WordParagraph, text: str, name: str, number: int) -> None:
    """Add a text that links can lead to; its name and number must be unique in the document."""
    paragraph._p.append(_element("w:bookmarkStart", {"w:id": str(number), "w:name": name}))
    paragraph.add_run(text)
    paragraph._p.append(_element("w:bookmarkEnd", {"w:id": str(number)}))


def add_link(paragraph: WordParagraph, text: str, *, bookmark: str = "", address: str = "") -> Run:
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


def number_paragraph(paragraph: WordParagraph, numbering: int) -> None:
    """Make a paragraph an item of a numbering, given by its id."""
    properties = paragraph._p.get_or_add_pPr().get_or_add_numPr()
    properties.get_or_add_numId().val = numbering
    properties.get_or_add_ilvl().val = 0


def repeat_heading(table: WordTable) -> None:
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


def add_page_number(paragraph: WordParagraph) -> None:
    """Add "page of pages" to a footer."""
    _add_field(paragraph, "PAGE")
    paragraph.add_run(" / ")
    _add_field(paragraph, "NUMPAGES")


def _add_field(paragraph: WordParagraph, instruction: str) -> None:
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


def lay_out(table: WordTable, weights: Sequence[float]) -> None:
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


def shade(paragraph: WordParagraph) -> None:
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

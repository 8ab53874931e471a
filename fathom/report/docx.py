"""A report as a Word document: real headings, lists and tables, and citations that lead to a numbered reference.

The text is not trusted: it becomes runs of characters and nothing else. Links lead to the web or into the document.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from io import BytesIO
from typing import TYPE_CHECKING

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
from fathom.report.docx_elements import (
    add_bookmarked,
    add_contents,
    add_link,
    add_page_number,
    lay_out,
    new_numbering,
    number_paragraph,
    repeat_heading,
    set_fonts,
    set_language,
    set_mono,
    set_page,
    shade,
)

if TYPE_CHECKING:
    from docx.document import Document
    from docx.text.paragraph import Paragraph as WordParagraph

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

"""A report as a Word document: real headings, lists and tables, and citations that lead to a numbered reference.

The text is not trusted: it becomes runs of characters and nothing else. Links lead to the web or into the document.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from io import BytesIO
from typing import TYPE_CHECKING

from fathom.models import Report, Source
from fathom.report.docx_elements import (
    add_bookmarked,
    add_link,
    new_numbering,
    number_paragraph,
    plain,
    repeat_heading,
    set_mono,
)
from fathom.report.markdown import chapters, cited_sources, notices, web_address
from fathom.report.prose import new_parser
from fathom.text.citations import cited_ids
from fathom.text.cleaning import clean_line, clean_text

if TYPE_CHECKING:
    from docx.document import Document
    from docx.text.paragraph import Paragraph
    from docx.text.run import Run
    from markdown_it.token import Token

_CITATION = re.compile(r"(\s*\[S[0-9a-f]{6,64}\])")
_DEEPEST = 3  # levels of lists for which Word has styles


def render_docx(report: Report) -> bytes:
    """Return a report as the bytes of a `.docx` file."""
    from docx import Document as new_document

    document = new_document()
    properties = document.core_properties
    properties.title, properties.author, properties.comments = plain(report.title)[:255], "Fathom", ""
    properties.created = properties.modified = datetime.now(UTC)  # the template has its own
    sources = cited_sources(report)
    writer = _Writer(document, {source.source_id: number for number, source in enumerate(sources, 1)})
    document.add_heading(plain(report.title), 0)
    for notice in notices(report):
        writer.blocks(f"> {notice}")
    for chapter in chapters(report):
        document.add_heading(plain(chapter.heading), 1)
        writer.blocks(chapter.markdown)
    document.add_heading("Sources", 1)
    for number, source in enumerate(sources, 1):
        _reference(document, number, source)
    if not sources:
        document.add_paragraph("No source is cited.")
    file = BytesIO()
    document.save(file)
    return file.getvalue()


@dataclass
class _List:
    """An open list: the styles of an item's first paragraph, which has the bullet or number, and of the others."""

    style: str
    rest: str
    numbering: int | None = None
    started: bool = False  # the item has its first paragraph


class _Writer:
    """Writes Markdown into a document; `numbers` are the numbers of the sources by id."""

    def __init__(self, document: Document, numbers: Mapping[str, int]) -> None:
        self._document = document
        self._numbers = numbers

    def blocks(self, markdown: str) -> None:
        """Add the paragraphs, lists and tables of a text."""
        tokens = iter(new_parser().parse(clean_text(markdown)))
        lists: list[_List] = []  # the open ones
        quotes = 0
        for token in tokens:
            if token.type in ("bullet_list_open", "ordered_list_open"):
                lists.append(self._new_list(token, len(lists)))
            elif token.type in ("bullet_list_close", "ordered_list_close"):
                lists.pop()
            elif token.type == "list_item_open":
                lists[-1].started = False
            elif token.type in ("blockquote_open", "blockquote_close"):
                quotes += token.nesting
            elif token.type == "table_open":
                self._table(tokens)
            elif token.type == "heading_open":
                # The section's own heading is at level 1 here and at 2 in Markdown.
                self._inline(self._document.add_heading("", max(2, int(token.tag[1:]) - 1)), next(tokens))
            elif token.type in ("fence", "code_block"):
                set_mono(self._document.add_paragraph().add_run(plain(token.content.rstrip("\n"), lines=True)))
            elif token.type == "inline":
                self._inline(self._paragraph(lists, quotes), token)

    def _new_list(self, token: Token, depth: int) -> _List:
        level = f" {min(depth + 1, _DEEPEST)}" if depth else ""
        opened = _List(f"List Bullet{level}", f"List Continue{level}")
        if token.type == "ordered_list_open":
            opened.style = f"List Number{level}"
            opened.numbering = new_numbering(self._document, opened.style, int(token.attrs.get("start", 1)))
        return opened

    def _paragraph(self, lists: Sequence[_List], quotes: int) -> Paragraph:
        if not lists:
            return self._document.add_paragraph(style="Quote" if quotes else None)
        innermost = lists[-1]
        if innermost.started:
            return self._document.add_paragraph(style=innermost.rest)
        innermost.started = True
        paragraph = self._document.add_paragraph(style=innermost.style)
        if innermost.numbering is not None:
            number_paragraph(paragraph, innermost.numbering)
        return paragraph

    def _table(self, tokens: Iterator[Token]) -> None:
        from docx.enum.text import WD_ALIGN_PARAGRAPH

        rows: list[list[tuple[Token, str]]] = []
        for token in tokens:
            if token.type == "table_close":
                break
            if token.type == "tr_open":
                rows.append([])
            elif token.type in ("th_open", "td_open"):
                rows[-1].append((next(tokens), str(token.attrs.get("style", ""))))
        table = self._document.add_table(len(rows), len(rows[0]), style="Light Grid Accent 1")
        repeat_heading(table)
        for row, cells in zip(table.rows, rows, strict=True):
            for cell, (token, style) in zip(row.cells, cells, strict=True):
                if "right" in style:
                    cell.paragraphs[0].alignment = WD_ALIGN_PARAGRAPH.RIGHT
                self._inline(cell.paragraphs[0], token)
        self._document.add_paragraph()  # tables that touch become one

    def _inline(self, paragraph: Paragraph, token: Token) -> None:
        open_marks = Counter[str]()
        address = ""
        for child in token.children or []:
            kind = child.type.removesuffix("_open").removesuffix("_close")
            if kind == "link":
                address = web_address(str(child.attrs.get("href", "")))  # none when it closes
            elif child.nesting:
                open_marks[kind] += child.nesting
            elif kind == "hardbreak":
                paragraph.add_run().add_break()
            else:
                text = " " if kind == "softbreak" else child.content
                for run in self._runs(paragraph, text, address):
                    # None leaves it to the style, which False would override.
                    run.bold, run.italic = bool(open_marks["strong"]) or None, bool(open_marks["em"]) or None
                    run.font.strike = bool(open_marks["s"]) or None
                    if kind == "code_inline":
                        set_mono(run)

    def _runs(self, paragraph: Paragraph, text: str, address: str) -> Iterator[Run]:
        for part in _CITATION.split(text):
            number = self._numbers.get("".join(cited_ids(part))) if _CITATION.fullmatch(part) else None
            if number:
                if part[0].isspace():
                    paragraph.add_run(" ")
                yield add_link(paragraph, f"[{number}]", bookmark=f"source_{number}")
            elif part and address:
                yield add_link(paragraph, plain(part), address=address)
            elif part:
                yield paragraph.add_run(plain(part))


def _reference(document: Document, number: int, source: Source) -> None:
    from docx.shared import Cm

    paragraph = document.add_paragraph()
    paragraph.paragraph_format.left_indent, paragraph.paragraph_format.first_line_indent = Cm(1), Cm(-1)
    add_bookmarked(paragraph, f"[{number}]", f"source_{number}", number)
    paragraph.add_run("\t")
    title = plain(clean_line(source.title) or clean_line(source.url))
    if address := web_address(source.url):
        add_link(paragraph, title, address=address)
    else:
        paragraph.add_run(f"{title}, ")
        set_mono(paragraph.add_run(plain(source.url)))
    for detail in filter(None, (source.location, source.published)):
        paragraph.add_run(f", {plain(detail)}")

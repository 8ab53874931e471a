"""A page of the closed world, and its forms: Markdown as a search service returns it, HTML as a site serves it, PDF."""

from __future__ import annotations

import html
import io
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

PORT = 8008
KINDS = (
    "primary",
    "reference",
    "news",
    "copy",
    "farm",
    "outdated",
    "table",
    "pdf",
    "paywall",
    "hostile",
    "spam",
    "guide",
)
Kind = Literal[
    "primary", "reference", "news", "copy", "farm", "outdated", "table", "pdf", "paywall", "hostile", "spam", "guide"
]


@dataclass(frozen=True)
class Block:
    """A part of a page: `text` of a heading, paragraph or code; `rows` of a list (one cell each) or a table."""

    kind: Literal["heading", "paragraph", "list", "table", "code"]
    text: str = ""
    rows: tuple[tuple[str, ...], ...] = ()  # of a table, the first is its header


def heading(text: str) -> Block:
    return Block("heading", text)


def paragraph(*sentences: str) -> Block:
    return Block("paragraph", " ".join(sentences))


def listed(*items: str) -> Block:
    return Block("list", rows=tuple((item,) for item in items))


def table(*rows: tuple[str, ...]) -> Block:
    return Block("table", rows=rows)


def code(text: str) -> Block:
    return Block("code", text)


@dataclass(frozen=True)
class Page:
    """A page: `hidden` is text that only a program sees, `teaser` how many blocks can be read without paying."""

    host: str
    path: str
    title: str
    kind: Kind
    blocks: tuple[Block, ...]
    published: str = ""  # ISO 8601 date
    hidden: str = ""
    teaser: int = 0
    language: str = "en"

    @property
    def url(self) -> str:
        """Its address; the port is always the same, as it is a part of it."""
        return f"http://{self.host}:{PORT}/{self.path}"

    @property
    def shown(self) -> tuple[Block, ...]:
        """The blocks that a reader who does not pay sees."""
        if not self.teaser:
            return self.blocks
        return (*self.blocks[: self.teaser], paragraph("To read on, subscribe from 9 crowns a month."))

    @cached_property
    def markdown(self) -> str:
        """The page as a search service hands it on: whole, and with what is hidden from people."""
        parts = [f"# {self.title}"]
        for block in self.shown:
            if block.kind == "heading":
                parts.append(f"## {block.text}")
            elif block.kind == "list":
                parts.append("\n".join(f"- {item}" for (item,) in block.rows))
            elif block.kind == "table":
                first, *rest = (f"| {' | '.join(row)} |" for row in block.rows)
                parts.append("\n".join([first, f"|{'---|' * len(block.rows[0])}", *rest]))
            elif block.kind == "code":
                parts.append(f"```\n{block.text}\n```")
            else:
                parts.append(block.text)
        return "\n\n".join([*parts, *([self.hidden] if self.hidden else [])])

    def html(self) -> str:
        """The page as its site serves it."""
        e = html.escape
        body = "".join(_HTML[block.kind](block) for block in self.shown)
        day = f'<meta property="article:published_time" content="{self.published}">' if self.published else ""
        hidden = f'<div style="display:none">{e(self.hidden)}</div>' if self.hidden else ""
        return (
            f'<!doctype html><html lang="{self.language}"><head><meta charset="utf-8"><title>{e(self.title)}</title>'
            f"{day}</head><body><nav><a href='/'>{e(self.host)}</a></nav><main><article><h1>{e(self.title)}</h1>"
            f"{body}{hidden}</article></main><footer>{e(self.host)}. All rights reserved.</footer></body></html>"
        )

    def pdf(self) -> bytes:
        """The page as a PDF file, the same bytes every time."""
        from reportlab.lib.styles import getSampleStyleSheet
        from reportlab.platypus import Flowable, Paragraph, SimpleDocTemplate, Spacer, Table

        styles = getSampleStyleSheet()
        story: list[Flowable] = [Paragraph(html.escape(self.title), styles["Title"])]
        for block in self.shown:
            if block.kind == "table":
                story.append(Table([list(row) for row in block.rows]))
            elif block.kind == "list":
                story += [Paragraph(f"• {html.escape(item)}", styles["BodyText"]) for (item,) in block.rows]
            else:
                style = styles["Heading2" if block.kind == "heading" else "BodyText"]
                story.append(Paragraph(html.escape(block.text), style))
            story.append(Spacer(1, 8))
        file = io.BytesIO()
        SimpleDocTemplate(file, title=self.title, invariant=1).build(story)
        return file.getvalue()


def _rows(block: Block) -> str:
    first, *rest = block.rows
    head = "".join(f"<th>{html.escape(cell)}</th>" for cell in first)
    body = "".join(f"<tr>{''.join(f'<td>{html.escape(cell)}</td>' for cell in row)}</tr>" for row in rest)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


_HTML: dict[str, Callable[[Block], str]] = {
    "heading": lambda block: f"<h2>{html.escape(block.text)}</h2>",
    "paragraph": lambda block: f"<p>{html.escape(block.text)}</p>",
    "list": lambda block: f"<ul>{''.join(f'<li>{html.escape(item)}</li>' for (item,) in block.rows)}</ul>",
    "table": _rows,
    "code": lambda block: f"<pre><code>{html.escape(block.text)}</code></pre>",
}

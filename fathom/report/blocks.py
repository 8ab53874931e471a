"""Markdown of a report as blocks and runs of text: what Word documents and PDF files are made from."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal

from fathom.report.prose import new_parser
from fathom.text.citations import cited_ids
from fathom.text.plain import clean_text
from fathom.text.urls import linkable

if TYPE_CHECKING:
    from markdown_it.tree import SyntaxTreeNode

_CITATION = re.compile(r"(\s*\[S[0-9a-f]{6,64}\])")
_NOT_IN_XML = {0xFFFE: None, 0xFFFF: None}
Side = Literal["left", "center", "right"]


@dataclass(frozen=True)
class Run:
    """Characters of one look. `address` makes a link, `citation`, from 1, a link to a reference; "\\n" is a break."""

    text: str
    bold: bool = False
    italic: bool = False
    strike: bool = False
    code: bool = False
    address: str = ""
    citation: int = 0


@dataclass(frozen=True)
class Paragraph:
    """Text of one paragraph."""

    runs: list[Run]
    kind: str = "paragraph"


@dataclass(frozen=True)
class Heading:
    """A heading inside a chapter, whose own heading is at level 1."""

    level: int
    runs: list[Run]
    kind: str = "heading"


@dataclass(frozen=True)
class Code:
    """Lines that keep their layout."""

    text: str
    kind: str = "code"


@dataclass(frozen=True)
class Items:
    """A list; `start` is the first number, None for bullets."""

    items: list[list[Block]]
    start: int | None = None
    kind: str = "items"


@dataclass(frozen=True)
class Table:
    """A table; `rows` have as many cells as `head`."""

    head: list[list[Run]]
    rows: list[list[list[Run]]]
    sides: list[Side] = field(default_factory=list)
    kind: str = "table"


@dataclass(frozen=True)
class Quotation:
    """Blocks that are set in."""

    blocks: list[Block]
    kind: str = "quotation"


Block = Paragraph | Heading | Code | Items | Table | Quotation


def blocks_of(markdown: str, numbers: Mapping[str, int]) -> list[Block]:
    """Return the blocks of a text that cites by source id; `numbers` are the numbers of the sources."""
    from markdown_it.tree import SyntaxTreeNode

    root = SyntaxTreeNode(new_parser().parse(clean_text(markdown)))
    return list(_blocks(root.children, numbers))


def plain(text: str, *, lines: bool = False) -> str:
    """Return a text without the characters that XML does not allow or a reader does not see, on one line by default."""
    cleaned = clean_text(text).translate(_NOT_IN_XML)
    return cleaned if lines else re.sub(r"\s*\n\s*", " ", cleaned)


def _blocks(nodes: Sequence[SyntaxTreeNode], numbers: Mapping[str, int]) -> Iterator[Block]:
    for node in nodes:
        match node.type:
            case "paragraph":
                yield Paragraph(_inline(node, numbers))
            case "heading":
                yield Heading(max(2, int(node.tag[1:]) - 1), _inline(node, numbers))
            case "fence" | "code_block":
                yield Code(plain(node.content.rstrip("\n"), lines=True))
            case "bullet_list" | "ordered_list":
                start = int(node.attrs.get("start", 1)) if node.type == "ordered_list" else None
                yield Items([list(_blocks(item.children, numbers)) for item in node.children], start)
            case "blockquote":
                yield Quotation(list(_blocks(node.children, numbers)))
            case "table":
                yield _table(node, numbers)


def _table(node: SyntaxTreeNode, numbers: Mapping[str, int]) -> Table:
    rows = [row for part in node.children for row in part.children]
    head, *others = ([_inline(cell, numbers) for cell in row.children] for row in rows)
    return Table(head, others, [_side(str(cell.attrs.get("style", ""))) for cell in rows[0].children])


def _side(style: str) -> Side:
    return "right" if "right" in style else "center" if "center" in style else "left"


def _inline(node: SyntaxTreeNode, numbers: Mapping[str, int]) -> list[Run]:
    return [run for child in node.children for run in _runs(child, Run(""), numbers)]


def _runs(node: SyntaxTreeNode, look: Run, numbers: Mapping[str, int]) -> Iterator[Run]:
    match node.type:
        case "strong":
            look = replace(look, bold=True)
        case "em":
            look = replace(look, italic=True)
        case "s":
            look = replace(look, strike=True)
        case "link":
            look = replace(look, address=linkable(str(node.attrs.get("href", ""))))
        case "softbreak":
            yield replace(look, text=" ")
        case "hardbreak":
            yield replace(look, text="\n")
        case "code_inline":
            yield from _cited(node.content, replace(look, code=True), numbers)
        case "text" | "html_inline" | "text_special":
            yield from _cited(node.content, look, numbers)
    for child in node.children:
        yield from _runs(child, look, numbers)


def _cited(text: str, look: Run, numbers: Mapping[str, int]) -> Iterator[Run]:
    for part in _CITATION.split(text):
        number = numbers.get("".join(cited_ids(part)), 0) if _CITATION.fullmatch(part) else 0
        if number:
            if part[0].isspace():
                yield replace(look, text=" ", code=False)
            yield replace(look, text=f"[{number}]", code=False, address="", citation=number)
        elif shown := plain(part):
            yield replace(look, text=shown)

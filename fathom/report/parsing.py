"""How the Markdown of a report is read: no raw HTML, no image, and names such as `__getattr__` as they are."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.rules_inline import StateInline


def new_parser() -> MarkdownIt:
    """Return a parser of CommonMark with tables and strikethrough, in which only asterisks are emphasis."""
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"]).disable("image")
    parser.inline.ruler.at("emphasis", _emphasis)
    return parser


def _emphasis(state: StateInline, silent: bool) -> bool:
    from markdown_it.rules_inline import emphasis

    return state.src[state.pos] != "_" and emphasis.tokenize(state, silent)

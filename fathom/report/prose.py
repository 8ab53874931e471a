"""The Markdown of a report: how it is read, and made into safe HTML without raw HTML, images or non-web links."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING

from markupsafe import Markup

from fathom.models import Claim, ReportSection
from fathom.report.marks import link_marks, place_marks
from fathom.report.quotations import quoted_markdown

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.rules_core import StateCore
    from markdown_it.rules_inline import StateInline

_LEVEL = 2  # of the section's own heading; headings in its Markdown come below it
_BLOCKS = {"p", "h3", "h4", "h5", "h6", "ul", "ol", "li", "blockquote", "pre", "hr", "br"}
_TABLES = {"table", "thead", "tbody", "tr", "th", "td"}
_INLINE = {"em", "strong", "s", "code", "a"}
_ATTRIBUTES = {"a": {"href"}, "th": {"class"}, "td": {"class"}, "ol": {"start"}}
_SCROLLING = '<div class="scroll" role="region" aria-label="Table" tabindex="0"><table>'

_CODE = '<pre tabindex="0">'  # it scrolls sideways, also by keyboard


def new_parser() -> MarkdownIt:
    """Return a parser of CommonMark with tables and strikethrough; `_` is not emphasis, because names contain it."""
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"]).disable("image")
    parser.inline.ruler.at("emphasis", _emphasis)
    return parser


def _emphasis(state: StateInline, silent: bool) -> bool:
    from markdown_it.rules_inline import emphasis

    return state.src[state.pos] != "_" and emphasis.tokenize(state, silent)


def section_html(
    section: ReportSection,
    claims: Sequence[Claim],
    numbers: Mapping[str, int],
    part: tuple[int, int] | None = None,
) -> Markup:
    """Return a section, or the part of it between two offsets, as HTML with its citations linked to the claims."""
    markdown = place_marks(section.markdown, claims, numbers, part)
    html = _prose(quoted_markdown(markdown) if section.quoted else markdown, _INLINE)
    return link_marks(html, {claim.number: claim for claim in claims})


def draft_html(markdown: str) -> Markup:
    """Return a section whose claims are not checked yet as HTML; the ids that it cites stay, and nothing is a link."""
    return Markup(_prose(markdown, _INLINE - {"a"}))  # noqa: S704 - sanitised


def _prose(markdown: str, inline: set[str]) -> str:
    html = _sanitised(_parser().render(markdown), _BLOCKS | _TABLES | inline)
    return html.replace("<table>", _SCROLLING).replace("</table>", "</table></div>").replace("<pre>", _CODE)


def inline_html(markdown: str) -> Markup:
    """Return one line of Markdown as HTML."""
    html = _sanitised(_parser().renderInline(markdown), _INLINE - {"a"})
    return Markup(html)  # noqa: S704 - sanitised


def _sanitised(html: str, tags: set[str]) -> str:
    import nh3

    return nh3.clean(
        html,
        tags=tags,
        attributes={tag: allowed for tag, allowed in _ATTRIBUTES.items() if tag in tags},
        url_schemes={"http", "https"},
        link_rel="noopener noreferrer nofollow" if "a" in tags else None,
    )


@cache
def _parser() -> MarkdownIt:
    parser = new_parser()
    parser.core.ruler.push("shape", _shape)
    return parser


def _shape(state: StateCore) -> None:
    """Put headings below that of their section, in order, and align cells by class: the page allows no style."""
    last = _LEVEL
    for token in state.tokens:
        if token.type == "heading_open":
            last = min(max(int(token.tag[1:]), _LEVEL + 1), last + 1, 6)
        if token.type in ("heading_open", "heading_close"):
            token.tag = f"h{last}"
        if side := re.search(r"right|center", str(token.attrs.pop("style", ""))):
            token.attrs["class"] = side[0]

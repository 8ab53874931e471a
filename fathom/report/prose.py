"""Markdown of a report as HTML that can do no harm: no raw HTML, no image, links to the web only."""

from __future__ import annotations

import re
from collections.abc import Mapping, MutableMapping, Sequence
from functools import cache
from typing import TYPE_CHECKING

from markupsafe import Markup

from fathom.models import Claim
from fathom.report.citing import link_marks, place_marks
from fathom.report.parsing import new_parser

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.rules_core import StateCore

_LEVEL = 2  # sections have headings of this level; those in their Markdown come below it
_BLOCKS = {"p", "h3", "h4", "h5", "h6", "ul", "ol", "li", "blockquote", "pre", "hr", "br"}
_TABLES = {"table", "thead", "tbody", "tr", "th", "td"}
_INLINE = {"em", "strong", "s", "code", "a"}
_ATTRIBUTES = {"a": {"href"}, "th": {"class"}, "td": {"class"}, "ol": {"start"}}
_SCROLLING = '<div class="scroll" role="region" aria-label="Table" tabindex="0"><table>'


def section_html(markdown: str, claims: Sequence[Claim], numbers: Mapping[str, int]) -> Markup:
    """Return a section as HTML, its citations linked to its claims, and these to their evidence."""
    html = _sanitised(_parser().render(place_marks(markdown, claims, numbers)), _BLOCKS | _TABLES | _INLINE)
    html = html.replace("<table>", _SCROLLING).replace("</table>", "</table></div>")
    return link_marks(html, {claim.number: claim for claim in claims})


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
    """Lower headings below that of their section, in order, and align cells by class: the page allows no style."""
    last = _LEVEL
    for token in state.tokens:
        if token.type == "heading_open":
            last = min(max(int(token.tag[1:]), _LEVEL + 1), last + 1, 6)
        if token.type in ("heading_open", "heading_close"):
            token.tag = f"h{last}"
        if token.type in ("th_open", "td_open"):
            _align(token.attrs)


def _align(attributes: MutableMapping[str, str | int | float]) -> None:
    side = re.search(r"right|center", str(attributes.pop("style", "")))
    if side:
        attributes["class"] = side[0]

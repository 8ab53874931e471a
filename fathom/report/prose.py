"""The Markdown of a report: parsing it, marking its claims, and rendering it as safe HTML.

Citations become plain-text marks before the Markdown is rendered, and links after the HTML was sanitised. So the text
of a report can neither make a link of Fathom's own nor break one.
"""

from __future__ import annotations

import re
from collections import defaultdict, deque
from collections.abc import Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING

from markupsafe import Markup, escape

from fathom.evidence.claims import claim_text, lead_ins, with_marks_in
from fathom.evidence.computed import cells_read
from fathom.models import Claim, Corroboration, ReportSection, Verdict
from fathom.report.quotations import quoted_markdown
from fathom.text.citations import in_last_cell, with_known_ids
from fathom.text.sentences import Sentence, split_markdown
from fathom.text.wording import ENGLISH, Wording

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.rules_core import StateCore
    from markdown_it.rules_inline import StateInline

_LEVEL = 2  # level of the section's own heading; headings in its Markdown come below it
_BLOCKS = {"p", "h3", "h4", "h5", "h6", "ul", "ol", "li", "blockquote", "pre", "hr", "br"}
_TABLES = {"table", "thead", "tbody", "tr", "th", "td"}
_INLINE = {"em", "strong", "s", "code", "a"}
_ATTRIBUTES = {"a": {"href"}, "th": {"class"}, "td": {"class"}, "ol": {"start"}}
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
    words: Wording = ENGLISH,
    part: tuple[int, int] | None = None,
) -> Markup:
    """Return a section, or the part of it between two offsets, as HTML with its citations linked to the claims."""
    markdown = with_marks_in(words, place_marks(section.markdown, claims, numbers, part))
    html = _prose(quoted_markdown(markdown) if section.quoted else markdown, _INLINE, words)
    return link_marks(html, {claim.number: claim for claim in claims}, words)


def draft_html(markdown: str) -> Markup:
    """Return Markdown as HTML in which citations stay as they are, and nothing is a link."""
    return Markup(_prose(markdown, _INLINE - {"a"}))  # noqa: S704 - sanitised


def _prose(markdown: str, inline: set[str], words: Wording = ENGLISH) -> str:
    html = _sanitised(_parser().render(markdown), _BLOCKS | _TABLES | inline)
    scrolling = f'<div class="scroll" role="group" aria-label="{escape(words("Table"))}" tabindex="0"><table>'
    return html.replace("<table>", scrolling).replace("</table>", "</table></div>").replace("<pre>", _CODE)


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
    """Put headings below their section's heading, in order, and align cells by class: the page allows no style."""
    last = _LEVEL
    for token in state.tokens:
        if token.type == "heading_open":
            last = min(max(int(token.tag[1:]), _LEVEL + 1), last + 1, 6)
        if token.type in ("heading_open", "heading_close"):
            token.tag = f"h{last}"
        if side := re.search(r"right|center", str(token.attrs.pop("style", ""))):
            token.attrs["class"] = side[0]


# Brackets that Unicode counts as punctuation, so that emphasis ends before them; prose does not use them.
_OPEN, _CLOSE = "⸨", "⸩"
NO_MARKS = str.maketrans({_OPEN: "(", _CLOSE: ")"})
"""Replaces the brackets of marks in untrusted text."""
_MARK = re.compile(rf"{_OPEN}(\d+)\.(\d+|!){_CLOSE}")
_CITATION = re.compile(r"(?<!\s)\s*\[(S[0-9a-f]{6,64})\]")


def place_marks(
    markdown: str, claims: Sequence[Claim], numbers: Mapping[str, int], part: tuple[int, int] | None = None
) -> str:
    """Return a section's Markdown with a mark for each citation, and one behind each doubtful sentence.

    The citation of code, and the mark of its doubt, stand behind the line that leads to it. `part` holds the offsets of
    the part to return; no sentence may cross them.

    It must be free of `NO_MARKS`' characters. Citations of ids without a number are left out.
    """
    waiting: defaultdict[str, deque[Claim]] = defaultdict(deque)
    for claim in claims:
        waiting[claim.sentence].append(claim)
    sentences = split_markdown(markdown)
    found = [waiting[text].popleft() if waiting[text] else None for text in map(claim_text, sentences)]
    led_to: defaultdict[int, list[Claim]] = defaultdict(list)
    for code, lead in lead_ins(sentences).items():
        led_to[lead] += filter(None, [found[code]])
    last, end = part or (0, len(markdown))
    parts: list[str] = []
    for number, sentence in enumerate(sentences):
        if last <= sentence.start and sentence.end <= end:
            parts += [markdown[last : sentence.start], _marked(sentence, found[number], led_to[number], numbers)]
            last = sentence.end
    return "".join([*parts, markdown[last:end]])


def link_marks(html: str, claims: Mapping[int, Claim], words: Wording) -> Markup:
    """Return sanitised HTML with its marks as links to the claims, by number, and to the sources."""

    def evidence(number: str) -> str:
        return escape(words("evidence for claim {number}", number=number))

    def link(mark: re.Match[str]) -> str:
        number, shown = mark.groups()
        claim = claims.get(int(number))
        if shown == "!":
            word = doubt(claim) if claim else ""
            if not word:
                return ""
            said = escape(words(word))
            about = f'href="#claim-{number}" aria-label="{said}: {evidence(number)}"'
            return f' <a class="mark {word.replace(" ", "_")}" {about}>{said}</a>'
        target, about = (f"claim-{number}", evidence(number)) if claim else (f"source-{shown}", escape(words("source")))
        return f'<a class="cite" href="#{target}" aria-label="{shown}: {about}">{shown}</a>'

    return Markup(_MARK.sub(link, html))  # noqa: S704 - sanitised before, and the links are made of numbers


def doubt(claim: Claim) -> str:
    """Return the word for a reader's reason to doubt a claim, or nothing."""
    if claim.verdict.objects:
        return claim.verdict.value.replace("_", " ")
    return "disputed" if claim.corroboration is Corroboration.contradicted else ""


def support_in_words(claim: Claim, words: Wording) -> str:
    """Return how many sources support a claim; of a computed one, which no passage states, what it is computed from."""
    cells = cells_read(claim.sentence) if claim.verdict is Verdict.supported else 0
    if cells and claim.corroboration is Corroboration.unverified:
        return words("computed from {cells}", cells=words.counted(cells, "cell"))
    return words(claim.corroboration.words)


def _marked(sentence: Sentence, claim: Claim | None, led_to: Sequence[Claim], numbers: Mapping[str, int]) -> str:
    """Return a sentence with its marks and the marks of the code that it leads to; code itself has no marks."""
    if sentence.kind == "code":
        return sentence.text
    own = [*filter(None, [claim]), *led_to]
    number = own[0].number if own else 0
    known = with_known_ids(sentence.text, numbers)
    doubted = "".join(f"{_OPEN}{claim.number}.!{_CLOSE}" for claim in own if doubt(claim))
    said = in_last_cell(known, doubted) if sentence.kind == "table" else f"{known}{doubted}"
    return _CITATION.sub(lambda found: f"{_OPEN}{number}.{numbers[found[1]]}{_CLOSE}", said)

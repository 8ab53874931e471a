"""A report as a paged document: cover, chapters in blocks, references and the evidence for each claim."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from textwrap import shorten
from typing import TYPE_CHECKING, Literal

from fathom.models import Claim, Quote, Report, Source, Verdict
from fathom.report.answer import making_parts
from fathom.report.chapters import address_in_words, chapters, language_of, place_in, question_of, title_of
from fathom.report.prose import new_parser
from fathom.report.quotations import without_bars
from fathom.sources.corroboration import origin_of
from fathom.text.citations import cited_ids
from fathom.text.plain import clean_line, clean_text
from fathom.text.urls import linkable
from fathom.text.wording import Wording, wording

if TYPE_CHECKING:
    from markdown_it.tree import SyntaxTreeNode

CLAIM_CHARS, QUOTE_CHARS = 140, 260
COLUMNS = ("No.", "Claim", "Verdict", "Passage and where it is stored")
"""The columns of the evidence table."""
_FIXED = ("Research report", "Sources", "No source is cited.", "Evidence")
_EMPHASIS = re.compile(r"\*\*(?=\S)([^*]+?)(?<=\S)\*\*")
_MARKS = re.compile(r"[`\\|]")
_ITEM = re.compile(r"\A\s*(?:[-*+•]|\d{1,3}[.)])\s+")


@dataclass(frozen=True)
class Chapter:
    """A chapter of the document."""

    heading: str
    blocks: list[Block]


@dataclass(frozen=True)
class SourceReference:
    """A numbered source; `address` is empty if the source is not on the web."""

    number: int
    title: str
    address: str
    details: str


@dataclass(frozen=True)
class EvidenceRow:
    """A row of the evidence table: a claim, its verdict, the passage that supports it and the passage's place."""

    number: int
    claim: str
    verdict: str
    citations: list[int]
    passage: str  # empty if the claim is the passage
    place: str


@dataclass(frozen=True)
class Layout:
    """A report, ready to be laid out on pages. No text of it is markup."""

    title: str
    question: str  # empty if the title states it
    cover: str
    language: str  # as an ISO 639 code; empty if it is not clear
    words: dict[str, str]  # the fixed words by the English ones
    chapters: list[Chapter]
    references: list[SourceReference]
    evidence: list[EvidenceRow]


def document_of(report: Report) -> Layout:
    """Return the document of a report."""
    sources = report.sources
    numbers = {source.source_id: number for number, source in enumerate(sources, 1)}
    words = wording(report.language)
    counts = [
        words.counted(len(sources), "source"),
        words("{claims} checked", claims=words.counted(len(report.claims), "claim")),
    ]
    return Layout(
        title=plain(clean_line(report.title)) or words("Report"),
        question=plain(question_of(report)),
        cover=plain(" · ".join([*making_parts(report.made, words, timed=True), *counts])),
        language=language_of(report),
        words={phrase: words(phrase) for phrase in (*_FIXED, *COLUMNS)},
        chapters=[
            Chapter(plain(part.heading), blocks_of(part.markdown, numbers)) for part in chapters(report, making=False)
        ],
        references=[_reference(number, source, words) for number, source in enumerate(sources, 1)],
        evidence=evidence_of(report, numbers),
    )


def evidence_of(report: Report, numbers: Mapping[str, int]) -> list[EvidenceRow]:
    """Return a row for each claim; `numbers` holds the numbers of the sources."""
    return [_evidence(claim, numbers, wording(report.language)) for claim in report.claims]


def is_quotation(claim: Claim) -> bool:
    """Whether a supported claim equals its first quote, so that a reader needs only one of them."""
    quote = claim.quotes[0].text if claim.quotes and claim.verdict is Verdict.supported else ""
    return bool(quote) and _unmarked(claim.sentence) == _unmarked(quote)


def place_of(quote: Quote, words: Wording) -> str:
    """Return the place where a quote is stored."""
    start, end = words.number(quote.start), words.number(quote.end)
    return words("{file}, bytes {start} to {end}", file=quote.artifact_file, start=start, end=end)


def _unmarked(text: str) -> str:
    """Return a text on one line without the marks of emphasis, code and cells, and without an item's number."""
    return " ".join(_MARKS.sub(" ", _ITEM.sub("", _EMPHASIS.sub(r"\1", text))).split())


def _evidence(claim: Claim, numbers: Mapping[str, int], words: Wording) -> EvidenceRow:
    best: Sequence[Quote] = claim.quotes[:1]
    passage = "" if is_quotation(claim) else " ".join(without_bars(quote.text) for quote in best)
    above = " › ".join(heading for quote in best for heading in quote.headings)
    return EvidenceRow(
        number=claim.number,
        claim=plain(shorten(_EMPHASIS.sub(r"\1", claim.sentence).replace("`", ""), CLAIM_CHARS, placeholder=" …")),
        verdict=words.listed([words(claim.verdict.words), *map(words.stored, claim.complaints)]),
        citations=[numbers[source_id] for source_id in claim.source_ids if source_id in numbers],
        passage=plain(shorten(passage, QUOTE_CHARS, placeholder=" …")),
        place=plain(clean_line(" · ".join(filter(None, [above, *(place_of(quote, words) for quote in best)])))),
    )


def _reference(number: int, source: Source, words: Wording) -> SourceReference:
    address = linkable(source.url)
    where = [] if address else [address_in_words(origin_of(source), words)]
    return SourceReference(
        number=number,
        title=plain(title_of(source)),
        address=address,
        details=plain(", ".join([*map(clean_line, where), *place_in(source, words)])),
    )


_CITATION = re.compile(r"(\s*\[S[0-9a-f]{6,64}\])")
_NOT_IN_XML = {0xFFFE: None, 0xFFFF: None}
Side = Literal["left", "center", "right"]


@dataclass(frozen=True)
class StyledText:
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

    runs: list[StyledText]
    kind: str = "paragraph"


@dataclass(frozen=True)
class Heading:
    """A heading inside a chapter, whose own heading is at level 1."""

    level: int
    runs: list[StyledText]
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

    head: list[list[StyledText]]
    rows: list[list[list[StyledText]]]
    sides: list[Side] = field(default_factory=list)
    kind: str = "table"


@dataclass(frozen=True)
class Quotation:
    """Indented blocks."""

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


def _inline(node: SyntaxTreeNode, numbers: Mapping[str, int]) -> list[StyledText]:
    return [run for child in node.children for run in _runs(child, StyledText(""), numbers)]


def _runs(node: SyntaxTreeNode, look: StyledText, numbers: Mapping[str, int]) -> Iterator[StyledText]:
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


def _cited(text: str, look: StyledText, numbers: Mapping[str, int]) -> Iterator[StyledText]:
    for part in _CITATION.split(text):
        number = numbers.get("".join(cited_ids(part)), 0) if _CITATION.fullmatch(part) else 0
        if number:
            if part[0].isspace():
                yield replace(look, text=" ", code=False)
            yield replace(look, text=f"[{number}]", code=False, address="", citation=number)
        elif shown := plain(part):
            yield replace(look, text=shown)

"""A report as a paged document: cover, chapters, references and the evidence for each claim."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from textwrap import shorten

from fathom.models import Claim, Quote, Report, Source, Verdict
from fathom.report.answer import making_parts
from fathom.report.blocks import Block, blocks_of, plain
from fathom.report.chapters import chapters, cited_sources, language_of, place_in, question_of, title_of
from fathom.text.plain import clean_line, counted
from fathom.text.urls import linkable

CLAIM_CHARS, QUOTE_CHARS = 140, 260
_EMPHASIS = re.compile(r"\*\*(?=\S)([^*]+?)(?<=\S)\*\*")
_MARKS = re.compile(r"[`\\|]")
_ITEM = re.compile(r"\A\s*(?:[-*+•]|\d{1,3}[.)])\s+")


@dataclass(frozen=True)
class Chapter:
    """A chapter of the document."""

    heading: str
    blocks: list[Block]


@dataclass(frozen=True)
class Reference:
    """A numbered source; `address` is empty where it is not on the web."""

    number: int
    title: str
    address: str
    details: str


@dataclass(frozen=True)
class Evidence:
    """A row of the evidence table: a claim, its verdict, the passage that bears it and where that is stored."""

    number: int
    claim: str
    verdict: str
    citations: list[int]
    passage: str  # empty where the claim is the passage
    place: str


@dataclass(frozen=True)
class Document:
    """A report, ready to be laid out on pages. No text of it is markup."""

    title: str
    question: str  # empty where the title says it
    cover: str
    language: str  # as an ISO 639 code; empty where it is not clear
    chapters: list[Chapter]
    references: list[Reference]
    evidence: list[Evidence]


def document_of(report: Report) -> Document:
    """Return the document of a report."""
    sources = cited_sources(report)
    numbers = {source.source_id: number for number, source in enumerate(sources, 1)}
    counts = [counted(len(sources), "source"), counted(len(report.claims), "claim") + " checked"]
    return Document(
        title=plain(clean_line(report.title)) or "Report",
        question=plain(question_of(report)),
        cover=plain(" · ".join([*making_parts(report.made, timed=True), *counts])),
        language=language_of(report),
        chapters=[
            Chapter(plain(part.heading), blocks_of(part.markdown, numbers)) for part in chapters(report, making=False)
        ],
        references=[_reference(number, source) for number, source in enumerate(sources, 1)],
        evidence=evidence_of(report, numbers),
    )


def evidence_of(report: Report, numbers: Mapping[str, int]) -> list[Evidence]:
    """Return a row for each claim; `numbers` are those of the sources."""
    return [_evidence(claim, numbers) for claim in report.claims]


def is_quotation(claim: Claim) -> bool:
    """Whether a supported claim is what its first quote says, so that one of them is enough to read."""
    quote = claim.quotes[0].text if claim.quotes and claim.verdict is Verdict.supported else ""
    return bool(quote) and _unmarked(claim.sentence) == _unmarked(quote)


def place_of(quote: Quote) -> str:
    """Return where a quote is stored."""
    return f"{quote.artifact_file}, bytes {quote.start:,} to {quote.end:,}"


def _unmarked(text: str) -> str:
    """Return a text on one line without the marks of emphasis, code and cells, and without what numbers an item."""
    return " ".join(_MARKS.sub(" ", _ITEM.sub("", _EMPHASIS.sub(r"\1", text))).split())


def _evidence(claim: Claim, numbers: Mapping[str, int]) -> Evidence:
    best: Sequence[Quote] = claim.quotes[:1]
    passage = "" if is_quotation(claim) else " ".join(quote.text for quote in best)
    above = " › ".join(heading for quote in best for heading in quote.headings)
    return Evidence(
        number=claim.number,
        claim=plain(shorten(_EMPHASIS.sub(r"\1", claim.sentence).replace("`", ""), CLAIM_CHARS, placeholder=" …")),
        verdict=", ".join([claim.verdict.words, *claim.complaints]),
        citations=[numbers[source_id] for source_id in claim.source_ids if source_id in numbers],
        passage=plain(shorten(passage, QUOTE_CHARS, placeholder=" …")),
        place=plain(clean_line(" · ".join(filter(None, [above, *map(place_of, best)])))),
    )


def _reference(number: int, source: Source) -> Reference:
    address = linkable(source.url)
    where = [] if address else [source.url]
    return Reference(
        number=number,
        title=plain(title_of(source)),
        address=address,
        details=plain(", ".join([*map(clean_line, where), *place_in(source)])),
    )

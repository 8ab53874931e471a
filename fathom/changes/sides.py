"""A run as it is compared: what it says, and the sentences of its pages that bear that."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from fathom.changes.model import Compared, Difference, Place, Statement
from fathom.changes.pages import Line, Page, pages_of
from fathom.evidence.passages import Search
from fathom.evidence.stored import StoredText
from fathom.models import Claim, Quote, Report, Source


@dataclass
class Side:
    """A run: its report, if it has one, and every text that it read."""

    run_id: str
    started: str  # ISO 8601, UTC
    query: str
    report: Report | None
    texts: Sequence[StoredText]

    @cached_property
    def pages(self) -> dict[str, Page]:
        """What it read, by address."""
        return pages_of(self.texts)

    @cached_property
    def search(self) -> Search:
        """Everything that it read, to search in."""
        return Search(self.texts)

    @cached_property
    def _addresses(self) -> Mapping[str, str]:
        return {text.source.source_id: text.source.url for text in self.texts}

    def lines(self, quote: Quote) -> list[tuple[Page, Line]]:
        """Return the sentences in which a quote stands, each with its page."""
        page = self.pages.get(self._addresses.get(quote.source_id, ""))
        return [(page, line) for line in page.holding(quote)] if page else []

    @property
    def claims(self) -> list[Claim]:
        """What its report says with evidence."""
        said = self.report.claims if self.report else []
        return [claim for claim in said if not claim.verdict.objects and claim.quotes]

    def said(self, claim: Claim, grounds: Sequence[Ground]) -> Statement:
        """Return a claim as one side of a change; where no sentence was found that bears it, with its quotes."""
        if grounds:
            return statement(claim.sentence, [(g.page, g.line) for g in grounds], claim.number)
        cited = (self.pages.get(self._addresses.get(quote.source_id, "")) for quote in claim.quotes)
        sources = {page.source.url: place(page.source) for page in cited if page}
        passages = list(dict.fromkeys(quote.text for quote in claim.quotes))
        return Statement(claim=claim.number, sentence=claim.sentence, passages=passages, sources=list(sources.values()))

    def compared(self) -> Compared:
        """Return the run as the comparison names it."""
        answered = self.report.answered if self.report else None
        return Compared(run_id=self.run_id, started=self.started, claims=len(self.claims), answered=answered)


@dataclass(frozen=True)
class Ground:
    """A sentence of a page that bears a claim, and the other run's sentence that it became or was."""

    page: Page
    line: Line
    stands: bool  # on the other run's page too
    read: bool  # the other run read the part of the page where it stands
    other: Line | None = None
    values: tuple[Difference, ...] = ()  # that are the claim's own

    @property
    def key(self) -> tuple[str, str]:
        """The address and the sentence."""
        return (self.page.source.url, self.line.key)


Borne = tuple[Claim, list[Ground]]
"""A claim with the sentences that bear it."""


def statement(sentence: str, lines: Iterable[tuple[Page, Line]], number: int) -> Statement:
    """Return a sentence as one side of a change, with the lines that say it; `number` of its claim, or 0."""
    borne = list(lines)
    passages = list(dict.fromkeys(line.text for _, line in borne))
    sources = {page.source.url: place(page.source) for page, _ in borne}
    return Statement(claim=number, sentence=sentence, passages=passages, sources=list(sources.values()))


def place(source: Source) -> Place:
    """Return a source as a reader finds it."""
    return Place(source_id=source.source_id, url=source.url, title=source.title)

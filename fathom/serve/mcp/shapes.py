"""What the tools return: small, since all of it is read by a model whose window is small."""

from __future__ import annotations

from pydantic import Field

from fathom.models import Model, RunState, Verdict


class Started(Model):
    """A run that was started."""

    run_id: str = Field(description="Give it to the other tools.")
    state: RunState
    next: str = Field(description="What to do next.")


class Reference(Model):
    """A source of a report; `number` is the one in square brackets in its text."""

    number: int
    title: str
    url: str


class Answer(Model):
    """The answer of a report. The whole report is read with read_report, a section at a time."""

    title: str
    answer: str = Field(description="Markdown; [1] cites the source of that number.")
    sources: list[Reference] = Field(description="Those that the answer cites.")
    sections: list[str] = Field(description="Headings of the report, in the order of their numbers, from 1.")
    claims: dict[str, int] = Field(description="How many claims of the report have which verdict.")


class Status(Model):
    """Where a run stands."""

    run_id: str
    question: str
    state: RunState
    ended: bool
    happened: list[str] = Field([], description="What happened, the latest last.")
    asks: str = Field("", description="What the run asks a person, if it waits for one.")
    answer: Answer | None = Field(None, description="Once there is a report.")
    why_no_report: str = Field(
        "", description="Of a run that ended without a report: what was searched, or what failed."
    )
    next: str = Field("", description="What to do next.")


class FoundRun(Model):
    """A run in a list."""

    run_id: str
    question: str
    state: RunState
    created: str = Field(description="ISO 8601, UTC.")


class FoundRuns(Model):
    """Runs, the newest first."""

    runs: list[FoundRun]


class CheckedQuote(Model):
    """Words of a source that support a claim, read back from the stored bytes just now."""

    quote: str
    source: str = Field(description="The title of the source.")
    url: str
    file: str = Field(description="The stored output that holds it, and the bytes in it.")
    intact: bool = Field(description="Whether the stored bytes still say this.")


class CheckedClaim(Model):
    """A claim and what the stored sources of its run say of it."""

    run_id: str
    claim: int = Field(description="Its number in the report; 0 if no sentence of the report says it.")
    sentence: str
    verdict: Verdict = Field(description="`not_checked` and `not_stated` do not mean that it is false.")
    complaints: list[str] = Field(description="Numbers, dates and names that no source has, and the like.")
    quotes: list[CheckedQuote] = Field(description="Of a claim that is not supported: what comes nearest.")


class Section(Model):
    """A section of a report, or a part of a long one."""

    run_id: str
    title: str
    sections: list[str] = Field(description="Headings of the report, in the order of their numbers, from 1.")
    section: int
    part: int
    parts: int
    markdown: str = Field(description="[1] cites the source of that number.")
    sources: list[Reference] = Field(description="Those that this text cites.")


class Cancelled(Model):
    """A run that was cancelled, or had ended before."""

    run_id: str
    state: RunState

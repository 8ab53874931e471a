"""Reports in portions that a model can read, claims checked, and the small shapes of both."""

from __future__ import annotations

import re

from pydantic import Field

from fathom.client.shapes import Run
from fathom.errors import InvalidInput, NoReport
from fathom.models import Answered, CitedAnswer, CitedSource, Model, Report, RunState, Verdict
from fathom.report.chapters import chapters
from fathom.report.markdown import cited_answer, numbered
from fathom.report.unanswered import render_unanswered
from fathom.service.reports import check_sentence
from fathom.service.runs import RunHandle
from fathom.text.citations import number_citations

PART_CHARS = 12_000
"""Of a section at once: some 3,000 tokens."""
_NUMBER = re.compile(r"\[(\d+)\]")


def answer_of(report: Report) -> ReportAnswer:
    """Return the answer of a report and what else it has."""
    if not (found := cited_answer(report)):
        raise NoReport("The report is empty.")
    verdicts = [claim.verdict.value for claim in report.claims]
    return ReportAnswer(
        **dict(found),
        title=report.title,
        sections=[part.heading for part in chapters(report)],
        claims={verdict: verdicts.count(verdict) for verdict in dict.fromkeys(verdicts)},
    )


def section_of(run_id: str, report: Report, section: int, part: int) -> Section:
    """Return a part of a section of a report.

    Raises:
        InvalidInput: there is none of that number.
    """
    if not (found := chapters(report)):
        raise NoReport("The report is empty.")
    bodies, _ = number_citations(chapter.markdown for chapter in found)
    if not 1 <= section <= len(bodies):
        raise InvalidInput(f"Section {section} does not exist.", next_step=f"sections are numbered 1 to {len(bodies)}")
    parts = _parts(bodies[section - 1])
    if not 1 <= part <= len(parts):
        raise InvalidInput(f"The section has no part {part}.", next_step=f"parts are numbered 1 to {len(parts)}")
    return Section(
        run_id=run_id,
        title=report.title,
        sections=[chapter.heading for chapter in found],
        section=section,
        part=part,
        parts=len(parts),
        markdown=parts[part - 1],
        sources=_sources_of(report, parts[part - 1]),
    )


def why_no_report(run: Run) -> str:
    """Return why a run that has ended has no report."""
    if run.result and run.result.unanswered:
        return render_unanswered(run.question, run.result.unanswered)
    if run.state is RunState.cancelled:
        return "The run was cancelled."
    return (run.result.reason if run.result else "") or "The run failed."


async def check_claim(run: RunHandle, number: int, text: str) -> CheckedClaim:
    """Check a claim of a report, or any sentence, against all that the run has read.

    Raises:
        NoReport: it has no report, or none yet.
        InvalidInput: there is no claim of that number.
    """
    if bool(number) == bool(text.strip()):
        raise InvalidInput("Give the number of a claim, or a text.", next_step="n=1, or text='...'")
    claim, sources, intact = await check_sentence(run, number, text)
    return CheckedClaim(
        run_id=run.run_id,
        claim=claim.number,
        sentence=claim.sentence,
        verdict=claim.verdict,
        complaints=claim.complaints,
        quotes=[
            CheckedQuote(
                quote=quote.text,
                source=sources[quote.source_id].title if quote.source_id in sources else quote.source_id,
                url=sources[quote.source_id].url if quote.source_id in sources else "",
                file=f"{quote.artifact_file}, bytes {quote.start} to {quote.end}",
                intact=unchanged,
            )
            for quote, unchanged in zip(claim.quotes, intact, strict=True)
        ],
    )


def _parts(text: str) -> list[str]:
    """Return a text in parts that end where a paragraph does, if one does."""
    parts = []
    while len(text) > PART_CHARS:
        end = text.rfind("\n\n", 1, PART_CHARS)
        end = end if end > 0 else PART_CHARS
        parts.append(text[:end])
        text = text[end:].lstrip("\n")
    return [*parts, text]


def _sources_of(report: Report, text: str) -> list[CitedSource]:
    cited = set(map(int, _NUMBER.findall(text)))
    return [numbered(number, source) for number, source in enumerate(report.sources, 1) if number in cited]


class Started(Model):
    """A run that was started."""

    run_id: str = Field(description="Give it to the other tools.")
    state: RunState
    notices: list[str] = Field([], description="What to know of the request.")
    next: str = Field(description="What to do next.")


class ReportAnswer(CitedAnswer):
    """The answer of a report. The whole report is read with read_report, a section at a time."""

    title: str
    sections: list[str] = Field(description="Headings of the report, in the order of their numbers, from 1.")
    claims: dict[str, int] = Field(description="How many claims of the report have which verdict.")


class RunStatus(Model):
    """Where a run stands."""

    run_id: str
    question: str
    state: RunState
    ended: bool
    happened: list[str] = Field([], description="What happened, the latest last.")
    notices: list[str] = Field([], description="What to know of the request; only in the answer to it.")
    asks: str = Field("", description="What the run asks a person, if it waits for one.")
    answer: ReportAnswer | None = Field(None, description="Once there is a report.")
    why_no_report: str = Field(
        "", description="Of a run that ended without a report: what was searched, or what failed."
    )
    next: str = Field("", description="What to do next.")


class FoundRun(Model):
    """A run in a list."""

    run_id: str
    question: str
    state: RunState
    answered: Answered | None = Field(
        None, description="Whether the sources answer the question; null without a report."
    )
    created: str = Field(description="ISO 8601, UTC.")


class FoundRuns(Model):
    """Runs, the newest first."""

    runs: list[FoundRun]


class FoundCorpus(Model):
    """A corpus in a list."""

    name: str = Field(description="Name it in `corpora` of research and research_start.")
    files: int
    changed: str


class FoundCorpora(Model):
    """Corpora, by name."""

    corpora: list[FoundCorpus]


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
    sources: list[CitedSource] = Field(description="The sources that this text cites.")


class Cancelled(Model):
    """A run that was cancelled, or had ended before."""

    run_id: str
    state: RunState

"""What the API answers about a run's report: its claims and sources, its files, and whether all of it holds."""

from __future__ import annotations

from pydantic import Field

from fathom.models import Claim, Model, Note, SourceQuality, Verdict
from fathom.models.evidence import Problem as Fault
from fathom.models.evidence import Referenced, SourceKind
from fathom.storage.names import slug
from fathom.telemetry.audit_events import Break, ChainedEvent


class ClaimList(Model):
    """The claims of a report, with the verdict on each and its quotes. `counts` is of all claims, by verdict."""

    run_id: str
    counts: dict[Verdict, int] = Field(
        examples=[{"supported": 39, "contradicted": 0, "not_stated": 1, "not_checked": 2}]
    )
    claims: list[Claim]


class SourceUse(Referenced):
    """A source that a run has read, and what became of it. `claims`: the numbers of the claims that cite it.

    `reference` is what a catalogue says of it, null where none was asked; `quality` is null where it was not scored.
    """

    source_id: str
    title: str
    url: str
    kind: SourceKind
    published: str = ""
    number: int | None = None  # in the report; None: it is not cited
    claims: list[int] = []
    calls: int  # tool calls that returned it
    texts: list[str] = []  # the files that hold what was read of it
    quality: SourceQuality | None = None


class SourceList(Model):
    """The sources of a run: first the cited ones in the order of their numbers, then the others."""

    run_id: str
    sources: list[SourceUse]


class ArtifactInfo(Model):
    """A file of a run. `what`: what is in it, in words."""

    name: str = Field(examples=["report.md"])
    bytes: int
    what: str = Field(examples=["the report in Markdown"])
    link: str


class ArtifactList(Model):
    """The files of a run, by name."""

    run_id: str
    artifacts: list[ArtifactInfo]


class NoteList(Model):
    """What a run noted from what it read."""

    run_id: str
    notes: list[Note]


class AuditTrail(Model):
    """The audit log of a run. `whole`: the chain of its hashes is unbroken, and ends where the result says."""

    run_id: str
    whole: bool
    broken: Break | None = None
    events: list[ChainedEvent]


class Checkup(Model):
    """The check of a run, repeated just now from its stored files.

    `confirmed` of `claims` claims have their quotes in the stored bytes and the same verdict as when the report was
    made; `ok` also says that no file was changed. `rechecked` is false where older rules made the verdicts: then only
    files and quotes are compared.
    """

    run_id: str
    ok: bool
    said: str = Field(examples=["checked now: 41 of 41"])
    checked: str  # ISO 8601, UTC
    claims: int
    confirmed: int
    files: int
    quotes: int
    rechecked: bool
    problems: list[Fault]


_KINDS = {
    "report.md": "the report in Markdown",
    "report.html": "the report as a page",
    "report.json": "the report as data",
    "run.json": "what the run was started with",
    "plan.json": "the plan and the status of its steps",
    "result.json": "the result: ending, sources and metrics",
    "notes.json": "the notes that were made from what was read",
    "provenance.json": "how the report was made, with the hash of every file",
    "audit.jsonl": "the audit log, one event a line",
    "changes.json": "what changed since the run before, as data",
    "changes.md": "what changed since the run before, in Markdown",
    "changes.html": "what changed since the run before, as a page",
}


def what_is(name: str) -> str:
    """Return what a file of a run contains, in words."""
    if name in _KINDS:
        return _KINDS[name]
    return "what a tool returned, whole" if "__step" in name else slug(name).replace("_", " ")

"""The requests and answers of the API of `fathom serve`. The server and the client share these classes."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, JsonValue

from fathom.errors import WrongValue
from fathom.models import (
    Account,
    Answered,
    Asked,
    Claim,
    CorpusFile,
    Draft,
    Model,
    Note,
    Plan,
    RunResult,
    RunState,
    SourceQuality,
    Stage,
    UnreadFile,
    Verdict,
)
from fathom.models.evidence import Discrepancy, Referenced, SourceKind
from fathom.storage.names import RESPONSES, slug
from fathom.telemetry.audit_events import Break, ChainedEvent

Text = Annotated[str, Field(min_length=1, max_length=10_000)]


class Body(Model):
    """Base of the bodies of requests. FastAPI warns of their names where they are built at their first use."""

    model_config = ConfigDict(defer_build=False)


class RunRequest(Body):
    """A question to research."""

    question: Text = Field(examples=["How does Python look up an attribute on an instance?"])
    settings: dict[str, JsonValue] = Field(
        {},
        description="Settings of the run by name, as listed in docs/settings.md.",
        examples=[{"profile": "quick", "budget": {"max_usd": 0.5}}],
    )
    template: str | None = Field(None, description="Name of a template.", examples=["technology-comparison"])
    corpora: list[str] = Field([], max_length=20, description="Uploaded corpora to read.", examples=[["handbook"]])
    shared: bool = Field(
        False, strict=True, description="Whether everyone with read access may see, answer and steer the run."
    )


class FollowUpRequest(Body):
    """A question that follows up on a finished run. The run's settings apply unless others are given."""

    question: Text = Field(examples=["And on a class?"])
    settings: dict[str, JsonValue] = Field({}, description="Settings that differ from the earlier run's.")


class AnswerRequest(Body):
    """A person's answer to a run: answers to its questions, an edited plan, a remark, or a rejection.

    An empty answer accepts the run's proposal as it is.
    """

    answers: list[str] = Field([], max_length=10, description="Answers to the run's questions, one per question.")
    plan: Plan | None = Field(None, description="The plan as you edited it.")
    remark: str = Field("", max_length=1_000, description="What to change, in words.")
    reject: bool = Field(False, strict=True, description="Stop the run instead of accepting what it shows.")


class RemarkRequest(Body):
    """A remark to a run in progress: what else to look at."""

    text: Annotated[str, Field(min_length=1, max_length=1_000)] = Field(examples=["Look at the 2025 figures too."])


class RatingRequest(Body):
    """A reader's rating of a report; it replaces their earlier one."""

    good: bool = Field(description="Whether the report was of use.", strict=True)
    note: str = Field("", max_length=1_000, description="Why.", examples=["The 2025 figures are missing."])


class RunChange(Body):
    """A change to a run; what is left out stays as it is."""

    shared: bool | None = Field(
        None, description="Whether every signed-in user may read the run, and every asker may answer and steer it."
    )
    title: str | None = Field(
        None, max_length=200, description="Name under which the run is listed; empty for its question."
    )


class ShareLink(Model):
    """A link that shares a run with every signed-in user who has it; a public one shows its report to anyone.

    `page` is its path, returned only on creation.
    """

    id: str
    by: str
    public: bool = False
    created: str  # ISO 8601 in UTC
    page: str | None = None


class WaitingRemark(Model):
    """A remark that a run in progress has not taken up yet, so that it can be taken back. `at` is ISO 8601 in UTC."""

    id: str
    text: str
    author: str
    at: str


class RemarkList(Model):
    """The remarks of a run that wait, the oldest first; each can still be taken back."""

    remarks: list[WaitingRemark]


class ActivityEntry(Model):
    """An action that a user took on a run through a server, such as `cancelled`. `at` is ISO 8601 in UTC."""

    at: str
    by: str
    role: str
    action: str
    detail: str = ""


class Me(Model):
    """The caller, and what they may use. A limit that is null does not exist."""

    name: str
    role: Literal["reader", "asker", "admin"]
    requests_per_minute: int | None = None
    requests_left: int | None = None
    runs_per_day: int | None = None
    runs_left: int | None = None
    daily_usd: float | None = None
    usd_left: float | None = None


class Links(Model):
    """Links to more about a run: paths on this server, and its page in the Prefect UI."""

    run: str
    events: str
    page: str
    report: str | None = None
    prefect: str | None = None


class RunSummary(Model):
    """A line of the list of runs. Times are ISO 8601 in UTC; `owner` is empty if it is unknown who asked.

    `title` is the name that somebody gave it, if any. `answered` says whether the sources answer the question; it
    is null without a report.
    """

    id: str
    question: str
    title: str = ""
    state: RunState
    answered: Answered | None = None
    created: str
    ended: str | None = None
    owner: str = ""
    shared: bool = False
    parent: str | None = None
    watch: str | None = None
    cost_usd: float | None = None


class Run(RunSummary):
    """A run. Values that are not known yet, or no longer, are null."""

    settings: dict[str, Any] = {}  # as given, without secrets
    understood: str = ""  # of a follow-up: its question as a self-contained one, which is what is researched
    stage: Stage | None = None  # while it has not ended
    phase: str = ""  # its current activity, in words
    now: list[str] = []  # what is being read or written at this moment
    drafts: list[Draft] = []  # the drafts of the sections that are being written; not checked yet
    plan: Plan | None = None  # with the status of each step
    asked: Asked | None = None  # its question to a person
    complaint: str = ""  # why the last answer could not be used
    spent: Account | None = None
    caps: dict[str, float] = {}  # the budget: max_usd, max_tokens, max_calls, max_seconds
    result: RunResult | None = None
    notices: list[str] = []  # what to know of the request; only in the answer to it
    links: Links


class RunList(Model):
    """Runs, the newest first. `next`: the cursor of the next page; null on the last one."""

    runs: list[RunSummary]
    next: str | None = None


class LibraryHit(Model):
    """A sentence of an earlier run: of its question, its answer, a note or a source. Without a source, that is empty.

    `link` leads to the run: a path on the server; empty where no server answers. `earlier_runs` say the same.
    """

    kind: Literal["answer", "note", "question", "source"]
    sentence: str
    question: str
    run_id: str
    asked: str  # ISO 8601 in UTC
    folder: str = Field(exclude=True)  # of the run, in the store
    source_id: str = ""
    title: str = ""
    url: str = ""
    link: str = ""
    earlier_runs: int = 0


class LibraryHits(Model):
    """The sentences of earlier runs that are closest to a query, the best first."""

    query: str
    hits: list[LibraryHit]


class EventType(StrEnum):
    """The type of an event. `now` has no id: it is not stored, and not repeated when a client reconnects."""

    state_change = "state_change"
    step_started = "step_started"
    step_completed = "step_completed"
    tool_called = "tool_called"
    source_found = "source_found"
    note_created = "note_created"
    reflection = "reflection"
    section = "section"
    warning = "warning"
    error = "error"
    now = "now"


class RunEvent(Model):
    """Something that happened in a run. `id` counts from 1 in each run, without gaps; 0: it is not kept."""

    id: int
    type: EventType
    at: str  # ISO 8601 in UTC
    message: str  # one line for a person
    data: dict[str, JsonValue] = {}


class Problem(Model):
    """An error in the format of RFC 9457 (`application/problem+json`); docs/errors.md lists each `code`.

    `errors` names each setting or field whose value is invalid; a form can mark them.
    """

    type: str = "about:blank"
    title: str
    status: int
    detail: str = ""
    code: str | None = None
    next_step: str = ""
    errors: list[WrongValue] = []


Form = Literal["md", "html", "json", "docx", "pdf", "xlsx", "csv", "bib", "ris"]
MEDIA_TYPES: dict[Form, str] = {
    "html": "text/html",
    "md": "text/markdown",
    "json": "application/json",
    "docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    "pdf": "application/pdf",
    "xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    "csv": "text/csv",
    "bib": "application/x-bibtex",
    "ris": "application/x-research-info-systems",
}
"""The forms of a report, the preferred one first."""


class CorpusSummary(Model):
    """A corpus: files that somebody uploaded for runs to read. Times are ISO 8601 in UTC."""

    name: str
    files: int
    bytes: int
    owner: str = ""
    shared: bool = False
    temporary: bool = False  # made for one run, and removed when that has ended
    created: str
    changed: str
    unread: list[UnreadFile] = []  # files that were not stored, or cannot be read in full, each with the reason
    documents: int | None = None  # number of files that are read; null: not counted yet
    words: int | None = None  # in these


class Corpus(CorpusSummary):
    """A corpus with its files."""

    contents: list[CorpusFile]


class CorpusLimits(Model):
    """Limits on uploads."""

    file_bytes: int
    corpus_bytes: int
    corpus_files: int
    all_bytes: int
    endings: list[str]  # extensions of the files that are read; of others, text is read


class CorpusList(Model):
    """Corpora, by name. The limits are in bytes and files; `used` is what all corpora of the server take."""

    corpora: list[CorpusSummary]
    used: int
    limits: CorpusLimits


class CorpusChange(Body):
    """A change to a corpus."""

    shared: bool = Field(description="Whether everyone with read access may read the corpus.")


class ClaimList(Model):
    """The claims of a report, with the verdict on each and its quotes. `counts` is of all claims, by verdict."""

    run_id: str
    counts: dict[Verdict, int] = Field(
        examples=[{"supported": 39, "contradicted": 0, "not_stated": 1, "not_checked": 2}]
    )
    claims: list[Claim]


class SourceUse(Referenced):
    """A source that a run has read, and how it was used.

    `claims` holds the numbers of the claims that cite it. `reference` is its catalogue entry, null if no catalogue was
    asked; `quality` is null if it was not scored.
    """

    source_id: str
    title: str
    url: str
    kind: SourceKind
    published: str = ""
    number: int | None = None  # in the report; None: it is not cited
    claims: list[int] = []
    calls: int  # tool calls that returned it
    texts: list[str] = []  # the files that hold the text that was read from it
    quality: SourceQuality | None = None


class SourceList(Model):
    """The sources of a run: first the cited ones in the order of their numbers, then the others."""

    run_id: str
    sources: list[SourceUse]


class ArtifactInfo(Model):
    """A file of a run. `what` describes its contents."""

    name: str = Field(examples=["report.md"])
    bytes: int
    what: str = Field(examples=["the report in Markdown"])
    link: str


class ArtifactList(Model):
    """The files of a run, by name."""

    run_id: str
    artifacts: list[ArtifactInfo]


class NoteList(Model):
    """The notes of a run."""

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
    problems: list[Discrepancy]


_KINDS = {
    "report.md": "the report in Markdown",
    "report.html": "the report as a page",
    "report.json": "the report as data",
    "run.json": "what the run was started with",
    "plan.json": "the plan and the status of its steps",
    "result.json": "the result: ending, sources and metrics",
    "notes.json": "the notes that were made from what was read",
    "provenance.json": "how the report was made, with the hash of every file",
    "exchanges.jsonl": "what models were sent, and what they answered",
    "audit.jsonl": "the audit log, one event a line",
    "changes.json": "what changed since the run before, as data",
    "changes.md": "what changed since the run before, in Markdown",
    "changes.html": "what changed since the run before, as a page",
}


def what_is(name: str) -> str:
    """Return a description of the contents of a run's file."""
    if name in _KINDS:
        return _KINDS[name]
    if name.endswith(RESPONSES):
        return "the responses that a tool received, as they arrived"
    return "what a tool returned, whole, or why it failed" if "__step" in name else slug(name).replace("_", " ")

"""The report, the ending of a run, unanswered questions, and a batch of runs."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from operator import not_
from typing import Literal

from pydantic import Field, JsonValue

from fathom.models.evidence import Claim, Confidence, Source, SourceQuality, ToolFailure, UnreadFile
from fathom.models.plan import Clarification, Contradiction, Coverage, Model, Remark, StepStatus


class AbsentWord(Model):
    """A word of the question that no source has, with words of the sources that are spelt nearly alike."""

    word: str
    nearby: list[str] = []


class Holdings(Model):
    """The holdings of a search tool. `documents`, its languages and `absent` are unknown for the web."""

    tool: str
    where: list[str]  # folders and files, or a name such as "the web"
    documents: int | None = None
    language: str = ""  # the tag, such as `en`, of what most documents are in
    other_languages: list[str] = []  # the tags of what others are in
    absent: list[AbsentWord] = []  # of the words it was asked about


class Catalogue(Model):
    """The holdings of all search tools of a run."""

    holdings: list[Holdings]


class Searched(Model):
    """The searches of a tool, and their success."""

    tool: str
    where: list[str]
    documents: int | None
    calls: int
    failed: int
    sources: int  # different ones that its calls returned


class NearPassage(Model):
    """A passage that comes close to the question, cut to some lines."""

    text: str
    title: str
    url: str


class Unanswered(Model):
    """Why a question has no answer, as far as this is known. The languages are empty unless they differ."""

    searched: list[Searched]
    closest: list[NearPassage]
    absent: list[AbsentWord]
    unread: list[UnreadFile] = []  # files of the user that may hold the answer
    asked_in: str = ""  # a language tag
    written_in: str = ""
    next_steps: list[str]
    language: str = Field("", exclude_if=not_)  # the tag of its words, as in a report; empty: English


class ParentRun(Model):
    """The run that a run follows up on: `folder` is its path in the store."""

    run_id: str
    folder: str
    query: str
    started: str  # ISO 8601, UTC
    refused: bool = Field(
        False, exclude_if=not_
    )  # it ended without a report: nothing that it read answered its question


class ReportSection(Model):
    """A finished section; `markdown` cites sources by id, `[S1a2b3c]`."""

    heading: str
    markdown: str
    quoted: bool = False  # whether it consists of quotations: blocks of plain text, and citations


class Draft(Model):
    """A section that is being written: its whole sentences, with ids as in `ReportSection`; nothing is checked yet."""

    position: int  # in the report, from 0
    heading: str
    text: str  # Markdown


class StepCoverage(Model):
    """The outcome of one step: a row of the coverage table."""

    step_id: str | int
    title: str
    status: StepStatus
    calls: int
    useful_notes: int
    sources: int
    failures: list[ToolFailure] = []
    missing: list[str] = Field([], exclude_if=not_)  # what the critic says that it lacks
    confidence: Confidence | None = Field(None, exclude_if=not_)  # of its notes; None if it has none


class Answered(StrEnum):
    """Whether the sources answer the question."""

    yes = "yes"
    partly = "partly"
    maybe = "maybe"  # without a model: quotations that concern the question, and may answer it
    no = "no"

    @property
    def doubt(self) -> str:
        """What a reader is told beside the state of a run; empty if the question is answered."""
        return {
            Answered.partly: "partly answered",
            Answered.maybe: "perhaps answered",
            Answered.no: "not answered",
        }.get(self, "")


Sure = Literal["high", "medium", "low", "not rated"]
"""How sure an answer is; quotations are not rated."""


class Making(Model):
    """The time, model and cost of a report; `cost_usd` is None when a price is not known."""

    as_of: str = ""  # ISO 8601 date
    model: str = ""  # the model that wrote the report; empty: none
    llm_calls: int = 0
    tool_calls: int = 0
    cost_usd: float | None = 0.0
    seconds: float = 0.0  # of work until the claims were checked
    template: str = Field("", exclude_if=not_)  # its title
    scope: str = Field("", exclude_if=not_)  # its name and what it means
    searched: str = Field("", exclude_if=not_)  # for want of documents and a web search; empty if there were any


class LinkCount(Model):
    """The number of cited web pages whose addresses lead to a page, no longer do, or could not be checked."""

    working: int
    gone: int
    unknown: int

    def said(self, words: Callable[..., str]) -> str:
        """Return the counts as a sentence, with the share of working links of all that could be checked."""
        checked = self.working + self.gone
        if not checked:
            return words("No link of a cited page could be checked.")
        share = f"{self.working / checked:.0%}"
        values = {"working": self.working, "checked": checked, "share": share}
        work = words("{working} of {checked} links of cited pages work ({share})", **values)
        rest = words("{number} could not be checked", number=self.unknown) if self.unknown else ""
        return "; ".join(filter(None, [work, rest])) + "."


class Report(Model):
    """The report as data. The first section is the answer, the rest what supports it.

    Rendering numbers the sources in order of first use.
    """

    title: str
    query: str
    language: str = Field("", exclude_if=not_)  # the tag of its fixed words; empty: English
    extractive: bool  # every sentence is a quotation; no model wrote any
    sections: list[ReportSection]
    sources: list[Source]  # the cited ones, in order of first use
    open_questions: list[str] = []
    contradictions: list[Contradiction] = []
    coverage: list[StepCoverage] = []
    links: LinkCount | None = Field(None, exclude_if=not_)  # None if they were not checked
    covered: Coverage | None = Field(None, exclude_if=not_)  # by the evidence, as a model judged it
    unread: list[UnreadFile] = []
    claims: list[Claim] = []  # the sentences of the sections, checked
    qualities: list[SourceQuality] = []
    warnings: list[str] = []  # warnings to a reader of the report
    limitations: list[str] = []  # what the research could not do, and what was not checked
    next_steps: list[str] = []  # queries that could fill the gaps
    answered: Answered = Answered.yes
    unanswered_part: str = Field("", exclude_if=not_)  # the part of the question that the sources do not answer
    # The critic's score of all evidence, 1 to 10, and the score from which it suffices; 0 if no model judged it.
    sufficiency: int = Field(0, exclude_if=not_)
    wanted_sufficiency: int = Field(0, exclude_if=not_)
    sufficiency_reason: str = Field("", exclude_if=not_)  # the critic's reason for the score
    stop: str = Field("", exclude_if=not_)  # why the research ended, as a clause; not in reports stored before 0.2
    made: Making | None = None  # not in reports stored before 0.2
    remarks: list[Remark] = Field([], exclude_if=not_)  # people's remarks during the research
    parent: ParentRun | None = None  # of a follow-up
    # For a short answer: probability that it is right, 0 to 1.
    confidence: float | None = Field(None, exclude_if=lambda value: value is None)


class ReportRating(Model):
    """A reader's rating of a report. `at` is ISO 8601 in UTC."""

    good: bool
    note: str
    by: str
    at: str


class Ending(StrEnum):
    """How a run ended; the exit code of the shell follows from it."""

    complete = "complete"
    degraded = "degraded"
    insufficient_evidence = "insufficient_evidence"
    failed = "failed"

    @property
    def exit_code(self) -> int:
        """Exit code of the shell: 0 for a report, 3 for no evidence, 1 for a failure."""
        return {"complete": 0, "degraded": 0, "insufficient_evidence": 3, "failed": 1}[self.value]


class RunState(StrEnum):
    """The state of a run; the same words in the terminal, in the API and on the page."""

    queued = "queued"  # it waits for a worker
    running = "running"
    waiting = "waiting"  # for a person's answer
    interrupted = "interrupted"  # its process is gone
    complete = "complete"
    degraded = "degraded"  # a report, with something missing
    insufficient_evidence = "insufficient_evidence"  # no report
    failed = "failed"
    cancelled = "cancelled"
    unreadable = "unreadable"  # its files are damaged

    @property
    def ended(self) -> bool:
        """Whether nothing more will happen to the run by itself."""
        return self not in (RunState.queued, RunState.running, RunState.waiting, RunState.interrupted)


class Stage(StrEnum):
    """The stage of a run that has not ended. From `reflecting`, it goes back to `researching` or on."""

    planning = "planning"
    researching = "researching"
    reflecting = "reflecting"
    synthesizing = "synthesizing"  # the report is written and checked


class Phase(Model):
    """The usage of a role, a step or a service; `cost_usd` is None when a price is not known."""

    name: str
    calls: int
    seconds: float
    cost_usd: float | None
    tokens: int = 0  # sent and received


class CorpusFile(Model):
    """A file of a corpus. `name` is the name under which it was uploaded."""

    name: str
    sha256: str
    bytes: int


@dataclass(frozen=True)
class Range:
    """An amount in the usual case, and at most."""

    usual: float
    most: float


@dataclass(frozen=True)
class PhaseCost:
    """The expected usage of a phase; `usd` is null if a price is not known. `model` is empty for the whole run.

    The maximum counts every call twice, for a re-ask, and no repetition after a fault.
    """

    phase: str
    model: str
    tool_calls: Range
    model_calls: Range
    tokens: Range
    usd: Range | None


class Account(Model):
    """The amounts that the budget counts, failed attempts included; attempts of unknown cost count at their maximum."""

    usd: float
    tokens: int
    calls: int
    seconds: float  # of work, over all attempts of the run


class Metrics(Model):
    """Counts of a whole run. Raw, context and narrowed tokens are estimates of `fathom.text.tokens`."""

    llm_calls: int
    tool_calls: int
    rounds: int = Field(0, exclude_if=not_)  # of research; not in results of earlier versions
    raw_tokens: int
    context_tokens: int
    narrowed_tokens: int  # raw tokens that no model was shown
    context_reduction: float  # 1 - context_tokens / raw_tokens; 0 when nothing was read
    prompt_tokens: int
    cached_tokens: int = Field(0, exclude_if=not_)  # of them, read from a provider's cache
    completion_tokens: int
    cost_usd: float | None
    seconds: float
    phases: list[Phase] = []  # by role
    steps: list[Phase] = []  # by step
    charges: list[Phase] = []  # of searches and pages, by service, such as `search:brave`
    account: Account | None = None


LAYOUT = 5
"""The layout of stored results. The number increases when stored calls can no longer be found or read, because their
keys are computed differently or a class that they name has moved. A run of another layout can be verified, but not
replayed or resumed."""


class RunManifest(Model):
    """`run.json`: the inputs with which a run was started. It holds no secret."""

    layout: int = 1  # of the run's stored results; not written before layout 2
    run_id: str
    run_key: str
    query: str
    plan_title: str
    started: str  # ISO 8601, UTC
    settings: dict[str, object]
    models: dict[str, str]
    prompts: dict[str, str]  # role -> SHA-256 of its prompt
    versions: dict[str, str]
    watch: str = ""  # the watch that the run belongs to
    clarifications: list[Clarification] = []  # people's answers, or assumptions, from before the planning
    parent: ParentRun | None = None  # of a follow-up
    understood: str = ""  # of a follow-up: its query as a self-contained question
    mcp: dict[str, str] = {}  # MCP server -> SHA-256 of the names, descriptions and schemas of the tools it offered
    corpora: dict[str, str] = {}  # uploaded corpus -> digest of the edition that is read
    template: dict[str, object] | None = None  # with its name, its SHA-256 and its content


class AuditHead(Model):
    """The end of a run's audit log: its number of events, and the SHA-256 of the last one in hex."""

    events: int
    hash: str


class CitedSource(Model):
    """A source by its number in a text, which cites it as [1]."""

    number: int
    source_id: str
    title: str
    url: str


class CitedAnswer(Model):
    """The answer of a report as the terminal prints it."""

    heading: str = Field(examples=["Answer", "Not answered by these sources"])
    markdown: str = Field(description="[1] cites the source of that number.")
    sources: list[CitedSource] = Field(description="The sources that the answer cites, in the order of their numbers.")
    sure: Sure = Field(description='How sure the answer is; "not rated" if it consists of quotations.')
    why: list[str] = Field(description="The reasons as clauses in plain text, the most important first.")


class RunResult(Model):
    """The result of a run, which `--json` prints."""

    run_id: str
    status: Ending
    plan_title: str
    artifacts: str  # address of the run's folder
    report: str | None  # path of report.md
    answer: str | None = None  # of a run in answer mode, with source ids: "[S1a2b3c]"
    confidence: float | None = None  # of the answer: probability that it is right, 0 to 1
    cited_answer: CitedAnswer | None = None  # of every report; None in results of earlier versions
    sources: list[Source]
    metrics: Metrics
    reason: str = ""  # why the run is not `complete`
    stop: str = ""  # why the research ended, as a clause: "the last round is done"
    searched: str = Field("", exclude_if=not_)  # for want of documents and a web search; empty if there were any
    scope: str = Field("", exclude_if=not_)  # of the run, and what it means; empty if it has none
    answered: Answered | None = None  # whether the sources answer the question; None without a report
    unanswered: Unanswered | None = None  # instead of a report
    warnings: list[str] = []  # about the request and the user's files; the report has its own about the evidence
    changes: str = ""  # of a watch: what changed since the run before, in one line
    audit_head: AuditHead | None = None


class BatchQuestion(Model):
    """A question with the settings that differ from its batch's, and the user's own run key, if there is one.

    `labels` are only kept beside its result, by the names of their columns: `id`, `label.owner`.
    """

    question: str
    settings: dict[str, JsonValue] = {}
    run_key: str = ""
    labels: dict[str, JsonValue] = {}

    @property
    def digest(self) -> str:
        """Ten hex digits that identify the question and its settings, wherever in the file it stands."""
        text = json.dumps([self.question, self.settings, self.run_key], sort_keys=True, ensure_ascii=False)
        return hashlib.sha256(text.encode()).hexdigest()[:10]


class RowStatus(StrEnum):
    """The progress of a question, or its ending."""

    waiting = "waiting"
    running = "running"
    complete = Ending.complete.value
    degraded = Ending.degraded.value
    insufficient_evidence = Ending.insufficient_evidence.value
    failed = Ending.failed.value
    cancelled = "cancelled"
    not_asked = "not_asked"  # the budget of the batch was spent

    @property
    def finished(self) -> bool:
        """Whether the question has been researched to its end, so that it is not asked again."""
        return self in (RowStatus.complete, RowStatus.degraded, RowStatus.insufficient_evidence)

    @property
    def ended(self) -> bool:
        """Whether this batch is done with it."""
        return self not in (RowStatus.waiting, RowStatus.running)


class BatchRow(Model):
    """A line of `results.jsonl`. `cost_usd` is None if a price is not known."""

    number: int  # in the file, from 1
    labels: dict[str, JsonValue] = Field({}, exclude_if=not_)
    question: str
    status: RowStatus = RowStatus.waiting
    reason: str = ""
    run_id: str = ""
    report: str = ""  # address of report.md
    # Of a run in answer mode with source ids, of others with numbers: [1] is the first of the sources beside it.
    answer: str | None = None
    answer_sources: list[str] = Field([], exclude_if=not_)
    confidence: float | None = None  # of the answer: probability that it is right, 0 to 1
    answered: Answered | None = None
    sources: int = 0
    tool_calls: int = 0
    llm_calls: int = 0
    tokens: int = 0
    cost_usd: float | None = 0.0
    seconds: float = 0.0


class BatchResult(Model):
    """The result of a batch, which `fathom batch --json` prints. `ended` counts the questions by ending."""

    run_id: str
    artifacts: str  # address of the batch's folder
    results: str  # of results.jsonl
    page: str  # of index.html
    questions: int
    ended: dict[RowStatus, int]
    cost_usd: float | None
    tokens: int

    @property
    def failed(self) -> int:
        """The number of questions that were not researched to their end."""
        return sum(count for status, count in self.ended.items() if not status.finished)

"""The report, and how a run ends."""

from __future__ import annotations

from enum import StrEnum

from fathom.models.base import Model
from fathom.models.evidence import Source, ToolFailure
from fathom.models.plan import Contradiction, StepStatus

__all__ = ["Ending", "Metrics", "Report", "ReportSection", "RunManifest", "RunResult", "StepCoverage"]


class ReportSection(Model):
    """A finished section; `markdown` cites sources by id, `[S1a2b3c]`."""

    heading: str
    markdown: str


class StepCoverage(Model):
    """What became of one step: a row of the coverage table."""

    step_id: str | int
    title: str
    status: StepStatus
    calls: int
    useful_notes: int
    sources: int
    failures: list[ToolFailure] = []


class Report(Model):
    """The report as data; rendering numbers the sources in order of first use."""

    title: str
    query: str
    extractive: bool  # every sentence is a quotation, none was written by a model
    sections: list[ReportSection]
    sources: list[Source]  # the cited ones, in order of first use
    open_questions: list[str] = []
    contradictions: list[Contradiction] = []
    coverage: list[StepCoverage] = []


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


class Metrics(Model):
    """Counts of a whole run. Tokens of raw and context are estimates of `fathom.text.tokens`."""

    llm_calls: int
    tool_calls: int
    raw_tokens: int
    context_tokens: int
    narrowed_tokens: int  # of the raw ones, those that no model was shown
    context_reduction: float  # 1 - context_tokens / raw_tokens; 0 when nothing was read
    prompt_tokens: int
    completion_tokens: int
    cost_usd: float | None
    seconds: float


class RunManifest(Model):
    """`run.json`: what it takes to know how a run came about. Holds no secret."""

    run_id: str
    run_key: str
    query: str
    plan_title: str
    started: str  # ISO 8601, UTC
    settings: dict[str, object]
    models: dict[str, str]
    prompts: dict[str, str]  # role -> SHA-256 of its prompt
    versions: dict[str, str]


class RunResult(Model):
    """What a run returns: the object that `--json` prints."""

    run_id: str
    status: Ending
    plan_title: str
    artifacts: str  # folder of the run
    report: str | None  # path of report.md
    answer: str | None = None  # of a run in answer mode, with source ids: "[S1a2b3c]"
    sources: list[Source]
    metrics: Metrics
    reason: str = ""  # why the run is not `complete`

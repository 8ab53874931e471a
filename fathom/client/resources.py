"""The resources of the API beside runs and corpora: watches, batches, templates, costs, and the server itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import ConfigDict, Field, JsonValue

from fathom.client.shapes import Body, RunSummary, Text
from fathom.models import Model
from fathom.models.run import BatchRow, PhaseCost, RowStatus

Name = Annotated[str, Field(min_length=1, max_length=100)]


class WatchRequest(Body):
    """A question to ask again on a schedule: give either `every` or `cron`."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"question": "What does the Pro plan cost?", "every": "1d"}]}
    )

    question: Text = Field(examples=["What does the Pro plan cost?"])
    every: str | None = Field(None, max_length=20, description="How often to ask: 30m, 6h, 1d, 2w.", examples=["1d"])
    cron: str | None = Field(
        None, max_length=100, description="Minute, hour, day, month, weekday.", examples=["0 6 * * 1-5"]
    )
    timezone: str = Field("UTC", max_length=60, description="Time zone of `cron`.", examples=["Europe/Berlin"])
    name: str = Field(
        "", max_length=100, description="Name of the watch (default: derived from the question).", examples=["pro-plan"]
    )
    settings: dict[str, JsonValue] = Field({}, description="Settings of each run, as docs/settings.md lists them.")
    template: str | None = Field(None, description="Name of a template.")
    report: str = Field("", max_length=100, description="Id of the run with whose report the first run is compared.")


class WatchChange(Body):
    """A change to a watch. A `paused` watch starts no more runs until it is `active` again."""

    state: Literal["active", "paused"]


class Watch(Model):
    """A watched question. `next_run` is an ISO 8601 time in UTC, null while it is paused or not planned yet."""

    name: str
    question: str
    schedule: str = Field(examples=["every 1 day"])
    state: Literal["active", "paused"]
    next_run: str | None = None
    owner: str = ""
    report: str = ""  # the run whose report it was made from
    settings: dict[str, JsonValue] = {}
    notices: list[str] = []  # what to know of the request; only in the answer to it


class WatchList(Model):
    """Watched questions, by name."""

    watches: list[Watch]


class WatchRun(RunSummary):
    """A run of a watch. `changes` is one line on the changes since the previous run; empty if not compared."""

    changes: str = ""


class WatchHistory(Model):
    """The runs of a watch, the newest first."""

    name: str
    runs: list[WatchRun]


class Question(Model):
    """A question of a batch, with the settings that differ from the batch's."""

    question: Text
    settings: dict[str, JsonValue] = {}


class BatchCaps(Model):
    """Caps over all questions of a batch together."""

    max_usd: Annotated[float, Field(gt=0, strict=True)] | None = None
    max_tokens: Annotated[int, Field(gt=0, le=10**12, strict=True)] | None = None
    max_calls: Annotated[int, Field(gt=0, le=10**9, strict=True)] | None = None


class BatchRequest(Model):
    """Questions to research, each in a run of its own."""

    questions: list[Text | Question] = Field(
        min_length=1, max_length=10_000, examples=[["What is a descriptor?", "What is a metaclass?"]]
    )
    settings: dict[str, JsonValue] = Field({}, description="Settings of every question.")
    template: str | None = Field(None, description="Name of a template.")
    at_once: int = Field(
        8, ge=1, le=500, strict=True, description="Maximum number of questions researched at the same time."
    )
    budget: BatchCaps = BatchCaps()
    name: str = Field("batch", min_length=1, max_length=40, description="Prefix of the batch's id.")


class BatchSummary(Model):
    """A line of the list of batches. `id` is also the key under which its results are stored."""

    id: str
    run_id: str  # of its flow run; empty until it has one
    state: Literal["queued", "running", "ended", "interrupted", "cancelled", "failed"]
    created: str
    owner: str = ""
    questions: int
    ended: dict[RowStatus, int] = {}  # questions, by how far they are


class Batch(BatchSummary):
    """A batch with a row for each question; `report` of a row is a path of this server."""

    rows: list[BatchRow]
    cost_usd: float | None = None  # null where a price is not known
    notices: list[str] = []  # what to know of the request; only in the answer to it


class BatchList(Model):
    """Batches, the newest first."""

    batches: list[BatchSummary]


class TemplateSummary(Model):
    """A line of the list of templates."""

    name: str
    title: str
    description: str


class TemplateList(Model):
    """The templates that Fathom has, by name."""

    templates: list[TemplateSummary]


class Estimate(Model):
    """The expected usage of a run, by phase; the last entry is the whole run."""

    phases: list[PhaseCost]


class CostLine(Model):
    """The cost of a group of runs. `unpriced_runs` counts runs with a call whose price is not known."""

    name: str
    runs: int
    unpriced_runs: int
    calls: int
    sent: int
    cached: int  # of the tokens sent, read from the provider's cache
    received: int
    usd: float


class CostTable(Model):
    """The cost of the runs that began since a given time. `unsettled_usd` is the possible cost of open requests."""

    since: str
    by: Literal["model", "day", "deployment"]
    lines: list[CostLine]
    total: CostLine
    unsettled_usd: float
    rated_up: int = 0  # ratings of the reports by their readers
    rated_down: int = 0


@dataclass(frozen=True)
class Condition:
    """The result of one check. `off`: runs work without it; `broken`: a run would fail."""

    name: str
    state: Literal["ok", "off", "broken"]
    detail: str
    how: str = ""  # to set or repair it


class Status(Model):
    """The configuration of the server's runs. It holds no secret; only administrators see `conditions`."""

    version: str
    models: dict[str, str]  # by role
    tools: list[str]
    search: list[str]  # search vendors, in the order in which they are asked
    caps: dict[str, float]
    conditions: list[Condition] = []

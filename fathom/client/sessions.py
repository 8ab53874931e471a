"""Research sessions (`/research/sessions`), the form that runs had in the Research engine.

Their names are in camelCase there. A session becomes a run when it is executed.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import ConfigDict, Field, JsonValue
from pydantic.alias_generators import to_camel

from fathom.client.shapes import Body, Text
from fathom.models import Account


class _Camel(Body):
    model_config = ConfigDict(alias_generator=to_camel, validate_by_name=True, validate_by_alias=True, strict=True)


class RetryConfig(_Camel):
    """How a failed call is tried again. `baseDelay`: milliseconds before the first retry, doubled before each next."""

    max_retries: int | None = Field(None, ge=0, le=10)
    base_delay: int | None = Field(None, ge=0, le=60_000)


class ModelChoice(_Camel):
    """The model of a role. The largest values of `retryConfig` in a session hold for all of its calls."""

    provider: str = Field(min_length=1, max_length=60, examples=["openai"])
    model: str = Field(min_length=1, max_length=200, examples=["gpt-5-mini"])
    temperature: float | None = Field(None, ge=0, le=2)
    max_tokens: int | None = Field(None, ge=1, le=1_000_000)
    retry_config: RetryConfig = RetryConfig()


class Models(_Camel):
    """The models of a session, by role; a role without a model uses the server's."""

    planner: ModelChoice | None = None
    researcher: ModelChoice | None = None
    critic: ModelChoice | None = None
    synthesizer: ModelChoice | None = None


class Limits(_Camel):
    """How long a session researches. `maxSourcesPerStep` counts for each search of a step."""

    max_iterations: int = Field(3, ge=1, le=5)
    max_steps_per_iteration: int = Field(7, ge=1, le=10)
    max_sources_per_step: int | None = Field(None, ge=1, le=20)
    sufficiency_threshold: float = Field(7, ge=1, le=10)


class SessionBudget(_Camel):
    """What a session may use."""

    max_tokens: int | None = Field(None, ge=1, le=10**12)
    max_dollars: float | None = Field(None, gt=0, le=10**6)
    max_api_calls: int | None = Field(None, ge=1, le=10**9)
    max_duration_ms: int | None = Field(None, ge=1, le=10**10)


class ToolChoice(_Camel):
    """The tools of a session; without names, all that are configured.

    `preferences` are other settings, by their names in docs/settings.md.
    """

    enabled: list[str] = Field([], max_length=50, examples=[["web_search", "fetch"]])
    preferences: dict[str, JsonValue] = Field({}, examples=[{"search": ["brave"]}])


class Domain(_Camel):
    """The sources of a field of knowledge, as domains. `domain` names the template of that kind of research."""

    domain: str | None = Field(None, max_length=100, examples=["literature-review"])
    preferred_sources: list[str] = []
    blocked_sources: list[str] = []
    min_source_quality: float | None = Field(None, ge=0, le=1)


class Output(_Camel):
    """The form of a session's result. `maxLength` is in words."""

    format: Literal["markdown", "html", "json"] = "markdown"
    include_citations: bool = True
    include_provenance: bool = False
    max_length: int | None = Field(None, ge=100, le=20_000)


class SessionConfig(_Camel):
    """How a session researches."""

    models: Models = Models()
    limits: Limits = Limits()
    budget: SessionBudget = SessionBudget()
    tools: ToolChoice = ToolChoice()
    domain: Domain = Domain()
    output: Output = Output()


class CreateSessionRequest(_Camel):
    """A session to create."""

    config: SessionConfig


class ExecuteRequest(_Camel):
    """The question of a session."""

    query: Text = Field(examples=["How does Python look up an attribute on an instance?"])


SessionState = Literal[
    "created", "planning", "researching", "reflecting", "synthesizing", "completed", "failed", "cancelled"
]
"""In the order of the engine's state machine; `reflecting` may be followed by `researching` again."""


class SessionStep(_Camel):
    """A step of a session's plan."""

    id: str
    description: str
    search_queries: list[str]
    priority: str
    dependencies: list[str]
    status: Literal["pending", "in_progress", "completed", "failed"]


class SessionPlan(_Camel):
    """The plan of a session."""

    title: str
    steps: list[SessionStep]


class SessionMetrics(_Camel):
    """What a session has used."""

    tokens: int = 0
    dollars: float = 0.0
    api_calls: int = 0
    duration_ms: int = 0

    @classmethod
    def of(cls, account: Account) -> SessionMetrics:
        """Return an account as a session shows it."""
        return cls(
            tokens=account.tokens,
            dollars=account.usd,
            api_calls=account.calls,
            duration_ms=round(account.seconds * 1_000),
        )


class SessionSection(_Camel):
    """A section of the report; `content` is Markdown that cites sources by id, `citations` are ids of citations."""

    title: str
    content: str
    citations: list[str]


class SessionCitation(_Camel):
    """A claim of the report with a source that it cites. `verified`: what the source says supports the claim."""

    id: str
    source_id: str
    claim: str
    quote: str = ""
    location: str = ""  # the headings above the quote
    verified: bool = False


class ResultMetrics(_Camel):
    """What a session has read and used. `totalCost` is in dollars, null if a price is not known."""

    total_sources: int
    unique_domains: int
    tokens_used: int
    api_calls: int
    total_cost: float | None
    duration_ms: int
    iterations: int


class SessionResult(_Camel):
    """The result of a session. `status` says how its run ended.

    `report` has the form that the session's `output` names, and is null if there is none. `confidence` is a short
    answer's probability, or the share of a report's claims that their sources support; null for quotations.
    """

    status: str
    report: str | None = None
    sections: list[SessionSection] = []
    citations: list[SessionCitation] = []
    sources: list[dict[str, Any]]
    confidence: float | None = None
    limitations: list[str] = []
    suggested_follow_up: list[str] = []
    metrics: ResultMetrics | None = None
    provenance: dict[str, Any] | None = None


class Session(_Camel):
    """A research session. Its id is the session's own; `runId` is the run that it became."""

    id: str
    state: SessionState
    config: SessionConfig
    run_id: str | None = None
    plan: SessionPlan | None = None
    metrics: SessionMetrics | None = None
    result: SessionResult | None = None


class ExecutionStarted(_Camel):
    """The run that a session became."""

    session_id: str
    run_id: str
    stream: str


class ProgressEvent(_Camel):
    """Something that happened in a session. `state` in its data is the state of the session."""

    type: Literal[
        "state_change", "step_started", "step_completed", "source_found", "note_created", "reflection", "error"
    ]
    timestamp: str
    data: dict[str, Any]

"""Research sessions (`/research/sessions`), the form that runs had in the engine's first design.

Their names are in camelCase there. A session becomes a run when it is executed.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import ConfigDict, Field
from pydantic.alias_generators import to_camel

from fathom.client.shapes import Text
from fathom.models import Account, Model


class _Camel(Model):
    model_config = ConfigDict(alias_generator=to_camel, validate_by_name=True, validate_by_alias=True, strict=True)


class ModelChoice(_Camel):
    """The model of a role."""

    provider: str = Field(min_length=1, max_length=60, examples=["openai"])
    model: str = Field(min_length=1, max_length=200, examples=["gpt-5-mini"])
    temperature: float | None = Field(None, ge=0, le=2)
    max_tokens: int | None = Field(None, ge=1, le=1_000_000)


class Models(_Camel):
    """The models of a session, by role; a role without a model uses the server's."""

    planner: ModelChoice | None = None
    researcher: ModelChoice | None = None
    critic: ModelChoice | None = None
    synthesizer: ModelChoice | None = None


class Limits(_Camel):
    """How long a session researches."""

    max_iterations: int = Field(3, ge=1, le=5)
    max_steps_per_iteration: int = Field(7, ge=1, le=10)
    sufficiency_threshold: float = Field(7, ge=1, le=10)


class SessionBudget(_Camel):
    """What a session may use."""

    max_tokens: int | None = Field(None, ge=1, le=10**12)
    max_dollars: float | None = Field(None, gt=0, le=10**6)
    max_api_calls: int | None = Field(None, ge=1, le=10**9)
    max_duration_ms: int | None = Field(None, ge=1, le=10**10)


class SessionConfig(_Camel):
    """How a session researches."""

    models: Models = Models()
    limits: Limits = Limits()
    budget: SessionBudget = SessionBudget()


class CreateSessionRequest(_Camel):
    """A session to create."""

    config: SessionConfig


class ExecuteRequest(_Camel):
    """The question of a session."""

    query: Text = Field(examples=["How does Python look up an attribute on an instance?"])


SessionState = Literal[
    "created", "planning", "researching", "reflecting", "synthesizing", "completed", "failed", "cancelled"
]


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


class SessionResult(_Camel):
    """The result of a session. `status` says how its run ended; `report` is Markdown, null if there is none."""

    status: str
    report: str | None
    sources: list[dict[str, Any]]


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
    """Something that happened in a session."""

    type: Literal[
        "state_change", "step_started", "step_completed", "source_found", "note_created", "reflection", "error"
    ]
    timestamp: str
    data: dict[str, Any]

"""The plan, which is also the checklist, and the critic's view of the evidence."""

from __future__ import annotations

from enum import StrEnum
from typing import Literal

from pydantic import Field

from fathom.models.base import Model


class StepStatus(StrEnum):
    """The status of a step of the plan."""

    todo = "todo"
    in_progress = "in_progress"
    done = "done"
    blocked = "blocked"  # researched, but nothing useful was found


class Priority(StrEnum):
    """How much the answer depends on a step; low ones are skipped first when the budget runs short."""

    high = "high"
    medium = "medium"
    low = "low"


class PlanStep(Model):
    """One independently executable step of the plan."""

    step_id: str | int
    title: str
    description: str
    queries: list[str] = []
    tools: list[str] = []
    priority: Priority = Priority.medium
    depends_on: list[str | int] = []
    status: StepStatus = StepStatus.todo


class Clarification(Model):
    """What a person said to a question about the query, or what was assumed because nobody did."""

    question: str
    answer: str
    assumed: bool = False
    by: str = ""  # who said it; empty when it was assumed
    at: str = ""  # ISO 8601, UTC


class Plan(Model):
    """What will be researched; also the checklist that the critic updates."""

    plan_title: str
    steps: list[PlanStep]
    # Left out when empty: a run that asks nobody has the plan, and the keys of calls, that it always had.
    clarifications: list[Clarification] = Field([], exclude_if=lambda value: not value)


class Gap(Model):
    """Something that the question needs and the notes lack."""

    description: str = Field(description="What is missing.")
    severity: Literal["critical", "important", "minor"] = "important"
    suggested_query: str = Field("", description="A specific search query that could fill it.")


class Contradiction(Model):
    """Two statements about the same thing that cannot both be true."""

    claim_a: str = Field(description="One statement.")
    claim_b: str = Field(description="The other.")
    source_ids: list[str] = Field([], description="Ids of the sources of both, without brackets.")
    other_source_ids: list[str] = Field([], description="Those of these ids that say the other statement.")


class Reflection(Model):
    """The critic's view of the evidence after a round."""

    sufficiency_score: int = Field(ge=1, le=10)
    reasoning: str = ""
    statuses: dict[str, StepStatus] = {}
    gaps: list[Gap] = []
    contradictions: list[Contradiction] = []
    follow_up_steps: list[PlanStep] = []

"""The plan, which is its own checklist, and the critic's view of how far it got."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field

from fathom.models.base import Model


class StepStatus(StrEnum):
    """Where a step of the plan stands; the plan is its own checklist."""

    todo = "todo"
    in_progress = "in_progress"
    done = "done"
    blocked = "blocked"  # researched, and nothing useful was found


class Priority(StrEnum):
    """How much the answer depends on a step; low ones go first when the budget is short."""

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


class Plan(Model):
    """What will be researched; also the checklist the critic updates."""

    plan_title: str
    steps: list[PlanStep]


class Gap(Model):
    """Something the question needs and the notes lack."""

    description: str
    severity: Literal["critical", "important", "minor"] = "important"
    suggested_query: str = ""


class Contradiction(Model):
    """Two statements about the same thing that cannot both hold."""

    claim_a: str
    claim_b: str
    source_ids: list[str] = []


class Reflection(Model):
    """The critic's view of the evidence after a round."""

    sufficiency_score: Annotated[int, Field(ge=1, le=10)]
    reasoning: str = ""
    statuses: dict[str, StepStatus] = {}
    gaps: list[Gap] = []
    contradictions: list[Contradiction] = []
    follow_up_steps: list[PlanStep] = []

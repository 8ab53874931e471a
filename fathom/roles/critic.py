"""The critic reads the notes of a round, scores them, updates the checklist and names what is missing."""

from __future__ import annotations

from operator import not_
from typing import Any, TypeVar

from pydantic import Field

from fathom.config.groups import Role
from fathom.models import Contradiction, Coverage, Gap, Model, Plan, Reflection, Remark, StepStatus
from fathom.roles.base import Answer, Complaint, OverviewAnswer, Remembering, RoleSpec, bounds
from fathom.roles.planner import PlannedStep, StepId, plan_complaints
from fathom.text.citations import without_citations
from fathom.text.plain import clean_line

_ModelT = TypeVar("_ModelT", bound=Model)


class ReflectRequest(Remembering):
    """The question, the plan and the working memory after a round."""

    query: str
    today: str
    plan: Plan
    round: int
    max_follow_ups: int  # maximum number of steps in the next round; 0 if there is no next round
    remarks: list[Remark] = Field([], exclude_if=not_)  # remarks that the next round must take up
    before: Reflection | None = Field(None, exclude_if=not_)  # its judgement of the round before
    found_nothing: list[str] = Field([], exclude_if=not_)  # queries of searches that found nothing useful


class StepVerdict(Answer):
    """The status of one step."""

    step_id: StepId = Field(description="Id of a step of the plan.")
    status: StepStatus = Field(description="done: answered; in_progress: answered in part; blocked: nothing found.")


class FollowUpStep(PlannedStep):
    """A step of the next round."""

    retries: StepId = Field("", description="Id of the blocked step that it tries again; empty if it is a new one.")


class ReflectAnswer(OverviewAnswer):
    """An assessment of the evidence."""

    sufficiency_score: int = Field(
        ge=1, le=10, description="1-3 major gaps; 4-5 significant gaps; 6-7 adequate; 8-9 comprehensive; 10 exhaustive."
    )
    reasoning: str = Field(description="Why this score, in one or two sentences.")
    step_statuses: list[StepVerdict] = Field(
        [], description="The status of each step of the plan.", json_schema_extra=bounds(items=30)
    )
    coverage: Coverage = Field(default_factory=Coverage, description="What the notes speak of.")
    gaps: list[Gap] = Field([], description="What is missing, the worst first.", json_schema_extra=bounds(items=5))
    contradictions: list[Contradiction] = Field(
        [], description="Statements that exclude each other.", json_schema_extra=bounds(items=5)
    )
    follow_up_steps: list[FollowUpStep] = Field(
        [],
        description="New steps that would fill the gaps; none when the evidence is sufficient.",
        json_schema_extra=bounds(items=5),
    )

    def reflection(self, round_number: int) -> Reflection:
        """Return the reflection as the pipeline keeps it; follow-up steps get ids `R2_1`, `R2_2`, ..."""
        return Reflection(
            sufficiency_score=self.sufficiency_score,
            reasoning=self.reasoning,
            statuses={str(verdict.step_id): verdict.status for verdict in self.step_statuses},
            coverage=self.coverage,
            gaps=self.gaps,
            contradictions=self.contradictions,
            follow_up_steps=[
                step.planned(step_id=f"R{round_number + 1}_{n}", depends_on=[])
                for n, step in enumerate(self.follow_up_steps, 1)
            ],
        )


def _normalize(request: ReflectRequest, answer: ReflectAnswer) -> ReflectAnswer:
    """Drop steps and sources that were never given, and citations where no source is quoted."""
    step_ids = {str(step.step_id) for step in request.plan.steps}
    known = request.known
    contradictions = [
        found.model_copy(
            update={
                "source_ids": [i for i in found.source_ids if i in known],
                "other_source_ids": [i for i in found.other_source_ids if i in known and i in found.source_ids],
            }
        )
        for found in answer.contradictions
    ]
    follow_ups = answer.follow_up_steps[: request.max_follow_ups]
    return answer.model_copy(
        update={
            "reasoning": _plain(answer.reasoning),
            "coverage": Coverage(
                perspectives=[*map(_plain, answer.coverage.perspectives)],
                perspectives_missing=[*map(_plain, answer.coverage.perspectives_missing)],
                period=_plain(answer.coverage.period),
                regions=[*map(_plain, answer.coverage.regions)],
            ),
            "step_statuses": [v for v in answer.step_statuses if str(v.step_id) in step_ids],
            "gaps": [
                _uncited(
                    gap if str(gap.step_id) in step_ids else gap.model_copy(update={"step_id": ""}),
                    *("description", "suggested_query"),
                )
                for gap in answer.gaps
            ],
            "contradictions": [_uncited(found, "claim_a", "claim_b", "resolution") for found in contradictions],
            "follow_up_steps": [_uncited(step, "title", "description") for step in follow_ups],
        }
    )


def _plain(text: str) -> str:
    return clean_line(without_citations(text))


def _uncited(answer: _ModelT, *fields: str) -> _ModelT:
    """Return an answer without citations in some fields, and without the outer bars of a row."""
    return answer.model_copy(update={name: without_citations(getattr(answer, name)).strip(" |\n") for name in fields})


def _check(request: ReflectRequest, answer: ReflectAnswer) -> list[Complaint]:
    if not answer.follow_up_steps:
        asked = "; ".join(remark.text for remark in request.remarks)
        return [Complaint(f"No follow-up step takes up what was asked: {asked}.", fatal=False)] if asked else []
    numbered = [s.model_copy(update={"step_id": n, "depends_on": []}) for n, s in enumerate(answer.follow_up_steps)]
    return plan_complaints(numbered)


def _schema(request: ReflectRequest) -> dict[str, Any]:
    schema = request.overview_schema(ReflectAnswer)
    if request.max_follow_ups:
        for unused in ("tools", "depends_on"):  # the critic does not know the tools; its steps wait for no other
            del schema["$defs"]["FollowUpStep"]["properties"][unused]
        schema["properties"]["follow_up_steps"]["maxItems"] = request.max_follow_ups
    else:
        del schema["properties"]["follow_up_steps"]
    return schema


CRITIC = RoleSpec("critic", Role.critic, ReflectRequest, ReflectAnswer, _normalize, _check, schema=_schema)

"""The planner turns the query into independently executable steps."""

from __future__ import annotations

from collections.abc import Sequence
from graphlib import CycleError, TopologicalSorter

from pydantic import Field

from fathom.config.models import Role
from fathom.models import Document, Plan, PlanStep, Priority
from fathom.roles.base import Answer, Complaint, Request, RoleSpec
from fathom.storage.names import slug


class PlanRequest(Request):
    """A query, and what there is to research it with."""

    query: str
    today: str  # ISO date
    max_steps: int
    tools: dict[str, str]  # name -> description
    documents: list[Document] = []  # the local documents that look closest to the query, by name only


class PlannedStep(Answer):
    """One step of the plan."""

    step_id: str | int = Field(description="Unique within the plan; 1, 2, 3, ...")
    title: str = Field(min_length=1, description="A few words that name what this step finds out.")
    description: str = Field(
        min_length=1,
        description="What to look for and where, concrete enough to act on without having seen the other steps.",
    )
    queries: list[str] = Field(
        [], description="Search queries for this step, each of two words or more, each different."
    )
    priority: Priority = Field(Priority.medium, description="How much the answer depends on this step.")
    depends_on: list[str | int] = Field([], description="Ids of steps whose findings this one needs.")


class PlanAnswer(Answer):
    """The research plan."""

    plan_title: str = Field(min_length=1, description="Three to eight words that name the research.")
    steps: list[PlannedStep] = Field(min_length=1, description="The steps, in the order to take them.")

    def plan(self) -> Plan:
        """Return the plan as the pipeline keeps it."""
        return Plan(plan_title=self.plan_title, steps=[PlanStep(**step.model_dump()) for step in self.steps])


def _normalize(request: PlanRequest, answer: PlanAnswer) -> PlanAnswer:
    """Cut the plan to the allowed number of steps, and drop dependencies on steps that it does not have."""
    steps = answer.steps[: request.max_steps]
    known = {str(step.step_id) for step in steps}
    steps = [step.model_copy(update={"depends_on": [d for d in step.depends_on if str(d) in known]}) for step in steps]
    return answer.model_copy(update={"plan_title": answer.plan_title.strip(), "steps": steps})


def plan_complaints(steps: Sequence[PlannedStep | PlanStep]) -> list[Complaint]:
    """Return the rules that a list of steps breaks: duplicate ids, one-word queries, cycles."""
    complaints: list[Complaint] = []
    ids = [slug(str(step.step_id)) for step in steps]  # as artifacts are named: `1.1` and `1_1` would share files
    if not steps:
        complaints.append(Complaint("The plan has no steps."))
    if duplicates := sorted({i for i in ids if ids.count(i) > 1}):
        complaints.append(Complaint(f"Step ids are used twice: {', '.join(duplicates)}."))
    for step in steps:
        if not step.title.strip() or not step.description.strip():
            complaints.append(Complaint(f"Step {step.step_id} lacks a title or a description."))
        for query in step.queries:
            # Writing without spaces has no words to count; four characters say as much as two words.
            if len(query.split()) < 2 and not (len(query) >= 4 and not query.isascii()):
                complaints.append(Complaint(f"Step {step.step_id} has a one-word query: {query!r}."))
    try:
        TopologicalSorter({str(s.step_id): [str(d) for d in s.depends_on] for s in steps}).prepare()
    except CycleError as error:
        complaints.append(Complaint(f"Steps depend on each other in a circle: {' -> '.join(error.args[1])}."))
    return complaints


def _check(_request: PlanRequest, answer: PlanAnswer) -> list[Complaint]:
    return plan_complaints(answer.steps)


PLANNER = RoleSpec("planner", Role.planner, PlanRequest, PlanAnswer, _normalize, _check, addresses=True)

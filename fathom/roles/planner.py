"""The planner turns the query into independently executable steps."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from operator import not_
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, ValidationError

from fathom.config.groups import Role
from fathom.models import (
    Clarification,
    Constraints,
    Document,
    Kind,
    Model,
    Plan,
    PlanStep,
    Priority,
    ReportPreferences,
    Width,
)
from fathom.roles.base import Answer, Complaint, Guided, RoleSpec, bounds
from fathom.storage.names import slug
from fathom.text.terms import any_holds, query_terms


class EarlierReport(Model):
    """The earlier report, as the planner of a follow-up sees it; without an answer, there was none."""

    asked: str  # the follow-up as it was typed
    question: str
    answer: str
    gaps: list[str]


class PlanRequest(Guided):
    """A query, and the tools and documents for its research."""

    query: str
    today: str  # ISO date
    max_steps: int
    tools: dict[str, str]  # name -> description
    documents: list[Document] = []  # the local documents that look closest to the query, by name only
    # Empty fields are left out, so that the requests of runs without them stay the same.
    searching: list[str] = Field([], exclude_if=not_)  # names of the tools to choose from for each step
    clarifications: list[Clarification] = Field([], exclude_if=not_)  # what people said
    draft: Plan | None = Field(None, exclude_if=not_)  # the plan to be changed
    remark: str = Field("", exclude_if=not_)  # how
    earlier: EarlierReport | None = Field(None, exclude_if=not_)  # of a follow-up
    questions: list[str] = Field([], exclude_if=not_)  # of the template: each must be answered
    marked: list[str] = Field([], exclude_if=not_)  # parts of the query that look like orders to a model or like code


StepId = str | int
Query = Annotated[str, Field(json_schema_extra=bounds(120))]


class PlannedStep(Answer):
    """One step of the plan."""

    step_id: StepId = Field(description="Unique within the plan; 1, 2, 3, ...")
    title: str = Field(
        min_length=1, description="A few words that name what this step finds out.", json_schema_extra=bounds(80)
    )
    description: str = Field(
        min_length=1,
        description="What to look for and where, concrete enough to act on without having seen the other steps.",
    )
    queries: list[Query] = Field(
        [],
        description="Search queries for this step, each of two words or more, each different.",
        json_schema_extra=bounds(items=3),
    )
    tools: list[str] = Field(
        [], description="Names of the tools to search with; none: those that the words of the step suggest."
    )
    priority: Priority = Field(Priority.medium, description="How much the answer depends on this step.")
    depends_on: list[StepId] = Field(
        [], description="Ids of steps whose findings this one needs.", json_schema_extra=bounds(items=3)
    )

    def planned(self, **changed: Any) -> PlanStep:
        """Return the step as the pipeline keeps it, without queries of one word, with some fields changed."""
        fields = {**self.model_dump(), "queries": [q for q in self.queries if not _one_word(q)], **changed}
        return PlanStep(**fields)


def _known(choices: type[Kind] | type[Width]) -> Callable[[Any], Any]:
    """Return a validator that ignores a word that is not a choice: the plan is worth more than the judgement."""
    return lambda value: value if value in list(choices) else None


def _valid_part(kind: type[Model]) -> Callable[[Any], Any]:
    """Return a validator that leaves out the fields that are not valid, such as a null for what is not said."""

    def kept(value: Any) -> Any:
        if not isinstance(value, Mapping):
            return value if isinstance(value, kind) else {}
        try:
            kind.model_validate(value)
        except ValidationError as error:
            wrong = {found["loc"][0] for found in error.errors()}
            return {name: said for name, said in value.items() if name not in wrong}
        return value

    return kept


class PlanAnswer(Answer):
    """The research plan."""

    plan_title: str = Field(
        min_length=1, description="Three to eight words that name the research.", json_schema_extra=bounds(80)
    )
    steps: list[PlannedStep] = Field(min_length=1, description="The steps, in the order to take them.")
    kind: Annotated[Kind | None, BeforeValidator(_known(Kind))] = Field(
        None,
        description="fact: something that one good source can state; comparison; how_to; survey: what is known on a "
        "subject; current_event; decision: what to do or to choose.",
    )
    width: Annotated[Width | None, BeforeValidator(_known(Width))] = Field(
        None, description="narrow: one thing is asked; medium: a few; broad: many, or a whole field."
    )
    goals: list[str] = Field(
        [], description="What the reader must know at the end, a sentence each.", json_schema_extra=bounds(items=4)
    )
    constraints: Annotated[Constraints, BeforeValidator(_valid_part(Constraints))] = Field(
        Constraints(), description="The limits that the question itself sets."
    )
    preferences: Annotated[ReportPreferences, BeforeValidator(_valid_part(ReportPreferences))] = Field(
        ReportPreferences(), description="What the question itself says about the report."
    )

    def plan(self) -> Plan:
        """Return the plan as the pipeline keeps it.

        If ids are used twice or steps depend on each other in a circle, although the model was told once, the steps are
        numbered in their order and depend on none.
        """
        steps = [step.planned() for step in self.steps]
        if _used_twice(steps) or _circle(steps):
            steps = [step.model_copy(update={"step_id": n, "depends_on": []}) for n, step in enumerate(steps, 1)]
        return Plan(**{**dict(self), "steps": steps})


def _normalize(request: PlanRequest, answer: PlanAnswer) -> PlanAnswer:
    """Drop repeated steps, and unknown tools and steps in the others."""
    different = {(_words(step.title), _words(step.description)): step for step in reversed(answer.steps)}
    steps = list(reversed(different.values()))
    known = {str(step.step_id) for step in steps}
    steps = [
        step.model_copy(
            update={
                "depends_on": [d for d in step.depends_on if str(d) in known],
                "tools": [tool for tool in step.tools if tool in request.searching],
            }
        )
        for step in steps
    ]
    return answer.model_copy(update={"plan_title": answer.plan_title.strip(), "steps": steps})


def _words(text: str) -> str:
    return " ".join(text.casefold().split())


def _one_word(query: str) -> bool:
    # Writing without spaces has no words to count; four characters say as much as two words.
    return len(query.split()) < 2 and not (len(query) >= 4 and not query.isascii())


def _used_twice(steps: Sequence[PlannedStep | PlanStep]) -> list[str]:
    """Return the ids that several steps have, as artifacts are named: `1.1` and `1_1` would share files."""
    ids = [slug(str(step.step_id)) for step in steps]
    return sorted({i for i in ids if ids.count(i) > 1})


def _circle(steps: Sequence[PlannedStep | PlanStep]) -> list[str]:
    """Return the ids of steps that depend on each other in a circle."""
    try:
        TopologicalSorter({str(s.step_id): [str(d) for d in s.depends_on] for s in steps}).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def plan_complaints(steps: Sequence[PlannedStep | PlanStep]) -> list[Complaint]:
    """Return the rules that a list of steps breaks: duplicate ids, one-word queries, cycles."""
    complaints: list[Complaint] = []
    if not steps:
        complaints.append(Complaint("The plan has no steps."))
    if duplicates := _used_twice(steps):
        complaints.append(Complaint(f"Step ids are used twice: {', '.join(duplicates)}.", fatal=False))
    for step in steps:
        if not step.title.strip() or not step.description.strip():
            complaints.append(Complaint(f"Step {step.step_id} lacks a title or a description."))
        for query in step.queries:
            if _one_word(query):
                complaints.append(Complaint(f"Step {step.step_id} has a one-word query: {query!r}.", fatal=False))
    if circle := _circle(steps):
        complaints.append(Complaint(f"Steps depend on each other in a circle: {' -> '.join(circle)}.", fatal=False))
    return complaints


def _check(request: PlanRequest, answer: PlanAnswer) -> list[Complaint]:
    complaints = plan_complaints(answer.steps)
    if (steps := len(answer.steps)) > request.max_steps:
        most = f"at most {request.max_steps} are allowed: join those that belong together, drop the least important"
        complaints.append(Complaint(f"The plan has {steps} steps; {most}.", fatal=False))
    said = [text for step in answer.steps for text in (step.title, step.description, *step.queries)]
    comparable = said and not request.earlier and not _one_word(request.query)
    # Models that are too small for planning write about something else.
    if comparable and not any_holds(query_terms(request.query), said):
        complaints.append(Complaint("No step has a word of the question: plan what it asks, in its language."))
    return complaints


def _schema(request: PlanRequest) -> dict[str, Any]:
    schema = PlanAnswer.new_schema()
    schema["properties"]["steps"] |= bounds(items=request.max_steps)
    numbers = {"type": "integer", "minimum": 1, "maximum": request.max_steps}
    step = schema["$defs"]["PlannedStep"]["properties"]
    step["step_id"] = {**numbers, "description": step["step_id"]["description"]}
    step["depends_on"]["items"] = numbers
    if request.searching:
        step["tools"] |= bounds(items=len(request.searching))
        step["tools"]["items"]["enum"] = request.searching
    else:
        del step["tools"]
    for name, choices in (("kind", Kind), ("width", Width)):
        said = schema["properties"][name]["description"]
        schema["properties"][name] = {"type": "string", "enum": list(choices), "description": said}
    return schema


PLANNER = RoleSpec("planner", Role.planner, PlanRequest, PlanAnswer, _normalize, _check, addresses=True, schema=_schema)

"""The form in Prefect's UI for each matter that a person is asked about, and what was filled in as a reply."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from prefect.input import RunInput
from pydantic import BaseModel, ConfigDict, Field, create_model

from fathom.config.inputs import MAX_QUERY_CHARS
from fathom.errors import InvalidInput
from fathom.models import Asked, Matter, Plan, Priority, Reply
from fathom.report.escaping import escaped
from fathom.run.editing import edited, fields_of
from fathom.text.cleaning import clean_line, without_controls

IN_UI = "somebody in the Prefect UI"
_CHARS = 100_000  # of a report that the page shows


class FormStep(BaseModel):
    """A step of the plan as the form has it: each field is one box."""

    model_config = ConfigDict(extra="forbid")

    step_id: str = Field(description="Its own, such as 4.")
    title: str
    description: str
    queries: list[str] = Field([], description="Each of two words or more.")
    priority: Priority = Priority.medium
    depends_on: list[str] = Field([], description="Ids of steps that come first.")


def form_of(asked: Asked, complaint: str = "") -> type[RunInput]:
    """Return the form for what is asked, filled with what holds if nobody changes it."""
    fields = dict[str, Any]()
    match asked.matter:
        case Matter.question:
            fields = {
                f"answer_{n}": (str, Field(q.default, title=clean_line(q.question)))
                for n, q in enumerate(asked.questions, 1)
            }
        case Matter.plan if asked.plan:
            plan = _form_fields(asked.plan)
            fields["plan_title"] = (str, Field(plan["plan_title"]))
            fields["steps"] = (list[FormStep], Field([FormStep(**step) for step in plan["steps"]]))
    if asked.matter is Matter.plan or asked.rewords:
        said = "What to change, in words. Empty: go on with it as it is."
        fields |= {"remark": (str, Field("", description=said))} if asked.matter is not Matter.question else {}
    fields["stop"] = (bool, Field(False, description="Stop the run instead."))
    fields["by"] = (str, Field("", title="your name", description="Kept with your answer, if you give it."))
    for position, (_, field) in enumerate(fields.values()):
        field.json_schema_extra = {"position": position}
    form = create_model("Reply", __base__=RunInput, **fields)
    form._description = described(asked, complaint)
    return form


def described(asked: Asked, complaint: str = "") -> str:
    """Return what is asked as Markdown."""
    parts = [f"**{escaped(complaint)}**"] if complaint else []
    parts += [f"**Question:** {escaped(clean_line(asked.query))}"]
    match asked.matter:
        case Matter.question:
            parts += ["It leaves something open. Change the assumptions below that are wrong, or leave them."]
            parts += [f"{n}. {escaped(clean_line(q.question))}" for n, q in enumerate(asked.questions, 1)]
        case Matter.plan if asked.plan:
            without = "" if asked.rewords else " Without a model, what you say in words becomes a step of its own."
            parts += [f"**The plan: {escaped(clean_line(asked.plan.plan_title))}**", _steps(asked.plan)]
            parts += [f"Submit to go on with it. Or change its steps, or say what to change.{without}"]
        case Matter.report:
            how = "Submit to publish it, or say what to change." if asked.rewords else "Submit to publish it, or stop."
            parts += [f"{how} This is the draft:", asked.report[:_CHARS]]
    return "\n\n".join(parts)


def values_of(reply: Reply) -> dict[str, Any]:
    """Return a reply as it would be filled in."""
    values: dict[str, Any] = {f"answer_{n}": answer for n, answer in enumerate(reply.answers, 1)}
    values |= _form_fields(reply.plan) if reply.plan else {}
    values |= {"remark": reply.remark} if reply.remark else {}
    return {**values, "stop": reply.stop, "by": reply.by}


def reply_of(asked: Asked, values: Mapping[str, Any]) -> Reply:
    """Return what was filled in as a reply; its time is left open.

    Raises:
        InvalidInput: it cannot be used; the message says why.
    """
    said = {name: without_controls(str(values.get(name) or "")).strip() for name in ("remark", "by")}
    if len(said["remark"]) > MAX_QUERY_CHARS:
        raise InvalidInput(f"What to change has {len(said['remark']):,} characters; {MAX_QUERY_CHARS:,} are allowed.")
    answers = [
        clean_line(str(values.get(f"answer_{n}") or ""))[:MAX_QUERY_CHARS] or open_question.default
        for n, open_question in enumerate(asked.questions, 1)
    ]
    plan = None
    if asked.plan and not values.get("stop"):
        now = {**_form_fields(asked.plan), **{name: values[name] for name in ("plan_title", "steps") if name in values}}
        plan = edited(now, asked.plan)
        plan = plan if plan != asked.plan else None
    return Reply(
        answers=answers, plan=plan, remark=said["remark"], stop=bool(values.get("stop")), by=said["by"] or IN_UI
    )


def _form_fields(plan: Plan) -> dict[str, Any]:
    """Return a plan in the fields of the form."""
    fields = fields_of(plan)
    steps = [{name: step[name] for name in FormStep.model_fields} for step in fields["steps"]]
    for step in steps:
        step |= {"step_id": str(step["step_id"]), "depends_on": [str(other) for other in step["depends_on"]]}
    return {**fields, "steps": steps}


def _steps(plan: Plan) -> str:
    lines = []
    for step in plan.steps:
        lines.append(f"- **{escaped(str(step.step_id))}. {escaped(clean_line(step.title))}** ({step.priority.value})")
        lines.append(f"  {escaped(clean_line(step.description))}")
        lines += [f"  - {escaped(clean_line(query))}" for query in step.queries]
    return "\n".join(lines)

"""The form in Prefect's UI for each matter that a person is asked about, and what was filled in as a reply."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from prefect.input import RunInput
from pydantic import Field, create_model

from fathom.config.inputs import MAX_QUERY_CHARS
from fathom.errors import InvalidInput
from fathom.models import Asked, Matter, OpenQuestion, Plan, Reply
from fathom.report.quotations import escaped
from fathom.run.checklist import as_yaml, from_yaml
from fathom.text.plain import clean_line, without_controls

IN_UI, NOBODY = "somebody in the Prefect UI", "nobody"
_CHARS = 100_000  # of a report that the page shows


def form_of(asked: Asked, complaint: str = "", typed: str = "") -> type[RunInput]:
    """Return the form for what is asked, filled with what holds if nobody changes it.

    `typed` is the text of a plan that could not be used. Prefect draws what is asked above the boxes, in the room that
    they leave, so there are few of them.
    """
    fields = dict[str, Any]()
    for number, question in enumerate(asked.questions, 1):
        fields[f"answer_{number}"] = (str, Field(question.default, title=clean_line(question.question)))
    if not asked.questions and (asked.plan or asked.rewords):
        fields["remark"] = (str, Field("", description="What to change, in words. Empty: go on with it as it is."))
    if asked.plan:
        said = "To change it yourself. Pull the corner of the box to see all of it."
        fields["plan"] = (str, Field(typed or as_yaml(asked.plan), title="Plan", description=said))
    fields["stop"] = (bool, Field(False, description="Stop the run instead."))
    fields["by"] = (str, Field("", title="Your name", description="Kept with your answer, if you give it."))
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
            parts += [_open(n, q) for n, q in enumerate(asked.questions, 1)]
        case Matter.plan if asked.plan:
            without = "" if asked.rewords else " Without a model, what you say in words becomes a step of its own."
            parts += [f"**The plan: {escaped(clean_line(asked.plan.plan_title))}**", _steps(asked.plan)]
            parts += [f"Submit to go on with it. Or say what to change, or change it yourself.{without}"]
        case Matter.report:
            how = "Submit to publish it, or say what to change." if asked.rewords else "Submit to publish it, or stop."
            parts += [f"{how} This is the draft:", asked.report[:_CHARS]]
    return "\n\n".join(parts)


def values_of(reply: Reply) -> dict[str, Any]:
    """Return a reply as it would be filled in."""
    values: dict[str, Any] = {f"answer_{n}": answer for n, answer in enumerate(reply.answers, 1)}
    values |= {"plan": as_yaml(reply.plan)} if reply.plan else {}
    values |= {"remark": reply.remark} if reply.remark else {}
    return {**values, "stop": reply.stop, "by": NOBODY if reply.assumed else reply.by}


def reply_of(asked: Asked, values: Mapping[str, Any]) -> Reply:
    """Return what was filled in as a reply; its time is left open.

    Raises:
        InvalidInput: it cannot be used; the message says why.
    """
    stop, by = bool(values.get("stop")), clean_line(str(values.get("by") or "")) or IN_UI
    if stop:
        return Reply(stop=True, by=by)
    remark = without_controls(str(values.get("remark") or "")).strip()
    if len(remark) > MAX_QUERY_CHARS:
        raise InvalidInput(
            f"The text on what to change has {len(remark):,} characters; {MAX_QUERY_CHARS:,} are allowed."
        )
    if remark and not (asked.plan or asked.rewords):
        raise InvalidInput("Without a model, the report consists of quotations: you can publish it or stop the run.")
    answers = [
        clean_line(str(values.get(f"answer_{n}") or ""))[:MAX_QUERY_CHARS] or question.default
        for n, question in enumerate(asked.questions, 1)
    ]
    plan = from_yaml(str(values["plan"]), asked.plan) if asked.plan and values.get("plan") else None
    if by == NOBODY:  # the run answered itself
        return Reply(answers=answers, assumed=True)
    return Reply(answers=answers, plan=plan if plan != asked.plan else None, remark=remark, by=by)


def _open(number: int, asked: OpenQuestion) -> str:
    return f"{number}. {escaped(clean_line(asked.question))} Assumed: {escaped(clean_line(asked.default))}"


def _steps(plan: Plan) -> str:
    lines = []
    for step in plan.steps:
        lines.append(f"- **{escaped(str(step.step_id))}. {escaped(clean_line(step.title))}** ({step.priority.value})")
        lines.append(f"  {escaped(clean_line(step.description))}")
        lines += [f"  - {escaped(clean_line(query))}" for query in step.queries]
    return "\n".join(lines)

"""Answering a run that waits for a person: its question, its form in Prefect's UI, and the one path of every answer.

The terminal, `fathom answer` and Prefect's UI all resume the flow run, and Prefect takes the first of them. Imports
Prefect: call `fathom.flows.server.ensure_api` first.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import httpx
from prefect.client.orchestration import PrefectClient
from prefect.client.schemas.objects import FlowRun, State
from prefect.client.schemas.responses import SetStateStatus
from prefect.exceptions import ObjectNotFound, PrefectHTTPStatusError
from prefect.input import RunInput
from pydantic import Field, create_model

from fathom.config.environment import Environment
from fathom.config.inputs import MAX_QUERY_CHARS
from fathom.config.secrets import Scrubber
from fathom.errors import InvalidInput, RunNotFound
from fathom.flows.runs.states import row_of, state_of
from fathom.models import Asked, Matter, OpenQuestion, Plan, Reply, RunState
from fathom.report.quotations import escaped
from fathom.run.checklist import as_yaml, from_yaml
from fathom.tasks.clients import prefect_client
from fathom.text.plain import clean_line, without_controls

RESPONSE = "-response"
ASKED = "-asked"
"""Suffixes of the names under which the server keeps an answer and, beside Prefect's own schema, the question."""


_NEXT = "fathom runs lists the runs, and which of them wait"


@dataclass(frozen=True)
class Waiting:
    """A run that waits for an answer. `complaint` says why the last answer could not be used.

    `gone`: its process was killed while it waited, so it goes on only when it is resumed.
    """

    run_id: UUID
    key: str
    asked: Asked
    complaint: str = ""
    gone: bool = False


def key_of(state: State[Any] | None) -> str:
    """Return the prefix of the names under which the server keeps a question; empty when nothing is asked."""
    keyset = state.state_details.run_input_keyset if state and state.is_paused() else None
    return keyset["response"].removesuffix(RESPONSE) if keyset else ""


async def read_input(client: PrefectClient, run_id: UUID, name: str) -> Any:
    """Return the value that the server keeps under a name for a run; None if there is none."""
    try:
        return json.loads(await client.read_flow_run_input(run_id, name))
    except PrefectHTTPStatusError as error:
        if error.response.status_code != httpx.codes.NOT_FOUND:
            raise
        return None


async def waiting(run_id: UUID) -> Waiting:
    """Return the question of a run.

    Raises:
        RunNotFound: the server does not know the run.
        InvalidInput: the run asks nothing.
    """
    async with prefect_client() as client:
        flow_run = await _read(client, run_id)
        if not (key := key_of(flow_run.state)):
            raise InvalidInput(
                f"The run {str(run_id)[:8]} is not waiting for an answer: it is {_doing(flow_run)}.", next_step=_NEXT
            )
        kept = await read_input(client, run_id, f"{key}{ASKED}")
    if kept is None:
        raise InvalidInput(
            f"The run {str(run_id)[:8]} was paused by somebody, and not to ask something.",
            next_step="resume it in the Prefect UI",
        )
    gone = (
        await state_of(row_of(flow_run)) is not RunState.waiting and not flow_run.deployment_id
    )  # else a worker takes it up
    return Waiting(run_id, key, Asked.model_validate(kept["asked"]), kept["complaint"], gone)


async def answer(waits: Waiting, reply: Reply) -> None:
    """Answer a run. A run of a deployment is then taken up by a worker; any other goes on where it waits.

    Raises:
        RunNotFound: the server does not know the run any more.
        InvalidInput: the answer cannot be used, or somebody else was quicker.
    """
    values = values_of(Scrubber(Environment.read().secrets).model(reply))  # now, because Prefect stores it
    reply_of(waits.asked, values)
    async with prefect_client() as client:
        if key_of((await _read(client, waits.run_id)).state) == waits.key:
            outcome = await client.resume_flow_run(waits.run_id, values)
            # Prefect answers 200 also when it refuses.
            if outcome.status is SetStateStatus.ACCEPT:
                return
            if outcome.status is SetStateStatus.REJECT:
                reason = getattr(outcome.details, "reason", "") or "no reason given"
                raise InvalidInput(f"The Prefect server refuses the answer: {reason}")
    raise InvalidInput(
        f"The run {str(waits.run_id)[:8]} no longer waits for this answer: it was already answered.", next_step=_NEXT
    )


def _doing(flow_run: FlowRun) -> str:
    return (flow_run.state_name or "unknown").lower()


async def _read(client: PrefectClient, run_id: UUID) -> FlowRun:
    try:
        return await client.read_flow_run(run_id)
    except ObjectNotFound:
        raise RunNotFound(f"The Prefect server does not know a run {run_id}.", next_step=_NEXT) from None


IN_UI, NOBODY = "somebody in the Prefect UI", "nobody"
_CHARS = 100_000  # of a report that the page shows


def form_of(asked: Asked, complaint: str = "", typed: str = "") -> type[RunInput]:
    """Return the form for a question, filled with the values that apply if nobody changes them.

    `typed` is the text of a plan that could not be used. Prefect draws the question above the boxes, in the remaining
    space, so there are few boxes.
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
    """Return the question as Markdown."""
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
    """Return a reply in the form's values."""
    values: dict[str, Any] = {f"answer_{n}": answer for n, answer in enumerate(reply.answers, 1)}
    values |= {"plan": as_yaml(reply.plan)} if reply.plan else {}
    values |= {"remark": reply.remark} if reply.remark else {}
    return {**values, "stop": reply.stop, "by": NOBODY if reply.assumed else reply.by}


def reply_of(asked: Asked, values: Mapping[str, Any]) -> Reply:
    """Return the submitted form as a reply; its time is left open.

    Raises:
        InvalidInput: the form cannot be used; the message says why.
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
    lines = [f"- {escaped(clean_line(said))}" for said in plan.told]
    for step in plan.steps:
        lines.append(f"- **{escaped(str(step.step_id))}. {escaped(clean_line(step.title))}** ({step.priority.value})")
        lines.append(f"  {escaped(clean_line(step.description))}")
        lines += [f"  - {escaped(clean_line(query))}" for query in step.queries]
    return "\n".join(lines)

"""Answering a run that waits for a person: what it asks, and the one door for every answer to it.

The terminal, `fathom answer` and Prefect's UI all resume the flow run, and Prefect takes the first of them. Imports
Prefect: call `fathom.flows.server.ensure_api` first.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import httpx
from prefect.client.orchestration import PrefectClient, get_client
from prefect.client.schemas.objects import FlowRun, State
from prefect.client.schemas.responses import SetStateStatus
from prefect.exceptions import ObjectNotFound, PrefectHTTPStatusError

from fathom.config.environment import Environment
from fathom.config.secrets import Scrubber
from fathom.errors import InvalidInput, RunNotFound
from fathom.flows.forms import reply_of, values_of
from fathom.flows.runs.flow_runs import row_of
from fathom.flows.runs.states import state_of
from fathom.models import Asked, Reply, RunState

RESPONSE = "-response"
ASKED = "-asked"
"""The ends of the names under which the server keeps an answer and, beside Prefect's own schema, what is asked."""


_NEXT = "fathom runs lists the runs, and which of them wait"


@dataclass(frozen=True)
class Waiting:
    """A run that waits for an answer. `complaint` says why the last one could not be used.

    `gone`: its process was killed while it waited, so it goes on only when it is resumed.
    """

    run_id: UUID
    key: str
    asked: Asked
    complaint: str = ""
    gone: bool = False


def key_of(state: State[Any] | None) -> str:
    """Return the beginning of the names under which the server keeps a question; empty when nothing is asked."""
    keyset = state.state_details.run_input_keyset if state and state.is_paused() else None
    return keyset["response"].removesuffix(RESPONSE) if keyset else ""


async def read_input(client: PrefectClient, run_id: UUID, name: str) -> Any:
    """Return what the server keeps under a name for a run; None if there is nothing."""
    try:
        return json.loads(await client.read_flow_run_input(run_id, name))
    except PrefectHTTPStatusError as error:
        if error.response.status_code != httpx.codes.NOT_FOUND:
            raise
        return None


async def waiting(run_id: UUID) -> Waiting:
    """Return what a run asks.

    Raises:
        RunNotFound: the server does not know the run.
        InvalidInput: it asks nothing.
    """
    async with get_client() as client:
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
    async with get_client() as client:
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

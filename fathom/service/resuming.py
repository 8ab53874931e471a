"""A run that was interrupted goes on."""

from __future__ import annotations

from contextlib import nullcontext

from fathom.client.shapes import Run
from fathom.config.settings import ResearchSettings
from fathom.errors import Conflict
from fathom.flows.runs.resuming import reschedule
from fathom.models import RunState
from fathom.service.caller import Caller
from fathom.service.limits import capped, most_usd
from fathom.service.runs import Desk

_OVER = (RunState.interrupted, RunState.failed, RunState.cancelled)


async def resume(desk: Desk, caller: Caller, run_id: str) -> Run:
    """Have a worker continue a run that was interrupted, failed or was cancelled.

    Raises:
        RunNotFound: there is no such run, or the caller may not see it.
        NotAllowed: it is somebody else's.
        TooManyRequests: the caller has used up what a day allows.
        Conflict: there is nothing to continue, or no worker can do it.
        RunBusy: a process works on it.
    """
    found, ownership = await desk.readable(caller, run_id)
    ownership.check_owner(caller, run_id)  # it spends what is theirs
    state = (await desk.get(caller, run_id)).state
    if state not in _OVER:
        how = "read its result" if state.ended else "wait for it"
        raise Conflict(f"The run is {state.value}: there is nothing to resume.", next_step=how)
    if found.flow_run is None or found.flow_run.deployment_id is None:
        how = f"fathom resume {run_id[:8]}, on the machine of the server"
        raise Conflict("No worker can take this run: the server did not start it.", next_step=how)
    # What it had not spent may have been given back when it stopped.
    settings = capped(caller, ResearchSettings.model_validate(found.flow_run.parameters.get("settings") or {}))
    held = await desk.spending.holds(caller, run_id)
    async with nullcontext() if held else desk.spending.taking(caller, most_usd(settings)) as taken:
        await reschedule(found.flow_run)
    if taken:
        await desk.spending.hold_again(caller, taken, run_id)
    return await desk.get(caller, run_id)

"""What a worker of Prefect says of a run whose process ended, and when it has said it all.

A living worker reports a process that died twice: at once, and again when another process has looked for hooks of the
flow, which it starts for that: two seconds later, or many on a busy machine (Prefect 3.8.8). A report undoes a
rescheduling that was made before it. Workers of Fathom have no process for a run, and report none.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from time import monotonic
from typing import Any

from prefect.client.orchestration import PrefectClient
from prefect.client.schemas.objects import FlowRun, State
from prefect.events.filters import EventFilter, EventNameFilter, EventOccurredFilter, EventRelatedFilter
from prefect.states import Scheduled

from fathom.tasks.supervision import CANCELLED

REPORT_SECONDS = 5.0
"""In which a worker says that a run's process has ended."""
HOOK_SECONDS = 60.0
"""In which it then says so again."""
ENDS_SECONDS = 20  # it says that a run was cancelled once the run's process has ended
POLL_SECONDS = 0.5
LAST = "Flow run infrastructure exited"
FIRST = "Process exited with status code"


async def all_told(client: PrefectClient, flow_run: FlowRun) -> bool:
    """Wait for what a worker has still to say of a run's last attempt; return whether the run is still to go on.

    The server drops a report about a run that has ended, so that none would be seen, and takes one about a run that
    waits for its time, as this one does meanwhile. Should this process end, the run begins by itself.
    """
    if flow_run.state and flow_run.state.is_cancelled():
        await _cancelling_told(client, flow_run)
        return True
    put_off = "Resumed, as soon as the worker has reported the last attempt."
    while True:
        due = datetime.now(UTC) + timedelta(seconds=2 * HOOK_SECONDS)
        await client.set_flow_run_state(flow_run.id, Scheduled(scheduled_time=due, message=put_off), force=True)
        report = _last_report(await client.read_flow_run_states(flow_run.id))
        if report and (report.message or "").startswith(LAST):
            return True
        state = await _changed(client, flow_run, report)
        if state is None or not state.is_crashed():
            return state is None  # else it was cancelled meanwhile, or has begun


def _last_report(states: Sequence[State[Any]]) -> State[Any] | None:
    """Return what a worker said last of the last attempt; None when it has said nothing."""
    for state in sorted(states, key=lambda state: state.timestamp, reverse=True):
        if (state.message or "").startswith((FIRST, LAST)):
            return state
        if state.is_running() or state.is_pending():
            break
    return None


async def _changed(client: PrefectClient, flow_run: FlowRun, first: State[Any] | None) -> State[Any] | None:
    """Return the state that a scheduled run is given by a worker, or by somebody; None when no worker will do so."""
    seconds = REPORT_SECONDS
    if first:
        seconds = HOOK_SECONDS - (datetime.now(UTC) - first.timestamp).total_seconds()
    deadline = monotonic() + seconds
    while monotonic() < deadline and not (first and await _done(client, flow_run, first.timestamp)):
        await asyncio.sleep(POLL_SECONDS)
        state = (await client.read_flow_run(flow_run.id)).state
        if state and not state.is_scheduled():
            return state
    return None


async def _done(client: PrefectClient, flow_run: FlowRun, since: datetime) -> bool:
    """Whether a worker has finished with the run after a time. It says so after its last report, dropped or not."""
    finished = EventFilter(
        event=EventNameFilter(name=["prefect.worker.executed-flow-run"]),
        related=EventRelatedFilter(id=[f"prefect.flow-run.{flow_run.id}"]),
        occurred=EventOccurredFilter.model_validate({"since": since}),
    )
    return bool((await client.read_events(finished, limit=1)).events)


async def _cancelling_told(client: PrefectClient, flow_run: FlowRun) -> None:
    await asyncio.sleep(REPORT_SECONDS)
    for _ in range(ENDS_SECONDS):
        state = (await client.read_flow_run(flow_run.id)).state
        if state is None or not (state.message or "").startswith(CANCELLED):
            return
        await asyncio.sleep(1)

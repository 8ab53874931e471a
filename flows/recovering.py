"""Runs of a work pool whose process is gone: found, and scheduled again for any worker of the pool.

Prefect leaves the run of a worker that was killed in `Running` for ever. Here the run's lease says whether a process
works on it. Imports Prefect: call `flows.server.ensure_api` first.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from prefect.client.orchestration import PrefectClient, get_client
from prefect.client.schemas.filters import (
    FlowFilter,
    FlowFilterName,
    FlowRunFilter,
    FlowRunFilterState,
    FlowRunFilterStateType,
    WorkPoolFilter,
    WorkPoolFilterName,
)
from prefect.client.schemas.objects import FlowRun, StateType
from prefect.states import Crashed, Scheduled

from fathom.storage.lease import died, read_lease
from fathom.telemetry.progress import Event, publish
from flows.flow_runs import FLOWS, has_begun, place

STARTING_SECONDS = 180.0
"""In which a run that was taken by a worker must begin; the process worker imports everything first."""
MOST_DEATHS = 3
"""A run whose process died so often is left alone: perhaps it is the run that ends its process."""
_UNFINISHED = [StateType.RUNNING, StateType.PENDING, StateType.CRASHED]


async def recover(pool: str) -> int:
    """Schedule again the runs of a work pool whose process is gone, and return their number."""
    recovered = 0
    async with get_client() as client:
        found = await client.read_flow_runs(
            flow_filter=FlowFilter(name=FlowFilterName(any_=list(FLOWS))),
            work_pool_filter=WorkPoolFilter(name=WorkPoolFilterName(any_=[pool])),
            flow_run_filter=FlowRunFilter(state=FlowRunFilterState(type=FlowRunFilterStateType(any_=_UNFINISHED))),
        )
        for flow_run in found:
            if await _is_gone(flow_run):
                recovered += await _schedule(client, flow_run)
    return recovered


async def _is_gone(flow_run: FlowRun) -> bool:
    """Whether no process works on a run that has begun, or that should have begun by now."""
    if flow_run.state is None:
        return False
    since = flow_run.state.timestamp
    lease = await read_lease(*place(str(flow_run.id), flow_run.parameters))
    if flow_run.state_type is StateType.CRASHED:  # a run that never began would crash again
        return lease is not None and not lease.alive
    if lease and has_begun(since, lease):
        return not lease.alive
    return datetime.now(UTC) - since > timedelta(seconds=STARTING_SECONDS)


async def _schedule(client: PrefectClient, flow_run: FlowRun) -> bool:
    """Schedule a run again, unless another worker was quicker or its process dies each time."""
    state = flow_run.state
    deaths = await died(*place(str(flow_run.id), flow_run.parameters))
    if deaths >= MOST_DEATHS:
        if flow_run.state_type is not StateType.CRASHED:
            said = f"Its process died {deaths} times, so it is not tried again. To try: fathom resume {flow_run.id}"
            await client.set_flow_run_state(flow_run.id, Crashed(message=said), force=True)
        return False
    now = (await client.read_flow_run(flow_run.id)).state
    if not state or not now or now.id != state.id:
        return False
    await client.set_flow_run_state(flow_run.id, Scheduled(message="Its process is gone; scheduled again."), force=True)
    publish(Event("warning", f"run {str(flow_run.id)[:8]}: its process is gone; scheduled again"))
    return True

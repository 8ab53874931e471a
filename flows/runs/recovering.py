"""Runs of a work pool whose process is gone: found, and scheduled again for any worker of the pool.

Prefect leaves the run of a worker that was killed in `Running` for ever. Here the run's lease says whether a process
works on it. Imports Prefect: call `fathom.flows.server.ensure_api` first.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from prefect.client.orchestration import PrefectClient, get_client
from prefect.client.schemas.filters import (
    FlowFilter,
    FlowFilterName,
    FlowRunFilter,
    FlowRunFilterEndTime,
    FlowRunFilterState,
    FlowRunFilterStateType,
    WorkPoolFilter,
    WorkPoolFilterName,
)
from prefect.client.schemas.objects import FlowRun, StateType
from prefect.exceptions import PrefectException, PrefectHTTPStatusError
from prefect.logging import get_logger
from prefect.states import Crashed, Scheduled

from fathom.errors import FathomError
from fathom.flows.runs.flow_runs import FLOWS, place
from fathom.flows.runs.states import has_begun
from fathom.storage.lease import died, read_lease
from fathom.telemetry.progress import Event, publish

STARTING_SECONDS = 180.0
"""In which a run that was taken by a worker must begin; the process worker imports everything first."""
MOST_DEATHS = 3
"""A run whose process died so often is left alone: perhaps it is the run that ends its process."""
CRASHED_SECONDS = 3600.0
"""How long ago a run may have crashed that is scheduled again."""
_PAGE = 200  # the most that the server returns at once


async def recover(client: PrefectClient, pool: str) -> None:
    """Schedule again the runs of a work pool whose process is gone."""
    flow_filter = FlowFilter(name=FlowFilterName(any_=list(FLOWS)))
    work_pool_filter = WorkPoolFilter(name=WorkPoolFilterName(any_=[pool]))
    recently = FlowRunFilterEndTime(after_=datetime.now(UTC) - timedelta(seconds=CRASHED_SECONDS))
    found: list[FlowRun] = []
    for which in (
        FlowRunFilter(state=_in(StateType.CRASHED), end_time=recently),
        FlowRunFilter(state=_in(StateType.RUNNING, StateType.PENDING)),
    ):
        full, offset = True, 0
        while full:
            page = await client.read_flow_runs(
                flow_filter=flow_filter,
                work_pool_filter=work_pool_filter,
                flow_run_filter=which,
                limit=_PAGE,
                offset=offset,
            )
            found += page
            full, offset = len(page) == _PAGE, offset + _PAGE
    await recover_runs(found)


async def recover_runs(flow_runs: Sequence[FlowRun]) -> None:
    """Schedule again those of some runs whose process is gone. One that cannot be judged is left as it is."""
    async with get_client() as client:
        for flow_run in flow_runs:
            try:
                if await _is_gone(flow_run):
                    await _schedule(client, flow_run)
            except (FathomError, PrefectException, PrefectHTTPStatusError) as error:
                get_logger("fathom").warning("Run %s: %s", flow_run.id, error)


def _in(*states: StateType) -> FlowRunFilterState:
    return FlowRunFilterState(type=FlowRunFilterStateType(any_=list(states)))


async def _is_gone(flow_run: FlowRun) -> bool:
    """Whether no process works on a run that has begun, or that should have begun by now."""
    if flow_run.state is None or flow_run.state_type not in _UNFINISHED:
        return False
    since = flow_run.state.timestamp
    lease = await read_lease(*place(str(flow_run.id), flow_run.parameters))
    if flow_run.state_type is StateType.CRASHED:  # a run that never began would crash again
        return lease is not None and not lease.alive
    if lease and has_begun(since, lease):
        return not lease.alive
    # One that runs without a lease here may have it in the store of another machine. One whose lease is older than its
    # state was answered while it waited: by then its process may have been gone.
    waited = flow_run.state_type is StateType.RUNNING and lease is not None and not lease.alive
    return (waited or flow_run.state_type is StateType.PENDING) and _seconds_since(since) > STARTING_SECONDS


def _seconds_since(time: datetime) -> float:
    return (datetime.now(UTC) - time).total_seconds()


async def _schedule(client: PrefectClient, flow_run: FlowRun) -> None:
    """Schedule a run again, unless another worker was quicker or its process dies each time."""
    state = flow_run.state
    deaths = await died(*place(str(flow_run.id), flow_run.parameters))
    if deaths >= MOST_DEATHS:
        if flow_run.state_type is not StateType.CRASHED:
            said = f"Its process died {deaths} times, so it is not tried again. Find out why, then: Retry in the UI."
            await client.set_flow_run_state(flow_run.id, Crashed(message=said), force=True)
        return
    now = (await client.read_flow_run(flow_run.id)).state
    if state and now and now.id == state.id:
        said = "Its process is gone; scheduled again."
        await client.set_flow_run_state(flow_run.id, Scheduled(message=said), force=True)
        publish(Event("warning", f"run {str(flow_run.id)[:8]}: its process is gone; scheduled again"))


_UNFINISHED = (StateType.RUNNING, StateType.PENDING, StateType.CRASHED)

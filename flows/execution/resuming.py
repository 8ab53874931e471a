"""Unfinished runs: finding them, scheduling them again when their process is gone, and finishing them.

Imports Prefect: call `fathom.flows.server.ensure_api` first.

The reports of a Prefect worker on a run whose process ended, and when they are complete. A living worker reports a
process that died twice: at once, and again when another process has looked for hooks of the flow, which it starts for
that: two seconds later, or many on a busy machine (Prefect 3.8.8). A report undoes a rescheduling that was made
before it. Workers of Fathom have no process for a run, and report none.

Runs of a work pool whose process is gone: found, and scheduled again for any worker of the pool. Prefect leaves the
run of a worker that was killed in `Running` for ever. Here the run's lease says whether a process works on it.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime, timedelta
from time import monotonic
from typing import Any

from prefect.client.orchestration import PrefectClient
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
from prefect.client.schemas.objects import TERMINAL_STATES, FlowRun, State, StateType
from prefect.events.filters import EventFilter, EventNameFilter, EventOccurredFilter, EventRelatedFilter
from prefect.exceptions import PrefectException, PrefectHTTPStatusError
from prefect.logging import get_logger
from prefect.states import Crashed, Scheduled

from fathom.config.environment import artifact_root
from fathom.config.settings import ResearchSettings
from fathom.errors import FathomError, RunBusy, RunCancelled, RunNotFound
from fathom.flows.execution.deploying import living, process_of, unattended
from fathom.flows.execution.local import address, create, execute, result_of
from fathom.flows.runs.finding import find_flow_run
from fathom.flows.runs.states import FLOWS, UNDER_WAY, has_begun, place
from fathom.flows.runs.stored import find_all, find_elsewhere, locate, nor_in, several
from fathom.flows.server import MOST_AT_ONCE
from fathom.models import RunResult
from fathom.storage.lease import Lease, died, is_gone, observe_lease, read_lease
from fathom.storage.store import ArtifactStore
from fathom.tasks.clients import prefect_client
from fathom.telemetry.progress import Event, publish

POLL_SECONDS = 2.0
QUEUED_SECONDS = 10.0
"""After which whoever waits for a run is told if no worker is there; one may just be starting."""


async def finish(
    flow_run: FlowRun, say: Callable[[str], object] = lambda line: None, *, wait: bool = True
) -> RunResult | None:
    """Finish a run that was interrupted, repeating none of its finished calls, and return its result.

    A finished run is only reported again. A run of a deployment is left to a worker: with `wait` until it has
    finished, its states told to `say`, otherwise None is returned.

    Raises:
        RunBusy: the run is still running.
        FathomError: it failed again, or was stopped.
    """
    if result := await result_of(flow_run):
        say("It had already finished: nothing is asked or read again.")
        return result
    flow_run = await reschedule(flow_run)
    if flow_run.deployment_id is None:
        return await execute(flow_run)
    say("Queued again; a worker of its work pool takes it up.")
    return await _ended(flow_run, say) if wait else None


async def find(name: str, root: str | None = None) -> FlowRun:
    """Return the run that an id, the beginning of one, a flow run's name, a folder or a plan title stands for.

    A run that only the artifact store knows, because the machine or the server it was started on is gone, becomes a
    run of this server and of this process, with the same parameters and under the run key that it had.

    Raises:
        RunNotFound: there is none.
        InvalidInput: there are several.
        RunBusy: it is running, under another server.
        OtherLayout: it was stored by a version with another layout.
    """
    present, name = locate(name.strip(), artifact_root(root))
    stored, looked = await find_all(ArtifactStore(present), name), list[str]()
    if not (stored or root):
        stored, looked = await find_elsewhere(name, present)
    try:
        return await find_flow_run(name, stored)
    except RunNotFound as missing:
        if len(stored) > 1:
            raise several(name, [run.run_id for run in stored]) from None
        if stored:
            return await _again(stored[0].store, stored[0].run_key)
        missing.message += f" It is not in {present}.{nor_in(looked)}"
        raise


async def _again(store: ArtifactStore, key: str) -> FlowRun:
    """Create a run that continues from the results stored under a key."""
    lease = await observe_lease(store, key)
    if lease is None or not lease.parameters:
        raise RunNotFound(
            f"{store.address()} has no record of how the run {key!r} was started.", next_step="ask the question again"
        )
    lease.check_free()
    parameters = lease.parameters
    given = ResearchSettings.model_validate(parameters.get("settings") or {})
    if artifact_root(given.artifacts) != store.address():
        given = given.model_copy(update={"artifacts": store.address()})
    run_key, watch = parameters.get("run_key") or lease.run_id, parameters.get("watch") or ""
    return await create(str(parameters.get("query")), given, run_key, watch, parameters.get("parent") or "")


async def reschedule(flow_run: FlowRun) -> FlowRun:
    """Make a run that ended, or whose process is gone, ready to run again under its own id.

    Raises:
        RunBusy: the process that runs it is alive.
        OtherLayout: it was stored by a version with another layout.
    """
    if lease := await _last_lease(flow_run):
        lease.check_free()
    async with prefect_client() as client:
        flow_run = await client.read_flow_run(flow_run.id)
        running = flow_run.state_type and flow_run.state_type.value in UNDER_WAY
        since = flow_run.state.timestamp if flow_run.state else None
        if running and not (lease and has_begun(since, lease)) and (pid := _starting(flow_run)):
            raise RunBusy(
                f"The run {str(flow_run.id)[:8]} is starting, in process {pid}.",
                next_step="wait for it, or stop it first",
            )
        if running:
            await client.set_flow_run_state(flow_run.id, Crashed(message="Its process is gone."), force=True)
        by_worker = flow_run.deployment_id and flow_run.infrastructure_pid
        if not by_worker or await all_told(client, flow_run):
            await client.set_flow_run_state(flow_run.id, Scheduled(message="Resumed."), force=True)
        return await client.read_flow_run(flow_run.id)


async def _last_lease(flow_run: FlowRun) -> Lease | None:
    """Return the latest lease of a run; after a cancellation, once the process has given the run up or is late."""
    ends = flow_run.state_type in (StateType.CANCELLING, StateType.CANCELLED)
    deadline = monotonic() + (ENDING_SECONDS if ends else 0)
    where = place(str(flow_run.id), flow_run.parameters)
    while (lease := await observe_lease(*where)) and lease.alive and monotonic() < deadline:  # noqa: ASYNC110 - a lease tells nobody
        await asyncio.sleep(REPORT_POLL_SECONDS)
    return lease


async def _ended(flow_run: FlowRun, say: Callable[[str], object]) -> RunResult:
    told = missing = ""
    queued = monotonic()
    async with prefect_client() as client:
        while True:
            flow_run = await client.read_flow_run(flow_run.id)
            if flow_run.state_type is not StateType.SCHEDULED:
                queued = monotonic()
            elif not missing and flow_run.work_pool_name and monotonic() - queued > QUEUED_SECONDS:
                missing = await unattended(flow_run.work_pool_name)
                if missing:
                    say(missing)
            if not await _goes_on(flow_run):
                if flow_run.state_name and flow_run.state_name != told:
                    told = flow_run.state_name
                    waits = flow_run.state_type is StateType.PAUSED
                    say(f"waiting for your answer: fathom answer {str(flow_run.id)[:8]}" if waits else told)
                if flow_run.state_type in TERMINAL_STATES:
                    break
            await asyncio.sleep(POLL_SECONDS)
    if result := await result_of(flow_run):
        return result
    if flow_run.state_type is StateType.CANCELLED:
        raise RunCancelled("The run was cancelled.")
    message = (flow_run.state and flow_run.state.message) or "no result"
    raise FathomError(f"The run ended as {told}: {message}", next_step=f"see {address(flow_run)}")


async def _goes_on(flow_run: FlowRun) -> bool:
    """Whether a process works on a run that is said to have ended: a worker's late report on the attempt before.

    A process gives its run up before it says how the run has ended.
    """
    if flow_run.state_type not in (StateType.CRASHED, StateType.CANCELLED):
        return False
    lease = await read_lease(*place(str(flow_run.id), flow_run.parameters))
    return lease is not None and lease.alive


def _starting(flow_run: FlowRun) -> int:
    """Return the id of the process that was to execute a run if it is on this machine and alive, else 0."""
    host, _, pid = (flow_run.infrastructure_pid or "").rpartition(":")
    if host != socket.gethostname() or not pid.isdecimal() or int(pid) == os.getpid() or is_gone(host, int(pid)):
        return 0
    return int(pid)


ENDING_SECONDS = 10.0
"""Seconds in which the process of a run that was cancelled ends."""
REPORT_SECONDS = 5.0
"""Seconds in which a worker reports that a run's process has ended."""
HOOK_SECONDS = 60.0
"""Seconds in which it then reports so again."""
REPORT_POLL_SECONDS = 0.5
LAST = "Flow run infrastructure exited"
FIRST = "Process exited with status code"


async def all_told(client: PrefectClient, flow_run: FlowRun) -> bool:
    """Wait for a worker's remaining reports on a run's last attempt; return whether the run must still continue.

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
    """Return a worker's last report on the last attempt; None if there is none."""
    for state in sorted(states, key=lambda state: state.timestamp, reverse=True):
        if (state.message or "").startswith((FIRST, LAST)):
            return state
        if state.is_running() or state.is_pending():
            break
    return None


async def _changed(client: PrefectClient, flow_run: FlowRun, first: State[Any] | None) -> State[Any] | None:
    """Return the new state that a worker or a person gives a scheduled run; None when no worker will do so."""
    seconds = REPORT_SECONDS
    if first:
        seconds = HOOK_SECONDS - (datetime.now(UTC) - first.timestamp).total_seconds()
    deadline = monotonic() + seconds
    while monotonic() < deadline and not (first and await _done(client, flow_run, first.timestamp)):
        await asyncio.sleep(REPORT_POLL_SECONDS)
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
    """Wait until a worker has finished with a run's last attempt, at most until a minute after its cancellation."""
    states = await client.read_flow_run_states(flow_run.id)
    cancelled = max(state.timestamp for state in states)
    began = max((state.timestamp for state in states if state.is_running() or state.is_pending()), default=cancelled)
    while _seconds_since(cancelled) < HOOK_SECONDS and not await _done(client, flow_run, began):  # noqa: ASYNC110
        await asyncio.sleep(REPORT_POLL_SECONDS)


STARTING_SECONDS = 180.0
"""Seconds in which a run that a worker took must begin; the process worker imports everything first."""
RECORDED_SECONDS = 15.0
TAKEN_BY = "Taken by the worker "
"""Beginning of the message of a run's state while a worker of Fathom prepares it."""
_WORKER = "prefect.worker.name"  # label of a run: Prefect's worker that took it; its process id names no machine
MOST_DEATHS = 3
"""A run whose process died so often without a new result is not scheduled again: perhaps the run kills it."""
CRASHED_SECONDS = 3600.0
"""Maximum age of a crash after which a run is scheduled again."""


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
                limit=MOST_AT_ONCE,
                offset=offset,
            )
            found += page
            full, offset = len(page) == MOST_AT_ONCE, offset + MOST_AT_ONCE
    await recover_runs(found)


async def recover_runs(flow_runs: Sequence[FlowRun]) -> None:
    """Schedule runs again if their process is gone. A run that cannot be judged is left as it is."""
    workers: dict[str, list[str]] = {}
    async with prefect_client() as client:

        async def serving(pool: str) -> list[str]:
            if pool not in workers:
                workers[pool] = await living(client, pool)
            return workers[pool]

        for flow_run in flow_runs:
            try:
                if await _is_gone(client, flow_run, serving):
                    await _schedule(client, flow_run)
            except (FathomError, PrefectException, PrefectHTTPStatusError) as error:
                get_logger("fathom").warning("Run %s: %s", flow_run.id, error)


Serving = Callable[[str], Awaitable[list[str]]]
"""Returns the names of the workers that serve a work pool."""


def _in(*states: StateType) -> FlowRunFilterState:
    return FlowRunFilterState(type=FlowRunFilterStateType(any_=list(states)))


async def _is_gone(client: PrefectClient, flow_run: FlowRun, serving: Serving) -> bool:
    """Whether no process works on a run that has begun, or that should have begun by now."""
    if flow_run.state is None or flow_run.state_type not in _UNFINISHED:
        return False
    since = flow_run.state.timestamp
    lease = await observe_lease(*place(str(flow_run.id), flow_run.parameters))
    if flow_run.state_type is StateType.CRASHED:  # a run that never began would crash again
        return lease is not None and not lease.alive
    if lease and (lease.alive or has_begun(since, lease)):
        return not lease.alive
    seconds = _seconds_since(since)
    if await _taker_is_gone(client, flow_run, seconds, serving):
        return True
    # One whose lease is older than its state was answered while it waited: by then its process may have been gone. One
    # that runs without a lease here may have it in the store of another machine.
    return seconds > STARTING_SECONDS and (flow_run.state_type is StateType.PENDING or lease is not None)


async def _taker_is_gone(client: PrefectClient, flow_run: FlowRun, seconds: float, serving: Serving) -> bool:
    """Whether the worker that took a run has ended, judged that many seconds after the run's state was set."""
    states = await client.read_flow_run_states(flow_run.id)
    taken = max((state for state in states if state.is_pending()), key=lambda state: state.timestamp, default=None)
    said = (taken and taken.message) or ""
    # Until Prefect's worker has started a process, the worker of the last attempt is recorded.
    worker, patience = flow_run.labels.get(_WORKER), RECORDED_SECONDS
    if said.startswith(TAKEN_BY):
        worker = said.removeprefix(TAKEN_BY)
        process = process_of(worker)
        if process and process[0] == socket.gethostname():
            if is_gone(*process):
                return True
            patience = STARTING_SECONDS  # its heartbeats may be late, or another process has its id
    pool = flow_run.work_pool_name
    return seconds > patience and bool(worker and pool) and worker not in await serving(str(pool))


def _seconds_since(time: datetime) -> float:
    return (datetime.now(UTC) - time).total_seconds()


async def _schedule(client: PrefectClient, flow_run: FlowRun) -> None:
    """Schedule a run again, unless another worker was quicker or its process dies each time."""
    state = flow_run.state
    deaths = await died(*place(str(flow_run.id), flow_run.parameters))
    if deaths >= MOST_DEATHS:
        if flow_run.state_type is not StateType.CRASHED:
            said = f"Its process died {deaths} times without a new result, so it is not tried again. "
            said += "Find out why, then: Retry in the UI."
            await client.set_flow_run_state(flow_run.id, Crashed(message=said), force=True)
        return
    now = (await client.read_flow_run(flow_run.id)).state
    if state and now and now.id == state.id:
        said = "Its process is gone; scheduled again."
        await client.set_flow_run_state(flow_run.id, Scheduled(message=said), force=True)
        publish(Event("warning", f"run {str(flow_run.id)[:8]}: its process is gone; scheduled again"))


_UNFINISHED = (StateType.RUNNING, StateType.PENDING, StateType.CRASHED)

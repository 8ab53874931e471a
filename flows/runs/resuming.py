"""Unfinished runs: find one, on this machine or another, and finish it.

Imports Prefect; `fathom.flows.server.ensure_api` comes first.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Callable

from prefect.client.orchestration import get_client
from prefect.client.schemas.objects import FlowRun, StateType
from prefect.states import Crashed, Scheduled

from fathom.config.settings import ResearchSettings
from fathom.errors import FathomError, RunBusy, RunCancelled, RunNotFound
from fathom.flows.crash_reports import all_told
from fathom.flows.preflight import artifact_root
from fathom.flows.runs.finding import find_flow_run, several
from fathom.flows.runs.flow_runs import place
from fathom.flows.runs.local import address, create, execute, result_of
from fathom.flows.runs.states import UNDER_WAY, has_begun
from fathom.flows.runs.stored import find_all, locate
from fathom.models import RunResult
from fathom.storage.lease import is_gone, read_lease
from fathom.storage.store import ArtifactStore

POLL_SECONDS = 2.0


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
    root, name = locate(name.strip(), artifact_root(root))
    store = ArtifactStore(root)
    stored = await find_all(store, name)
    try:
        return await find_flow_run(name, stored)
    except RunNotFound:
        if len(stored) > 1:
            raise several(name, [run.run_id for run in stored]) from None
        if stored:
            return await _again(store, stored[0].run_key)
        raise


async def _again(store: ArtifactStore, key: str) -> FlowRun:
    """Create a run that continues from the results stored under a key."""
    lease = await read_lease(store, key)
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
    running = flow_run.state_type and flow_run.state_type.value in UNDER_WAY
    if lease := await read_lease(*place(str(flow_run.id), flow_run.parameters)):
        lease.check_free()
    since = flow_run.state.timestamp if flow_run.state else None
    if running and not (lease and has_begun(since, lease)) and (pid := _starting(flow_run.infrastructure_pid or "")):
        raise RunBusy(
            f"The run {str(flow_run.id)[:8]} is starting, in process {pid}.", next_step="wait for it, or stop it first"
        )
    async with get_client() as client:
        if running:
            await client.set_flow_run_state(flow_run.id, Crashed(message="Its process is gone."), force=True)
        by_worker = flow_run.deployment_id and flow_run.infrastructure_pid
        if not by_worker or await all_told(client, flow_run):
            await client.set_flow_run_state(flow_run.id, Scheduled(message="Resumed."), force=True)
        return await client.read_flow_run(flow_run.id)


async def _ended(flow_run: FlowRun, say: Callable[[str], object]) -> RunResult:
    told = ""
    async with get_client() as client:
        while True:
            flow_run = await client.read_flow_run(flow_run.id)
            if flow_run.state_name and flow_run.state_name != told:
                told = flow_run.state_name
                waits = flow_run.state_type is StateType.PAUSED
                say(f"waiting for your answer: fathom answer {str(flow_run.id)[:8]}" if waits else told)
            if flow_run.state_type in (StateType.COMPLETED, StateType.FAILED, StateType.CRASHED, StateType.CANCELLED):
                break
            await asyncio.sleep(POLL_SECONDS)
    if result := await result_of(flow_run):
        return result
    if flow_run.state_type is StateType.CANCELLED:
        raise RunCancelled("The run was cancelled.")
    message = (flow_run.state and flow_run.state.message) or "no result"
    raise FathomError(f"The run ended as {told}: {message}", next_step=f"see {address(flow_run)}")


def _starting(recorded: str) -> int:
    """Return the number of the process that was to run a run, when it is on this machine and alive, else 0."""
    host, _, pid = recorded.rpartition(":")
    if host != socket.gethostname() or not pid.isdecimal() or int(pid) == os.getpid() or is_gone(host, int(pid)):
        return 0
    return int(pid)

"""Runs in this process: start one, find one again, continue it under its own id.

Imports Prefect; `flows.server.ensure_api` comes first.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Callable
from uuid import UUID

from prefect.client.orchestration import get_client
from prefect.client.schemas.filters import FlowFilter, FlowFilterName
from prefect.client.schemas.objects import FlowRun, StateType
from prefect.client.schemas.sorting import FlowRunSort
from prefect.exceptions import ObjectNotFound
from prefect.flow_engine import run_flow
from prefect.states import Crashed, Pending, Scheduled
from prefect.utilities.urls import url_for

from fathom.errors import FathomError, InvalidInput, RunNotFound
from fathom.models import RunResult
from fathom.settings import ResearchSettings
from fathom.store import ArtifactStore, runs
from flows.deep_research import deep_research
from flows.preflight import artifact_root
from flows.runs import is_prefix, load, locate, matching

__all__ = ["address", "create", "execute", "find", "finish", "recent", "result_of", "run"]

POLL_SECONDS = 2.0
# A living worker reports a crashed process twice, the second time some two seconds later (Prefect 3.8.8). That report
# would undo a rescheduling made before it.
WORKER_REPORT_SECONDS = 5.0


async def run(query: str, settings: ResearchSettings, run_key: str | None = None) -> RunResult:
    """Research a question in this process and return the run's result.

    Raises:
        FathomError: the run failed; it can be resumed.
    """
    return await execute(await create(query, settings, run_key))


async def finish(
    flow_run: FlowRun, say: Callable[[str], object] = lambda line: None, *, wait: bool = True
) -> RunResult | None:
    """Finish a run that was interrupted, repeating none of its finished calls, and return its result.

    A completed run is only reported again. A run of a deployment is left to a worker: with `wait` until it has
    finished, its states told to `say`, otherwise None is returned.

    Raises:
        InvalidInput: the run is still running.
        FathomError: it failed again.
    """
    if result := await result_of(flow_run):
        return result
    flow_run = await _reschedule(flow_run)
    if flow_run.deployment_id is None:
        return await execute(flow_run)
    say("Scheduled again; a worker of its work pool takes it up.")
    return await _ended(flow_run, say) if wait else None


async def create(query: str, settings: ResearchSettings, run_key: str | None = None) -> FlowRun:
    """Create a run without starting it, so that its id and address are known from the beginning."""
    parameters = {"query": query, "settings": settings, "run_key": run_key}
    async with get_client() as client:
        return await client.create_flow_run(
            deep_research, parameters=deep_research.serialize_parameters(parameters), state=Pending()
        )


async def execute(flow_run: FlowRun) -> RunResult:
    """Run a flow run in this process, whose number is recorded so that nobody resumes it meanwhile."""
    async with get_client() as client:
        await client.update_flow_run(flow_run.id, infrastructure_pid=f"{socket.gethostname()}:{os.getpid()}")
    outcome = run_flow(deep_research, flow_run=flow_run, parameters=flow_run.parameters)
    assert asyncio.iscoroutine(outcome), "the flow is a coroutine function"
    result = await outcome
    assert isinstance(result, RunResult)
    return result


async def find(name: str) -> FlowRun:
    """Return the run that an id, the beginning of one, a flow run's name, a folder or a plan title stands for.

    Raises:
        RunNotFound: there is none.
        InvalidInput: there are several.
    """
    root, name = locate(name.strip(), artifact_root())
    stored = [str(manifest.get("run_id")) for manifest in matching(name, await runs(ArtifactStore(root)))]
    known = await recent(200)
    chosen = (
        [run for run in known if is_prefix(name, str(run.id))]
        or [run for run in known if run.name == name]
        or [run for run in known if str(run.id) in stored]
    )
    if len(chosen) > 1:
        ids = ", ".join(str(run.id) for run in chosen[:5])
        raise InvalidInput(f"{name!r} stands for {len(chosen)} runs.", next_step=f"choose one by its id: {ids}")
    if chosen:
        return chosen[0]
    async with get_client() as client:
        for run_id in [name, *stored]:  # older than the recent ones
            try:
                return await client.read_flow_run(UUID(run_id))
            except (ValueError, ObjectNotFound):
                continue
    raise RunNotFound(f"No run {name!r} is known.", next_step="fathom runs lists them")


async def recent(limit: int) -> list[FlowRun]:
    """Return the latest runs of the pipeline, the newest first."""
    async with get_client() as client:
        return await client.read_flow_runs(
            flow_filter=FlowFilter(name=FlowFilterName(any_=[deep_research.name])),
            sort=FlowRunSort.EXPECTED_START_TIME_DESC,
            limit=limit,
        )


async def _reschedule(flow_run: FlowRun) -> FlowRun:
    """Make a run that ended, or whose process is gone, ready to run again under its own id.

    Raises:
        InvalidInput: the process that runs it is alive.
    """
    running = flow_run.state_type in (StateType.RUNNING, StateType.PENDING)
    if running and (pid := _alive(flow_run.infrastructure_pid or "")):
        raise InvalidInput(
            f"The run {str(flow_run.id)[:8]} is still running, in process {pid}.",
            next_step="wait for it, or stop that process first",
        )
    async with get_client() as client:
        if running:
            await client.set_flow_run_state(flow_run.id, Crashed(message="Its process is gone."), force=True)
        if flow_run.deployment_id:
            await asyncio.sleep(WORKER_REPORT_SECONDS)
        await client.set_flow_run_state(flow_run.id, Scheduled(message="Resumed."), force=True)
        return await client.read_flow_run(flow_run.id)


async def _ended(flow_run: FlowRun, say: Callable[[str], object]) -> RunResult:
    """Wait until a worker has finished a run; its states are told to `say` as they change."""
    told = ""
    async with get_client() as client:
        while True:
            flow_run = await client.read_flow_run(flow_run.id)
            if flow_run.state_name and flow_run.state_name != told:
                told = flow_run.state_name
                say(told)
            if flow_run.state_type in (StateType.COMPLETED, StateType.FAILED, StateType.CRASHED, StateType.CANCELLED):
                break
            await asyncio.sleep(POLL_SECONDS)
    if result := await result_of(flow_run):
        return result
    message = (flow_run.state and flow_run.state.message) or "no result"
    raise FathomError(f"The run ended as {told}: {message}", next_step=f"see {address(flow_run)}")


async def result_of(flow_run: FlowRun) -> RunResult | None:
    """Return the result of a completed run from its artifacts; None when it has none there."""
    if flow_run.state_type is not StateType.COMPLETED:
        return None
    root = (flow_run.parameters.get("settings") or {}).get("artifacts")
    store = ArtifactStore(artifact_root(root))
    found = [manifest for manifest in await runs(store) if manifest.get("run_id") == str(flow_run.id)]
    return (await load(store, found[0])).result if found else None


def address(flow_run: FlowRun) -> str:
    """Return the address of the run's page in the Prefect UI."""
    return url_for("flow-run", obj_id=flow_run.id) or ""


def _alive(recorded: str) -> int:
    """Return the number of a run's process when it is on this machine and alive, else 0."""
    host, _, pid = recorded.rpartition(":")
    if host != socket.gethostname() or not pid.isdecimal() or int(pid) == os.getpid():
        return 0
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return 0
    except PermissionError:  # another user's
        pass
    return int(pid)

"""A run of a worker of Prefect is resumed: not before the worker has reported for the last time that it crashed."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest
from prefect.client.orchestration import PrefectClient, get_client
from prefect.client.schemas.objects import FlowRun
from prefect.events import emit_event
from prefect.states import Cancelled, Cancelling, Crashed, Failed, Running

from fathom.errors import FathomError
from fathom.flows.deep_research import deep_research
from fathom.flows.execution import resuming
from fathom.flows.execution.resuming import finish, reschedule
from fathom.flows.runs.states import place
from fathom.storage.lease import LeaseFile

FIRST = "Process exited with status code: -9. Process exited due to a SIGKILL signal."
LAST = "Flow run infrastructure exited with non-zero status code -9."

pytestmark = pytest.mark.usefixtures("prefect_server")


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker's first word is waited for briefly, its last one for ever."""
    monkeypatch.setattr(resuming, "REPORT_SECONDS", 0.1)
    monkeypatch.setattr(resuming, "POLL_SECONDS", 0.02)
    monkeypatch.setattr(resuming, "HOOK_SECONDS", 3_600)


async def begun(client: PrefectClient, artifacts: Path) -> FlowRun:
    """Return a run that a worker of another machine has begun."""
    flow_id = await client.create_flow(deep_research)
    deployment = await client.create_deployment(flow_id=flow_id, name="crashing")
    parameters = {"query": "How high is the tide?", "settings": {"artifacts": str(artifacts)}}
    run = await client.create_flow_run_from_deployment(deployment, parameters=parameters)
    await client.update_flow_run(run.id, infrastructure_pid="elsewhere:1")
    await client.set_flow_run_state(run.id, Running())
    return await client.read_flow_run(run.id)


async def put_off(client: PrefectClient, run: FlowRun) -> None:
    """Wait until the run is scheduled for later."""
    deadline = time.monotonic() + 60
    while not (state := (await client.read_flow_run(run.id)).state) or not state.is_scheduled():
        assert time.monotonic() < deadline, state
        await asyncio.sleep(0.02)


@pytest.mark.parametrize("seen", [True, False])
async def test_a_worker_that_reports_again_late_undoes_nothing(tmp_path: Path, seen: bool) -> None:
    """`seen`: it has reported for the first time when the run is resumed."""
    async with get_client() as client:
        run = await begun(client, tmp_path)
        if seen:
            await client.set_flow_run_state(run.id, Crashed(message=FIRST))
            run = await client.read_flow_run(run.id)
        else:
            resuming.REPORT_SECONDS = 60
        resumed = asyncio.create_task(reschedule(run))
        await put_off(client, run)
        if not seen:
            await client.set_flow_run_state(run.id, Crashed(message=FIRST))
            await put_off(client, run)
            resuming.REPORT_SECONDS = 0.1
        await asyncio.sleep(3 * resuming.REPORT_SECONDS)
        assert not resumed.done()
        await client.set_flow_run_state(run.id, Crashed(message=LAST))
        state = (await resumed).state
        assert state and state.message == "Resumed."
        assert state == (await client.read_flow_run(run.id)).state
        told = [found.message for found in await client.read_flow_run_states(run.id) if found.is_crashed()]
        assert told[-2:] == [FIRST, LAST], "the server took both"


async def test_a_report_that_the_server_dropped_is_not_waited_for(tmp_path: Path) -> None:
    async with get_client() as client:
        run = await begun(client, tmp_path)
        await client.set_flow_run_state(run.id, Crashed(message=FIRST))
        await client.set_flow_run_state(run.id, Crashed(message=LAST))
        run = await client.read_flow_run(run.id)
        assert run.state and run.state.message == FIRST
        say_done(run)
        state = (await reschedule(run)).state
        assert state and state.message == "Resumed."


def say_done(run: FlowRun) -> None:
    """Say what a worker says once it has finished with a run."""
    about = {"prefect.resource.id": f"prefect.flow-run.{run.id}", "prefect.resource.role": "flow-run"}
    emit_event("prefect.worker.executed-flow-run", {"prefect.resource.id": "prefect.worker.process.w"}, related=[about])


async def test_a_cancelled_run_is_not_resumed_before_its_worker_has_finished_with_it(tmp_path: Path) -> None:
    async with get_client() as client:
        run = await begun(client, tmp_path)
        await client.set_flow_run_state(run.id, Cancelling())
        await client.set_flow_run_state(run.id, Cancelled(message="Flow run was cancelled successfully."))
        resumed = asyncio.create_task(reschedule(await client.read_flow_run(run.id)))
        await asyncio.sleep(1)
        assert not resumed.done(), "the worker may still report how the process ended"
        say_done(run)
        state = (await resumed).state
        assert state and state.message == "Resumed."


async def test_a_cancelled_run_is_resumed_once_its_process_has_given_it_up(tmp_path: Path) -> None:
    async with get_client() as client:
        run = await begun(client, tmp_path)
        store, key = place(str(run.id), run.parameters)
        lease = await LeaseFile.take(store, str(run.id), key, {})
        await client.set_flow_run_state(run.id, Cancelled())
        say_done(run)
        resumed = asyncio.create_task(reschedule(await client.read_flow_run(run.id)))
        await asyncio.sleep(0.5)
        assert not resumed.done()
        await lease.release()
        state = (await resumed).state
        assert state and state.message == "Resumed."


async def test_a_late_report_on_the_attempt_before_does_not_end_the_present_one(tmp_path: Path) -> None:
    told: list[str] = []
    async with get_client() as client:
        run = await begun(client, tmp_path)
        finished = asyncio.create_task(finish(run, told.append))
        await put_off(client, run)
        store, key = place(str(run.id), run.parameters)
        await LeaseFile.take(store, str(run.id), key, {})
        for late, said in ((Crashed, LAST), (Cancelled, "Flow run was cancelled successfully.")):
            await client.set_flow_run_state(run.id, late(message=said), force=True)
            await asyncio.sleep(10 * resuming.POLL_SECONDS)
            assert not finished.done(), said
        await client.set_flow_run_state(run.id, Failed(message="The disk is full."), force=True)
        with pytest.raises(FathomError, match="The disk is full"):
            await finished
    assert told[-1] == "Failed"
    assert not {"Crashed", "Cancelled"} & {*told}


async def test_a_worker_that_is_gone_is_not_waited_for(tmp_path: Path) -> None:
    async with get_client() as client:
        state = (await reschedule(await begun(client, tmp_path))).state
        assert state and state.message == "Resumed."


async def test_a_run_that_is_cancelled_meanwhile_stays_so(tmp_path: Path) -> None:
    async with get_client() as client:
        run = await begun(client, tmp_path)
        await client.set_flow_run_state(run.id, Crashed(message=FIRST))
        resumed = asyncio.create_task(reschedule(await client.read_flow_run(run.id)))
        await put_off(client, run)
        await client.set_flow_run_state(run.id, Cancelled())
        state = (await resumed).state
        assert state and state.is_cancelled()

"""A worker that runs many runs in one process: what it takes, what it hands over, and what others find of it."""

from __future__ import annotations

import asyncio
import os
import random
import re
import signal
import socket
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import httpx
import pytest
from aiohttp import web
from prefect import flow
from prefect.client.orchestration import get_client
from prefect.client.schemas.objects import FlowRun, State, StateType
from prefect.settings import PREFECT_API_URL, PREFECT_CLIENT_MAX_RETRIES, temporary_settings
from prefect.states import Cancelling, Pending, Running, Scheduled

from fathom.config.settings import ResearchSettings
from fathom.flows.batch import research_batch
from fathom.flows.deep_research import deep_research
from fathom.flows.execution import deploying, resuming
from fathom.flows.execution.deploying import deploy, ensure_pool, living, unattended
from fathom.flows.execution.resuming import MOST_DEATHS, TAKEN_BY, recover
from fathom.flows.execution.worker import Worker, _in_turn, serving
from fathom.flows.runs.states import FLOW
from fathom.storage.lease import LeaseFile
from fathom.storage.store import ArtifactStore
from fathom.tasks.limits import ProviderLimit, SharedTurns, read_limits, remove_limits, set_limit
from fathom.telemetry.progress import listen
from tests.conftest import Forked, PrefectServer, base_env, quiet_port
from tests.forking import Fork
from tests.listening import in_front
from tests.processes import COMMIT_SECONDS, ended_process
from tests.stubs import Stubs

pytestmark = pytest.mark.usefixtures("prefect_server", "home")
QUERY = "What is known about the tides of far moons?"


@pytest.fixture
def providers(providers: Stubs) -> Stubs:
    """The providers, for a small run of nine requests."""
    providers.settings.steps, providers.settings.breadth = 2, 1
    return providers


@flow
def foreign() -> None:
    """A flow of somebody else."""


async def submitted(pool: str, store: Path, **settings: Any) -> FlowRun:
    """Schedule a run on a pool of its own."""
    chosen = {"model": "openai/stub", "profile": "quick", "fresh": True, "artifacts": str(store), **settings}
    deployment = await deploy(pool, deep_research, pool=pool)
    async with get_client() as client:
        return await client.create_flow_run_from_deployment(
            deployment, parameters={"query": QUERY, "settings": chosen}, state=Scheduled()
        )


async def until(run_id: UUID, reached: Callable[[FlowRun], bool]) -> FlowRun:
    """Wait until a run is in some state."""
    async with get_client() as client, asyncio.timeout(120):
        while not reached(found := await client.read_flow_run(run_id)):  # noqa: ASYNC110 - the server tells nobody
            await asyncio.sleep(0.1)
    return found


async def passed_on(request: web.Request, server: PrefectServer) -> web.Response:
    """Answer a request as the server does."""
    async with httpx.AsyncClient(base_url=server.api_url.removesuffix("/api"), timeout=60) as client:
        headers = {"Content-Type": "application/json"}
        answer = await client.request(request.method, request.path_qs, content=await request.read(), headers=headers)
    return web.Response(body=answer.content, status=answer.status_code, content_type="application/json")


async def test_who_waits_is_told_once_that_no_worker_is_there(
    providers: Stubs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fathom.flows.batch.LOOK_SECONDS", 0.0)
    monkeypatch.setattr(resuming, "QUEUED_SECONDS", 0.0)
    queued, answers = await submitted("nobody", tmp_path), ResearchSettings(artifacts=str(tmp_path))
    of_the_run, of_the_batch = list[str](), list[str]()
    waiting = asyncio.create_task(resuming.finish(queued, of_the_run.append))
    with listen(lambda event: of_the_batch.append(event.message)):
        batch: asyncio.Future[State[Any]] = asyncio.ensure_future(
            research_batch([QUERY], settings=answers, deployment=f"{FLOW}/nobody", return_state=True)
        )
        said = "No worker serves the pool nobody: start one with `fathom worker --pool nobody`."
        waits = f"1 question waiting. {said}"
        async with asyncio.timeout(120):
            while not (said in of_the_run and waits in of_the_batch):  # noqa: ASYNC110 - another task
                await asyncio.sleep(0.05)
        with serving(Worker("nobody")):
            result, state = await asyncio.gather(waiting, batch)
    assert result and state.is_completed()
    assert of_the_run.count(said) == 1
    assert [message for message in of_the_batch if "No worker serves" in message] == [waits]


async def test_a_run_that_cannot_be_finished_is_handed_over_and_repeats_nothing(
    providers: Stubs, tmp_path: Path
) -> None:
    run = await submitted("handed-over", tmp_path)
    providers.settings.answers = 6
    with serving(Worker("handed-over")):
        while len(providers.answered()) < 6:  # noqa: ASYNC110 - another thread
            await asyncio.sleep(0.01)
        await asyncio.sleep(COMMIT_SECONDS)
    providers.settings.answers = None
    before = [request.fingerprint for request in providers.requests if request.ended is not None]
    assert (await until(run.id, lambda found: True)).state_type is StateType.SCHEDULED
    with serving(Worker("handed-over")):
        ended = await until(run.id, lambda found: bool(found.state and found.state.is_final()))
    assert ended.state_type is StateType.COMPLETED
    after = [request.fingerprint for request in providers.requests if request.kind != "models"]
    assert [print for print in before if after.count(print) > 1] == []


async def test_a_cancelled_run_ends_and_the_others_go_on(providers: Stubs, tmp_path: Path) -> None:
    providers.settings.held = "llm"
    runs = [await submitted("cancelled", tmp_path, depth=depth) for depth in (1, 2)]
    with serving(Worker("cancelled")):
        for run in runs:
            await until(run.id, lambda found: found.state_type is StateType.RUNNING)
        async with get_client() as client:
            await client.set_flow_run_state(runs[0].id, Cancelling())
        first = await until(runs[0].id, lambda found: found.state_type is StateType.CANCELLED)
        providers.settings.held = ""
        second = await until(runs[1].id, lambda found: bool(found.state and found.state.is_final()))
    assert "fathom resume" in str(first.state and first.state.message)
    assert second.state_type is StateType.COMPLETED


async def test_a_flow_that_is_not_ours_is_left_to_prefect() -> None:
    await deploy("foreign", deep_research, pool="foreign")
    async with get_client() as client:
        other = await client.create_deployment(
            flow_id=await client.create_flow(foreign), name="other", work_pool_name="foreign"
        )
        run = await client.create_flow_run_from_deployment(other, state=Scheduled())
    said: list[str] = []
    with serving(Worker("foreign", say=said.append)):
        while not any("left to Prefect's worker" in line for line in said):  # noqa: ASYNC110 - another thread
            await asyncio.sleep(0.05)
    assert (await until(run.id, lambda found: True)).state_type is StateType.SCHEDULED


async def test_a_run_whose_process_died_is_scheduled_again_but_not_for_ever(tmp_path: Path) -> None:
    run = await submitted("died", tmp_path)
    store = ArtifactStore(str(tmp_path))
    for death in (1, MOST_DEATHS - 1, 1, *range(2, MOST_DEATHS + 1)):
        if death == 1:
            await store.write(f".results/{run.id}/search-{uuid4().hex[:24]}", b"a new result, and then a power cut")
        async with get_client() as client:
            await client.set_flow_run_state(run.id, Running(), force=True)
        await LeaseFile.take(store, str(run.id), str(run.id), {}, seconds=0.01)  # and never renewed
        await asyncio.sleep(0.05)
        async with get_client() as client:
            await recover(client, "died")
        scheduled = await until(run.id, lambda found: True)
        assert (scheduled.state_type is StateType.SCHEDULED) == (death < MOST_DEATHS)
    given_up = await until(run.id, lambda found: True)
    assert given_up.state_type is StateType.CRASHED
    assert "died 3 times without a new result" in str(given_up.state and given_up.state.message)


async def test_limits_are_set_read_and_removed() -> None:
    await set_limit(ProviderLimit(provider="openai", per_minute=500))
    await set_limit(ProviderLimit(provider="openai", at_once=20))
    assert await read_limits() == [ProviderLimit(provider="openai", per_minute=500, at_once=20)]
    assert await remove_limits("openai")
    assert await read_limits() == []
    assert not await remove_limits("openai")


async def test_a_limit_at_once_holds_over_all_processes() -> None:
    """Each of these asks the server as a process of its own would."""
    await set_limit(ProviderLimit(provider="openai", at_once=1))
    inside = most = 0

    async def ask(turns: SharedTurns) -> None:
        nonlocal inside, most
        async with turns("openai"):
            inside, most = inside + 1, max(most, inside + 1)
            await asyncio.sleep(0.05)
            inside -= 1

    try:
        limits = await read_limits()
        await asyncio.gather(*(ask(SharedTurns(limits)) for _ in range(2)))
    finally:
        await remove_limits("openai")
    assert most == 1


async def test_the_requests_of_a_run_take_their_turn(providers: Stubs, tmp_path: Path) -> None:
    providers.settings.held = "llm"  # until its turn was seen
    await set_limit(ProviderLimit(provider="openai", at_once=3))
    await submitted("limited", tmp_path, model_calls={"at_once": 1})
    taken = 0
    try:
        with serving(Worker("limited")):
            async with get_client() as client, asyncio.timeout(120):
                while not taken:
                    (limit,) = [one for one in await client.read_global_concurrency_limits() if "openai" in one.name]
                    taken = limit.active_slots
                    await asyncio.sleep(0.05)
            providers.settings.held = ""
    finally:
        await remove_limits("openai")
    assert taken == 1


def test_the_earliest_run_is_taken_first() -> None:
    now = datetime.now(UTC)
    runs = [FlowRun(flow_id=uuid4(), expected_start_time=now + timedelta(seconds=n)) for n in range(6)]
    assert _in_turn(random.sample(runs, 6), 1) == runs
    taken = _in_turn(random.sample(runs, 6), 2)
    assert [set(map(str, (a.id, b.id))) for a, b in zip(taken[::2], taken[1::2], strict=True)] == [
        set(map(str, (a.id, b.id))) for a, b in zip(runs[::2], runs[1::2], strict=True)
    ]


async def test_a_worker_is_on_the_pools_list_before_it_takes_a_run(prefect_server: PrefectServer) -> None:
    """Whether anybody serves a pool is read there, and a run may be over before a refused heartbeat is repeated."""
    asked: list[str] = []
    heartbeats: list[int] = []  # the status of each, up to the first question for runs; a busy server may refuse too

    async def handle(request: web.Request) -> web.Response:
        name = request.path.rpartition("/")[2]
        asked.append(name)
        if name == "heartbeat" and not heartbeats:
            heartbeats.append(503)
            return web.json_response({"exception_message": "busy"}, status=503, headers={"Retry-After": "0.2"})
        answer = await passed_on(request, prefect_server)
        if name == "heartbeat" and "get_scheduled_flow_runs" not in asked:
            heartbeats.append(answer.status)
        return answer

    with in_front(handle, "refusing") as url, temporary_settings(updates={PREFECT_API_URL: f"{url}/api"}):
        async with asyncio.timeout(60):
            await Worker("listed", idle_seconds=0).serve()
    assert heartbeats[0] == 503 and 200 <= heartbeats[-1] < 300, "the refused one is repeated until it is taken"


async def test_a_worker_that_is_not_needed_ends() -> None:
    said: list[str] = []
    async with asyncio.timeout(60):
        await Worker("idle", say=said.append, idle_seconds=0).serve()
    assert said[-1] == "There is nothing to do; the worker ends."


async def test_a_worker_of_prefect_serves_a_pool_while_it_asks_for_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its heartbeats come every 30 seconds, so that they tell late that it was killed."""
    await ensure_pool("polled")
    async with get_client() as client:
        await client.send_worker_heartbeat("polled", "ProcessWorker 1", 30)
        await client.send_worker_heartbeat("polled", f"fathom {socket.gethostname()} {ended_process()}", 15)
        assert await living(client, "polled") == []
        await client.get_scheduled_flow_runs_for_work_pool("polled")
        async with asyncio.timeout(60):  # the server notes it after its answer
            while await living(client, "polled") != ["ProcessWorker 1"]:  # noqa: ASYNC110 - and tells nobody
                await asyncio.sleep(0.05)
        monkeypatch.setattr(deploying, "SILENT_SECONDS", 0)
        assert re.search(r"the last one asked for runs \d+ s ago\): start one with", await unattended("polled"))
        assert await living(client, "deleted") == []
    assert (await unattended("deleted")).startswith("No worker serves the pool deleted: start one with")
    nobody = {PREFECT_API_URL: f"http://127.0.0.1:{quiet_port()}/api", PREFECT_CLIENT_MAX_RETRIES: 0}
    with temporary_settings(updates=nobody):
        assert await unattended("deleted") == "", "while Prefect does not answer, nobody knows"


async def test_a_run_that_a_killed_worker_had_only_taken_is_scheduled_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = await submitted("taken", tmp_path)
    for process, after in ((os.getpid(), StateType.PENDING), (ended_process(), StateType.SCHEDULED)):
        async with get_client() as client:
            taker = f"{TAKEN_BY}fathom {socket.gethostname()} {process}"
            await client.set_flow_run_state(run.id, Pending(message=taker), force=True)
            await recover(client, "taken")
        assert (await until(run.id, lambda found: True)).state_type is after
    monkeypatch.setattr(resuming, "STARTING_SECONDS", 0)
    async with get_client() as client:  # the id of a worker that serves no more may be another process's
        taken: State[Any] = Pending(message=f"{TAKEN_BY}fathom {socket.gethostname()} {os.getpid()}")
        await client.set_flow_run_state(run.id, taken, force=True)
        await client.set_flow_run_state(run.id, Running(), force=True)
        await recover(client, "taken")
        assert (await client.read_flow_run(run.id)).state_type is StateType.SCHEDULED


async def test_a_run_is_scheduled_again_whose_worker_was_killed_before_it_had_a_lease(
    providers: Stubs, prefect_server: PrefectServer, home: Path, forked: Forked, tmp_path: Path
) -> None:
    run = await submitted("unleased", tmp_path)
    started: list[Fork] = []

    async def handle(request: web.Request) -> web.Response:
        answer = await passed_on(request, prefect_server)
        if request.path.endswith("/set_state") and (await request.json())["state"]["type"] == "RUNNING":
            started[0].kill()  # it never learns that its run has begun
        return answer

    env = {**base_env(), **prefect_server.env, **providers.env, "HOME": str(home)}
    with in_front(handle, "killing") as url:
        started.append(forked({**env, "PREFECT_API_URL": f"{url}/api"}, "worker", "--pool", "unleased"))
        assert await asyncio.to_thread(started[0].wait, 120) == -signal.SIGKILL
    assert (await until(run.id, lambda found: True)).state_type is StateType.RUNNING
    async with get_client() as client:
        await recover(client, "unleased")
    assert (await until(run.id, lambda found: True)).state_type is StateType.SCHEDULED
    with serving(Worker("unleased")):
        ended = await until(run.id, lambda found: bool(found.state and found.state.is_final()))
    assert ended.state_type is StateType.COMPLETED


async def test_a_run_that_a_worker_of_another_machine_took_is_scheduled_again_once_that_serves_no_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, pool, worker = await submitted("far", tmp_path), "far", "fathom elsewhere 1"
    async with get_client() as client:
        await client.send_worker_heartbeat(pool, worker, 15)
        await client.set_flow_run_state(run.id, Pending(message=f"{TAKEN_BY}{worker}"), force=True)
        monkeypatch.setattr(resuming, "RECORDED_SECONDS", 0)
        for begun in (False, True):
            if begun:
                await client.set_flow_run_state(run.id, Running(), force=True)
            await recover(client, pool)
            assert (await client.read_flow_run(run.id)).state_type is not StateType.SCHEDULED, "it may be starting"
        monkeypatch.setattr(deploying, "LATE", 0)
        await recover(client, pool)
        assert (await client.read_flow_run(run.id)).state_type is StateType.SCHEDULED


async def test_a_run_is_scheduled_again_whose_worker_of_prefect_ended_before_it_began(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resuming, "RECORDED_SECONDS", 0)
    run, pool, worker = await submitted("started", tmp_path), "started", "ProcessWorker 1"
    async with get_client() as client:
        await client.set_flow_run_state(run.id, Pending(), force=True)
        await client.update_flow_run_labels(run.id, {"prefect.worker.name": worker})
        await client.send_worker_heartbeat(pool, worker, 30)
        await client.send_worker_heartbeat(pool, f"fathom {socket.gethostname()} {os.getpid()}", 15)
        await client.get_scheduled_flow_runs_for_work_pool(pool)
        async with asyncio.timeout(60):  # the server notes it after its answer
            while worker not in await living(client, pool):  # noqa: ASYNC110 - and tells nobody
                await asyncio.sleep(0.05)
        await recover(client, pool)
        assert (await client.read_flow_run(run.id)).state_type is StateType.PENDING, "it may be starting"
        await client.set_flow_run_state(run.id, Running(), force=True)
        await recover(client, pool)
        assert (await client.read_flow_run(run.id)).state_type is StateType.RUNNING, "its lease may be in another store"
        monkeypatch.setattr(deploying, "SILENT_SECONDS", 0)
        await recover(client, pool)
        assert (await client.read_flow_run(run.id)).state_type is StateType.SCHEDULED, "killed before it had a lease"
        await client.set_flow_run_state(run.id, Pending(), force=True)
        await recover(client, pool)
        assert (await client.read_flow_run(run.id)).state_type is StateType.SCHEDULED

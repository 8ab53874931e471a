"""A worker that runs many runs in one process: each is a task of its event loop.

Prefect's process worker starts a process for each run, which takes seconds of processor time before the run begins.
Runs here share what a process loads once. A run that leaks or blocks can disturb the others, so the process worker
remains the choice where isolation matters more; both can serve the same work pool.

Imports Prefect: call `fathom.flows.server.ensure_api` first.
"""

from __future__ import annotations

import asyncio
import math
import os
import random
import signal
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from importlib import import_module
from textwrap import shorten
from threading import Thread
from typing import Any
from uuid import UUID

import httpx
from prefect import Flow, flow_engine
from prefect.client.orchestration import PrefectClient
from prefect.client.schemas.objects import FlowRun, State
from prefect.client.schemas.responses import SetStateStatus, WorkerFlowRunResponse
from prefect.context import AsyncClientContext
from prefect.exceptions import Pause, PrefectException
from prefect.flow_engine import run_flow
from prefect.states import Cancelled, Pending, Scheduled

from fathom.errors import FathomError, RunTerminated, ServerLost
from fathom.flows.execution.deploying import POOL, ensure_pool, own_name
from fathom.flows.execution.resuming import TAKEN_BY, recover
from fathom.flows.runs.states import BATCH, FLOW
from fathom.tasks.supervision import stop
from fathom.text.plain import counted

POLL_SECONDS = 2.0
HEARTBEAT_SECONDS = 15.0
RECOVER_SECONDS = 8.0  # between two looks, so that a killed worker's run goes on within 15 seconds
DRAIN_SECONDS = 60.0
STOP_SECONDS = 15.0  # seconds in which a stopped run must have stored its results
AHEAD = 4  # runs requested, as a multiple of the runs that fit: other workers request the same ones

_FLOWS: Mapping[str, tuple[str, str]] = {
    FLOW: ("fathom.flows.deep_research", "deep_research"),
    BATCH: ("fathom.flows.batch", "research_batch"),
    "housekeeping": ("fathom.flows.housekeeping", "housekeeping"),
}
"""Modules and functions of the flows that this worker runs, by the flow's name. Flows that wait for other runs take no
slot: a batch in the last slot would wait for ever."""
_WAITING = {BATCH}


class Worker:
    """Takes scheduled runs from a work pool and runs up to `limit` of them at once.

    `say` is called with one line for each event. It ends by itself after `idle_seconds` without a run. Every worker
    looks for runs of the pool whose process is gone and schedules them again, so a worker that is killed loses no run
    while another one lives.
    """

    def __init__(
        self,
        pool: str = POOL,
        limit: int = 8,
        name: str = "",
        say: Callable[[str], object] = lambda line: None,
        drain_seconds: float = DRAIN_SECONDS,
        *,
        idle_seconds: float = math.inf,
    ) -> None:
        self.name = name or own_name()
        self._pool = pool
        self._limit = limit
        self._say = say
        self._drain_seconds = drain_seconds
        self._idle_seconds = idle_seconds
        self._busy = time.monotonic()  # when it last had something to do
        self._running: dict[asyncio.Task[None], FlowRun] = {}
        self._names: dict[UUID, str] = {}  # names of flows, by id
        self._foreign = set[str]()  # names of flows that this worker does not run
        self._loop: asyncio.AbstractEventLoop | None = None
        self._wake = asyncio.Event()
        self._listed = self._stopping = self._hurried = False

    def stop(self) -> None:
        """Take no more runs and end when those in progress have ended; a second call does not wait for them.

        From any thread, and from a signal handler.
        """
        self._hurried = self._stopping
        self._stopping = True
        self.wake()

    def wake(self) -> None:
        """Look for runs now. From any thread, as the next one."""
        if self._loop:
            self._loop.call_soon_threadsafe(self._wake.set)

    def release(self) -> None:
        """End as soon as there is nothing to do."""
        self._idle_seconds = 0
        self.wake()

    async def serve(self) -> None:
        """Work until `stop` is called. What is then still running after `drain_seconds` is left to other workers."""
        self._loop = asyncio.get_running_loop()
        # All runs share one client: making one reads all certificates, 30 ms of processor time each.
        async with AsyncClientContext.get_or_create() as context:
            client = context.client
            await ensure_pool(self._pool)
            beside = [
                asyncio.create_task(self._repeat(HEARTBEAT_SECONDS, lambda: self._report(client))),
                asyncio.create_task(self._repeat(RECOVER_SECONDS, lambda: recover(client, self._pool))),
            ]
            try:
                await self._repeat(POLL_SECONDS, lambda: self._poll(client), self._woken)
                await self._drain(client)
            finally:
                for task in beside:
                    task.cancel()
                await asyncio.gather(*beside, return_exceptions=True)
                await self._leave(client)

    async def _woken(self, seconds: float) -> None:
        """Wait until a run has ended or the worker is to stop, at most for some seconds."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._wake.wait()
        self._wake.clear()

    async def _repeat(
        self,
        seconds: float,
        work: Callable[[], Awaitable[object]],
        wait: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        """Repeat an action until the worker stops; an outage of the server is waited for."""
        failing = False
        while wait is asyncio.sleep or not self._stopping:  # background activities end with the runs
            try:
                await work()
                failing = False
            except (httpx.HTTPError, PrefectException, FathomError) as error:
                if not failing:
                    self._say(f"The Prefect server or the store fails ({type(error).__name__}); trying again.")
                failing = True
            await wait(seconds * random.uniform(0.8, 1.2))  # noqa: S311 - so that workers do not ask together

    async def _report(self, client: PrefectClient) -> None:
        await client.send_worker_heartbeat(self._pool, self.name, HEARTBEAT_SECONDS)
        if not self._listed:
            self._listed = True
            self._wake.set()

    async def _leave(self, client: PrefectClient) -> None:
        """Take this worker off the pool's list, where it would count as running for a while."""
        with suppress(httpx.HTTPError):
            path = {"work_pool_name": self._pool, "name": self.name}
            await client.request("DELETE", "/work_pools/{work_pool_name}/workers/{name}", path_params=path)

    def say_end(self, error: BaseException | None) -> None:
        """Say why it ended, if it did so by itself."""
        if error:
            self._say(f"The worker has ended: {error!r}")

    def _free(self) -> int:
        taken = sum(self._names.get(run.flow_id) not in _WAITING for run in self._running.values())
        return max(0, self._limit - taken)

    async def _poll(self, client: PrefectClient) -> None:
        """Start scheduled runs while there are free slots, once this worker is on the pool's list."""
        if not self._listed or not (free := self._free()):
            return
        answer = await client.request(
            "POST",
            "/work_pools/{name}/get_scheduled_flow_runs",
            path_params={"name": self._pool},
            json={"scheduled_before": datetime.now(UTC).isoformat(), "limit": AHEAD * free},
        )
        found = [row.flow_run for row in WorkerFlowRunResponse.model_validate_list(answer.json())]
        self._end_if_idle(bool(found))
        for flow_run in _in_turn(found, free):
            if self._stopping or not self._free():
                return
            name = await self._name(client, flow_run.flow_id)
            if name in _FLOWS:
                if await _taken(client, flow_run, self.name):
                    self._start(flow_run, name)
            elif name not in self._foreign:
                self._foreign.add(name)
                self._say(f"Runs of the flow {name!r} are left to Prefect's worker: prefect worker start --pool ...")

    def _end_if_idle(self, found: bool) -> None:
        if found or self._running:
            self._busy = time.monotonic()
        elif time.monotonic() - self._busy >= self._idle_seconds:
            self._say("There is nothing to do; the worker ends.")
            self.stop()

    async def _name(self, client: PrefectClient, flow_id: UUID) -> str:
        if flow_id not in self._names:
            self._names[flow_id] = (await client.read_flow(flow_id)).name
        return self._names[flow_id]

    def _start(self, flow_run: FlowRun, name: str) -> None:
        self._say(f"{str(flow_run.id)[:8]} started: {shorten(str(flow_run.parameters.get('query') or name), 80)}")
        module, function = _FLOWS[name]
        task = asyncio.create_task(_run(getattr(import_module(module), function), flow_run))
        self._running[task] = flow_run
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        flow_run = self._running.pop(task)
        error = None if task.cancelled() else task.exception()
        how = f"stopped ({error})" if error else "ended"  # with an error, the run is taken up again, here or elsewhere
        self._say(f"{str(flow_run.id)[:8]} {how}; {len(self._running)} running")
        self._wake.set()

    async def _drain(self, client: PrefectClient) -> None:
        """Wait for the runs in progress, then hand over the unfinished ones."""
        if self._running and self._drain_seconds:
            self._say(f"Waiting up to {self._drain_seconds:g} s for {counted(len(self._running), 'run')}.")
        stopped = RunTerminated("Its worker was stopped.")
        # These wait for questions that this worker may no longer take.
        stop([run.id for run in self._running.values() if self._names.get(run.flow_id) in _WAITING], stopped)
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._drain_seconds
        while self._running and not self._hurried and (left := deadline - loop.time()) > 0:
            await self._woken(left)
        if not (left_over := dict(self._running)):
            return
        self._say(f"Handing over {counted(len(left_over), 'run')} to other workers.")
        stop([run.id for run in left_over.values()], stopped)
        await asyncio.wait(left_over, timeout=STOP_SECONDS)
        for flow_run in left_over.values():
            with suppress(httpx.HTTPError, PrefectException):  # else a worker finds it in time
                state = (await client.read_flow_run(flow_run.id)).state
                if state and state.is_cancelling():
                    await client.set_flow_run_state(flow_run.id, Cancelled(message=str(stopped)), force=True)
                elif state is None or not (state.is_completed() or state.is_failed() or state.is_cancelled()):
                    said = "Handed over, because its worker was stopped."
                    await client.set_flow_run_state(flow_run.id, Scheduled(message=said), force=True)


def _in_turn(found: Sequence[FlowRun], free: int) -> list[FlowRun]:
    """Return runs in the order in which to take them: the earliest first.

    All of the first `free` are begun now, so their order does not matter. Workers that try them in different orders
    compete less with each other; the same holds for the runs that follow.
    """
    queue = sorted(found, key=lambda run: (run.expected_start_time or run.created or datetime.now(UTC), run.id))
    blocks = (queue[start : start + free] for start in range(0, len(queue), free))
    return [run for block in blocks for run in random.sample(block, len(block))]


@contextmanager
def serving(worker: Worker) -> Iterator[None]:
    """Serve in a thread while the block runs. Unfinished runs are then scheduled again at once.

    A server that is lost is not waited for, though the worker's requests wait for it as long as the process lives.
    """
    thread = ThreadPoolExecutor(1, "worker")
    served = thread.submit(asyncio.run, worker.serve())
    served.add_done_callback(lambda ended: worker.say_end(ended.exception()))
    is_lost = False
    try:
        yield
    except ServerLost:
        is_lost = True
        raise
    finally:
        worker.stop()
        worker.stop()
        thread.shutdown(wait=not is_lost)
        if not is_lost:
            served.result()


@contextmanager
def _unobserved(*_: object, **_options: object) -> Iterator[None]:
    """Stand in for Prefect's watch for a run to be suspended from outside, which Fathom's runs never are.

    It opens a WebSocket and starts a thread for each run of a deployment, and the server compares each of its events
    with every one of them: the cost grows with the square of the runs (Prefect 3.8.8).
    """
    yield


flow_engine.observe_flow_run_suspension = _unobserved  # type: ignore[attr-defined]


async def _taken(client: PrefectClient, flow_run: FlowRun, worker: str) -> bool:
    """Whether a worker was the first to take a scheduled run."""
    taken: State[Any] = Pending(message=f"{TAKEN_BY}{worker}")
    return (await client.set_flow_run_state(flow_run.id, taken)).status is SetStateStatus.ACCEPT


async def _run(flow: Flow[..., Any], flow_run: FlowRun) -> None:
    outcome = run_flow(flow, flow_run=flow_run, parameters=flow_run.parameters, return_type="state")
    assert asyncio.iscoroutine(outcome), "the flow is a coroutine function"
    with suppress(Pause):  # it waits for a person, and is scheduled again once it is answered
        await outcome


def serve_until_stopped(worker: Worker) -> None:
    """Serve until SIGTERM or Ctrl-C. The runs are in a thread: in the main one, Prefect would handle these signals."""
    with ThreadPoolExecutor(1, "worker") as thread:
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: worker.stop())
        thread.submit(asyncio.run, worker.serve()).result()


def attach(worker: Worker, source: int) -> None:
    """Let a server wake the worker by a line in a pipe. Once that is closed, the worker ends when it has nothing to do.

    So a server that is killed leaves no worker for ever, and the runs in progress go on.
    """

    def read() -> None:
        while os.read(source, 4096):  # not a file object, whose lock a daemon thread would hold at exit
            worker.wake()
        worker.release()

    Thread(target=read, name="server", daemon=True).start()

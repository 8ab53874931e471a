"""Supervises a run from inside its own process, and asks Prefect whether it was cancelled.

It keeps the run's lease, and stops the work when the run is cancelled, another process takes it over, the server is
gone, or the process is terminated. Requests in flight are dropped; everything that has finished is stored already.

One thread asks the Prefect server whether runs of this process were cancelled, in one request for all. If each run
asked by itself, three times a second, each request would cost the server 11 ms.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from threading import Lock, Thread, current_thread, main_thread
from time import monotonic
from typing import Any, Self
from uuid import UUID

import httpx
from prefect.client.orchestration import PrefectClient
from prefect.client.schemas.filters import FlowRunFilter, FlowRunFilterId, FlowRunFilterState, FlowRunFilterStateType
from prefect.client.schemas.objects import State, StateType
from prefect.context import FlowRunContext
from prefect.exceptions import Abort, Pause, TerminationSignal
from prefect.logging import get_logger
from prefect.states import Cancelled, Crashed
from pydantic_core import to_jsonable_python

from fathom.config.secrets import Scrubber, each_text
from fathom.errors import FathomError, RunBusy, RunCancelled, RunTerminated, ServerLost, StoreError
from fathom.storage.lease import LEASE_SECONDS, LeaseFile, LeaseKeeper, read_lease
from fathom.storage.store import ArtifactStore
from fathom.tasks.clients import new_client
from fathom.tasks.durable import current_run_key, run_logger

CANCELLED = "Cancelled; finished work is kept."
"""Beginning of a cancelled run's message, until a worker replaces it by its own."""
ENDING_SECONDS = 5.0


class Supervision:
    """An async context manager around the body of a flow, on the store of the run's results.

    Inside it, the store changes nothing while it is not certain that this process owns the run. The lease records the
    run's parameters, without the secrets that the scrubber knows. It outlives the process for up to `lease_seconds`.
    `how` tells a person how to continue a stopped run.

    A run that must stop ends with Prefect's `Abort`, caused by the FathomError that says why. Prefect then proposes no
    state, so that the one set here remains.

    Raises:
        Abort: caused by RunBusy when another process works on the run, or on one with the same run key.
        StoreError: the lease cannot be kept.
    """

    def __init__(
        self, store: ArtifactStore, scrubber: Scrubber, lease_seconds: float = LEASE_SECONDS, how: str = ""
    ) -> None:
        context = FlowRunContext.get()
        assert context and context.flow_run, "runs inside a flow"
        self._guarded = store
        self._store = ArtifactStore(store.address())  # without patience: a lease is renewed again soon
        self._lease_seconds = lease_seconds
        self._how = how
        self._flow_run = context.flow_run
        self._parameters = each_text(to_jsonable_python(context.parameters or {}), scrubber.message)
        body = asyncio.current_task()
        assert body is not None
        self._body = body
        self._loop = asyncio.get_running_loop()
        self._watch = ExitStack()
        self._reason: FathomError | None = None
        self._sigterm: Any = None

    async def __aenter__(self) -> Self:
        run_id, run_key = str(self._flow_run.id), current_run_key()
        try:
            lease = await LeaseFile.take(self._store, run_id, run_key, self._parameters, self._lease_seconds)
        except RunBusy as busy:
            holder = await read_lease(self._store, run_key)
            if not holder or holder.run_id != run_id:  # else only the other process may set the states of this run
                await _settled(self._set(Cancelled(message=str(busy))))
            raise Abort(str(busy)) from busy
        self._lease = LeaseKeeper(lease, self._stop_soon)
        self._guarded.guard(self._lease)
        self._watch.enter_context(watched(self._flow_run.id, self._stop_soon))
        # Prefect's handler raises inside whatever runs at that moment. It stays in a worker's process, which the worker
        # ends in its own way.
        if self._flow_run.deployment_id is None and current_thread() is main_thread():
            self._sigterm = signal.getsignal(signal.SIGTERM)
            self._loop.add_signal_handler(
                signal.SIGTERM, self._stop, RunTerminated("The run's process was terminated.")
            )
        return self

    async def __aexit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        if self._sigterm is not None:
            self._loop.remove_signal_handler(signal.SIGTERM)
            signal.signal(signal.SIGTERM, self._sigterm)
        self._watch.close()
        if self._reason is None and isinstance(error, (asyncio.CancelledError, TerminationSignal)):
            await _settled(self._ask_why())  # the worker may have been quicker than the watch
        elif self._reason is None and isinstance(error, RunBusy):
            self._reason = error  # the log told it before the lease
        await _settled(self._guarded.close_journal())
        await _settled(self._lease.release(waiting=isinstance(error, Pause)))
        if self._reason is not None:
            await self._end(self._reason)

    def _stop_soon(self, reason: FathomError) -> None:
        """Stop the run from another thread, as soon as the run's event loop is free."""
        self._loop.call_soon_threadsafe(self._stop, reason)

    def _stop(self, reason: FathomError) -> None:
        """Cancel the body of the flow, once."""
        if self._reason is None:
            self._reason = reason
            self._body.cancel()

    async def _end(self, reason: FathomError) -> None:
        """Leave the flow, in the state that the reason asks for."""
        how = f"To continue: {self._how or f'fathom resume {str(self._flow_run.id)[:8]}'}"
        run_logger().warning("%s %s", reason.message, how)
        if isinstance(reason, RunCancelled):
            await _settled(self._set(Cancelled(message=f"{CANCELLED} {how}")))
        elif isinstance(reason, RunTerminated):
            await _settled(self._set(Crashed(message=f"{reason.message} {how}")))
        while self._body.cancelling():
            self._body.uncancel()
        if isinstance(reason, StoreError):
            raise reason
        raise Abort(str(reason)) from reason

    async def _set(self, state: State[Any]) -> None:
        async with new_client(ANSWER_SECONDS) as client:
            await client.set_flow_run_state(self._flow_run.id, state, force=True)

    async def _ask_why(self) -> None:
        async with new_client(ANSWER_SECONDS) as client:
            if await cancelled(client, [self._flow_run.id]):
                self._reason = RunCancelled("The run was cancelled.")


async def _settled(work: Coroutine[Any, Any, None] | asyncio.Task[None]) -> None:
    """Wait briefly for work whose failure changes nothing, even while this task is being cancelled."""
    task = asyncio.ensure_future(work)
    deadline = monotonic() + ENDING_SECONDS
    while not task.done() and monotonic() < deadline:
        with suppress(asyncio.CancelledError):
            await asyncio.wait({task}, timeout=deadline - monotonic())
    if not task.done():
        task.cancel()
    elif not task.cancelled() and (error := task.exception()):
        get_logger("fathom").warning("%s", error)


FIRST_SECONDS, LONGEST_SECONDS = 0.3, 2.0
"""Between two requests: shortly after a run has begun, and after a while or with many runs."""
MANY = 8
SERVER_SECONDS = 15.0  # a server that restarts within this time counts as never gone
ANSWER_SECONDS = 5.0

Stop = Callable[[FathomError], object]


@contextmanager
def watched(run_id: UUID, stop: Stop) -> Iterator[None]:
    """Call `stop` from another thread when the run is cancelled (RunCancelled) or the server is gone (ServerLost)."""
    _watch.add(run_id, stop)
    try:
        yield
    finally:
        _watch.remove(run_id)


def stop(run_ids: Sequence[UUID], reason: FathomError) -> None:
    """Stop runs of this process."""
    for run_id in run_ids:
        _watch.stop(run_id, reason)


async def cancelled(client: PrefectClient, run_ids: Sequence[UUID]) -> list[UUID]:
    """Return the runs among these, at most 200, that are cancelled or being cancelled.

    Raises:
        TimeoutError: the server is too slow.
    """
    wanted = FlowRunFilterStateType(any_=[StateType.CANCELLING, StateType.CANCELLED])
    which = FlowRunFilter(id=FlowRunFilterId(any_=list(run_ids)), state=FlowRunFilterState(type=wanted))
    async with asyncio.timeout(ANSWER_SECONDS):
        return [run.id for run in await client.read_flow_runs(flow_run_filter=which)]


class _Watch:
    """The runs of this process, and the thread that asks about them while there are any."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._runs: dict[UUID, Stop] = {}
        self._pause = FIRST_SECONDS
        self._running = False

    def add(self, run_id: UUID, stop: Stop) -> None:
        with self._lock:
            self._runs[run_id] = stop
            self._pause = FIRST_SECONDS
            if not self._running:
                self._running = True
                Thread(target=lambda: asyncio.run(self._ask()), name="watch", daemon=True).start()

    def remove(self, run_id: UUID) -> None:
        with self._lock:
            del self._runs[run_id]

    def _goes_on(self) -> bool:
        with self._lock:
            self._running = bool(self._runs)
            return self._running

    async def _ask(self) -> None:
        answered = monotonic()
        while self._goes_on():
            await asyncio.sleep(FIRST_SECONDS)  # a run that has just begun needs the processor, and no answer
            try:
                async with new_client(ANSWER_SECONDS) as client:
                    while run_ids := list(self._runs):
                        for run_id in await cancelled(client, run_ids):
                            self.stop(run_id, RunCancelled("The run was cancelled."))
                        answered = monotonic()
                        await asyncio.sleep(self._next_pause())
            except httpx.ConnectError:  # nothing listens there; slow answers are not the same
                if monotonic() - answered > SERVER_SECONDS:
                    for run_id in list(self._runs):
                        self.stop(
                            run_id, ServerLost("The Prefect server no longer answers.", next_step="start it again")
                        )
            except (httpx.HTTPError, TimeoutError, ValueError):
                pass  # slow, broken, or a proxy's page in its place: asked again

    def stop(self, run_id: UUID, reason: FathomError) -> None:
        with self._lock:  # so that it has not ended meanwhile, and its event loop with it
            if stop := self._runs.get(run_id):
                stop(reason)

    def _next_pause(self) -> float:
        with self._lock:
            self._pause = LONGEST_SECONDS if len(self._runs) > MANY else min(1.5 * self._pause, LONGEST_SECONDS)
            return self._pause


_watch = _Watch()

"""Asks the Prefect server whether runs of this process were cancelled: one thread and one request for all of them.

A run that asked by itself, three times a second, would cost the server 11 ms each time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from threading import Lock, Thread
from time import monotonic
from uuid import UUID

import httpx
from prefect.client.orchestration import PrefectClient, get_client
from prefect.client.schemas.filters import (
    FlowRunFilter,
    FlowRunFilterId,
    FlowRunFilterState,
    FlowRunFilterStateType,
)
from prefect.client.schemas.objects import StateType
from prefect.exceptions import PrefectHTTPStatusError

from fathom.errors import FathomError, RunCancelled, ServerLost

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
    """Return the runs among these that are cancelled or are to be, 200 of them at most.

    Raises:
        TimeoutError: the server is too slow.
    """
    wanted = FlowRunFilterStateType(any_=[StateType.CANCELLING, StateType.CANCELLED])
    which = FlowRunFilter(id=FlowRunFilterId(any_=list(run_ids)), state=FlowRunFilterState(type=wanted))
    async with asyncio.timeout(ANSWER_SECONDS):
        return [run.id for run in await client.read_flow_runs(flow_run_filter=which)]


def new_client() -> PrefectClient:
    """Return a new client: the run's own waits a minute for a server that it reached before and that is gone."""
    return get_client(httpx_settings={"timeout": ANSWER_SECONDS})


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
            try:
                async with new_client() as client:
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
            except (httpx.HTTPError, PrefectHTTPStatusError, TimeoutError, ValueError):
                pass  # slow, broken, or a proxy's page in its place: asked again
            await asyncio.sleep(FIRST_SECONDS)

    def stop(self, run_id: UUID, reason: FathomError) -> None:
        with self._lock:  # so that it has not ended meanwhile, and its event loop with it
            if stop := self._runs.get(run_id):
                stop(reason)

    def _next_pause(self) -> float:
        with self._lock:
            self._pause = LONGEST_SECONDS if len(self._runs) > MANY else min(1.5 * self._pause, LONGEST_SECONDS)
            return self._pause


_watch = _Watch()

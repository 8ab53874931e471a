"""The events of runs for all who listen: each run is read once, however many listeners it has.

A listener is a place in the list of a run's events. So a slow one holds no other and takes no memory, and one that
comes back, to this server or another, goes on after the last event that it had.
"""

from __future__ import annotations

import asyncio
from bisect import bisect_right
from collections.abc import AsyncGenerator, Coroutine
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import httpx
from prefect.client.orchestration import get_client
from prefect.client.schemas.filters import FlowRunFilter, FlowRunFilterId
from prefect.client.schemas.objects import FlowRun, StateType
from prefect.exceptions import PrefectException, PrefectHTTPStatusError

from fathom.client.shapes import RunEvent
from fathom.errors import StoreError
from fathom.flows.runs.finding import KnownRun, find_run
from fathom.flows.runs.flow_runs import row_of
from fathom.flows.runs.states import state_of
from fathom.models import RunState
from fathom.serve.runs.log_reader import LogReader
from fathom.serve.runs.telling import told_end, told_now
from fathom.storage.store import ArtifactStore
from fathom.telemetry.progress import read_live

LOCAL_SECONDS, REMOTE_SECONDS = 0.25, 1.0
"""How often a log is read: on a local disk, and where each reading is a request."""
STATE_SECONDS = 1.0
"""How often Prefect is asked for the states of all runs that are followed, in one request."""
LINGER_SECONDS = 10.0
"""How long a run is still read after its last listener has gone: most come back."""
CRASHED_SECONDS = 300.0
"""How long listeners wait for somebody to take up a run whose process is gone."""
_IDS = 200  # the most that Prefect returns at once


class Feeds:
    """The runs that somebody follows on this server."""

    def __init__(self, store: ArtifactStore) -> None:
        self._store = store
        self._open: dict[str, _Feed] = {}
        self._states: asyncio.Task[None] | None = None
        self._tasks = set[asyncio.Task[None]]()
        self.closing = asyncio.Event()

    async def follow(
        self, found: KnownRun, after: int = 0, pulse: float | None = None
    ) -> AsyncGenerator[RunEvent | None, None]:
        """Yield the events of a run after the one of an id, as they come; the last one says how the run ended.

        An id that no event has yet is waited for. With `pulse`, None is yielded after so many seconds without an event.
        It ends without a last event when the server does: whoever listens comes back.
        """
        feed = self._open.get(found.run_id)
        if feed is None or feed.done:
            feed = self._open[found.run_id] = _Feed(self._store, found)
            self._start(feed.read())
        if self._states is None or self._states.done():
            self._states = self._start(self._ask())
        feed.listeners += 1
        try:
            shown = 0
            while not self.closing.is_set():
                news = feed.news
                while (event := feed.next(after)) and not self.closing.is_set():
                    after = event.id
                    yield event
                if feed.end:
                    yield feed.end
                    return
                if feed.now and feed.shown > shown:
                    shown = feed.shown
                    yield feed.now
                elif feed.done:
                    return
                elif not await _within(pulse, news):
                    yield None
        finally:
            feed.listeners -= 1
            feed.left = asyncio.get_running_loop().time()

    def close(self) -> None:
        """Let every stream end."""
        self.closing.set()
        for feed in self._open.values():
            feed.tell()

    async def aclose(self) -> None:
        """End the reading."""
        self.close()
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _start(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _ask(self) -> None:
        """Ask for the states of all runs that are followed, while there are any."""
        while self._open:
            with suppress(httpx.HTTPError, PrefectException, PrefectHTTPStatusError):  # asked again
                await self._ask_once([feed for feed in self._open.values() if feed.flow_run])
            self._open = {run_id: feed for run_id, feed in self._open.items() if not feed.done}
            await asyncio.sleep(STATE_SECONDS)

    async def _ask_once(self, feeds: list[_Feed]) -> None:
        for start in range(0, len(feeds), _IDS):
            asked = feeds[start : start + _IDS]
            which = FlowRunFilter(id=FlowRunFilterId(any_=[UUID(feed.run_id) for feed in asked]))
            async with get_client() as client:
                known = {str(row.id): row for row in await client.read_flow_runs(flow_run_filter=which, limit=_IDS)}
            for feed in asked:
                feed.flow_run = known.get(feed.run_id)  # None: somebody has deleted it


class _Feed:
    """One run: the events that were read so far, what it does now, and its end."""

    def __init__(self, store: ArtifactStore, found: KnownRun) -> None:
        self.run_id = found.run_id
        self.flow_run = found.flow_run
        self.events: list[RunEvent] = []
        self.now: RunEvent | None = None
        self.shown = 0  # how often `now` has changed
        self.end: RunEvent | None = None
        self.done = False  # it is not read any more
        self.listeners = 0
        self.left = 0.0  # when the last one has gone
        self.news = asyncio.Event()  # set, and replaced, when there is any
        self._store = store
        self._run_key = found.stored.run_key
        self._log = LogReader(store, found.run_id, found.stored.run_key, found.folder.folder if found.folder else "")
        self._seconds = LOCAL_SECONDS if store.local else REMOTE_SECONDS

    def next(self, after: int) -> RunEvent | None:
        """Return the first event after the one of an id, if it is there already."""
        place = bisect_right(self.events, after, key=lambda event: event.id)
        return self.events[place] if place < len(self.events) else None

    def tell(self) -> None:
        """Wake who listens."""
        self.news.set()
        self.news = asyncio.Event()

    async def read(self) -> None:
        """Read until the run has ended or nobody has listened for a while."""
        loop = asyncio.get_running_loop()
        looked = 0.0
        try:
            while not self.end and (self.listeners or loop.time() - self.left < LINGER_SECONDS):
                with suppress(StoreError, httpx.HTTPError):  # read again
                    await self._read_log()
                    if loop.time() - looked >= STATE_SECONDS:
                        looked = loop.time()
                        await self._read_now()
                if not self.end:
                    await asyncio.sleep(self._seconds)
        finally:
            self.done = True
            self.tell()

    async def _read_log(self) -> None:
        flow_run = self.flow_run  # before the log: what is known to be over writes no more lines
        if fresh := await self._log.new():
            self.events += fresh
            self.tell()
        if _is_over(flow_run):
            self.end = await self._ending(flow_run)
            self.tell()

    async def _read_now(self) -> None:
        if self.end or not self.flow_run or self.flow_run.state_type is not StateType.RUNNING:
            return
        live = await read_live(self._store, self._run_key)
        if live and (now := told_now(live)) != self.now:
            self.now, self.shown = now, self.shown + 1
            self.tell()

    async def _ending(self, flow_run: FlowRun | None) -> RunEvent:
        state = flow_run.state if flow_run else None
        at = state.timestamp if state else datetime.now(UTC)
        reached = await self._state(flow_run)
        said = (state.message or "").partition("\n")[0] if state else ""
        said = said.replace(f"{self._store.address()}/", "")  # not everybody may know where the store is
        return told_end(reached, at.isoformat(timespec="milliseconds"), said)

    async def _state(self, flow_run: FlowRun | None) -> RunState:
        if flow_run:
            return await state_of(row_of(flow_run))
        found = await find_run(self._store, self.run_id)
        return await state_of(None, found.stored, await found.stored.files.result())


def _is_over(flow_run: FlowRun | None) -> bool:
    """Whether nothing more is to be expected. A run whose process is gone is taken up by a worker, if there is one."""
    if flow_run is None or flow_run.state is None:
        return True
    if flow_run.state_type is StateType.CRASHED:
        return (datetime.now(UTC) - flow_run.state.timestamp).total_seconds() > CRASHED_SECONDS
    return flow_run.state.is_final()


async def _within(seconds: float | None, news: asyncio.Event) -> bool:
    """Wait for news; whether there was any in time."""
    try:
        async with asyncio.timeout(seconds):
            await news.wait()
    except TimeoutError:
        return False
    return True

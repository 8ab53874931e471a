"""The events of runs for all who listen: each log is read once, however many listeners it has.

A listener is a place in the list of a run's events. So a slow one holds no other and takes no memory, and one that
comes back, to this server or another, goes on after the last event that it had.

The audit log of a run, read as it grows. Its lines are first in a file beside the run's results, and from the plan on
in the run's folder, in the same order (`fathom.telemetry.audit_log`). So an event has one number, whichever file it
is read from, however often the run was resumed, and whichever server reads it. Only whole lines count: what a killed
process has not finished is cut off by the next one.
"""

from __future__ import annotations

import asyncio
from bisect import bisect_right
from collections.abc import AsyncGenerator, Coroutine, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, Self

import httpx
from prefect.client.schemas.objects import FlowRun, StateType
from prefect.exceptions import PrefectException
from pydantic import ValidationError

from fathom.client.shapes import EventType, RunEvent
from fathom.errors import StoreError
from fathom.flows.runs.finding import KnownRun, find_run
from fathom.flows.runs.states import row_of, state_of
from fathom.models import RunState, StepStatus
from fathom.service.limits import flow_runs
from fathom.storage.lease import RESULTS
from fathom.storage.store import ArtifactStore
from fathom.tasks.durable import recorded_folders
from fathom.tasks.sentences import sentence_of
from fathom.telemetry.audit_events import AuditEvent, AuditType, ChainedEvent
from fathom.telemetry.audit_log import AUDIT_FILE, PENDING_FILE
from fathom.telemetry.progress import Live, read_live

LOCAL_SECONDS, REMOTE_SECONDS = 0.25, 1.0
"""How often a log is read: on a local disk, and where each reading is a request."""
STATE_SECONDS = 1.0
"""How often Prefect is asked for the states of all runs that are followed, in one request."""
LINGER_SECONDS = 10.0
"""How long a run is still read after its last listener has gone: most come back."""
CRASHED_SECONDS = 300.0
"""How long listeners wait for somebody to take up a run whose process is gone."""


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
        """Yield the events of a run that follow an event, by its id, as they come; the last one says how the run ended.

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
            with suppress(httpx.HTTPError, PrefectException):  # asked again
                asked = [feed for feed in self._open.values() if feed.flow_run]
                known = await flow_runs([feed.run_id for feed in asked])
                for feed in asked:
                    feed.flow_run = known[feed.run_id]  # None: somebody has deleted it
            self._open = {run_id: feed for run_id, feed in self._open.items() if not feed.done}
            await asyncio.sleep(STATE_SECONDS)


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
        self._log = LogReader.of(store, found)
        self._seconds = LOCAL_SECONDS if store.local else REMOTE_SECONDS

    def next(self, after: int) -> RunEvent | None:
        """Return the event that follows an event, by its id, if it is there already."""
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


_SESSIONS = (AuditType.session_created, AuditType.session_resumed)


class _File:
    """A log file, read from where the last call stopped. The log of runs that share a key has the lines of all."""

    def __init__(self, store: ArtifactStore, path: str, kind: type[AuditEvent], run_id: str, run_key: str) -> None:
        self._store = store
        self._path = path
        self._kind = kind
        self._run_id = run_id
        self._own = run_id == run_key
        self._offset = 0
        self.lines = 0  # of the run, so far

    async def new(self) -> list[RunEvent]:
        """Return the events of the run that were added since; none when there is no file."""
        try:
            data = await self._store.read_from(self._path, self._offset)
        except FileNotFoundError:
            return []
        whole = data[: data.rfind(b"\n") + 1]
        self._offset += len(whole)
        found: list[RunEvent] = []
        for line in whole.split(b"\n")[:-1]:
            event: AuditEvent | None = None
            with suppress(ValidationError):  # damaged, or of a later version: it keeps its number
                event = self._kind.model_validate_json(line)
            if event and event.type in _SESSIONS and "run_id" in event.details:
                self._own = event.details["run_id"] == self._run_id
            if self._own:
                self.lines += 1
                found += [told(self.lines, event)] if event else []
        return found


class LogReader:
    """The events of one run, each returned once. `folder`: its folder, if that is known."""

    def __init__(self, store: ArtifactStore, run_id: str, run_key: str, folder: str = "") -> None:
        self._store = store
        self._run_id = run_id
        self._run_key = run_key
        self._folder = folder
        self._file = self._open(f"{RESULTS}/{run_key}/{PENDING_FILE}", AuditEvent)
        self._settled = False
        self._told = 0

    @classmethod
    def of(cls, store: ArtifactStore, found: KnownRun) -> Self:
        """Return the reader of a known run."""
        return cls(store, found.run_id, found.stored.run_key, found.folder.folder if found.folder else "")

    async def new(self) -> list[RunEvent]:
        """Return the events that were added since the last call.

        Raises:
            StoreError: the store fails; the next call goes on.
        """
        found: list[RunEvent] = []
        if not self._settled:
            found += await self._in_folder()
        if not found:
            found += await self._file.new()
        fresh = [event for event in found if event.id > self._told]
        self._told = max(self._told, self._file.lines)
        return fresh

    async def _in_folder(self) -> list[RunEvent]:
        """Go on in the run's folder if its log has reached that, and return what is there."""
        for folder in [self._folder] if self._folder else await recorded_folders(self._store, self._run_key):
            file = self._open(f"{folder}/{AUDIT_FILE}", ChainedEvent)
            found = await file.new()
            if found:
                self._file, self._settled = file, True
                return found
        return []

    def _open(self, path: str, kind: type[AuditEvent]) -> _File:
        return _File(self._store, path, kind, self._run_id, self._run_key)


_TYPES: Mapping[AuditType, EventType] = {
    AuditType.step_started: EventType.step_started,
    AuditType.step_completed: EventType.step_completed,
    AuditType.tool_called: EventType.tool_called,
    AuditType.source_added: EventType.source_found,
    AuditType.note_created: EventType.note_created,
    AuditType.reflection_completed: EventType.reflection,
    AuditType.section_written: EventType.section,
    AuditType.budget_warning: EventType.warning,
    AuditType.error_occurred: EventType.error,
}
"""All others are changes of state."""
_TITLED: Mapping[AuditType, str] = {
    AuditType.plan_generated: "plan_title",
    AuditType.step_started: "title",
    AuditType.step_completed: "title",
    AuditType.source_added: "title",
    AuditType.note_created: "title",
    AuditType.section_written: "heading",
    AuditType.synthesis_completed: "title",
}
"""Under which name `data` has what such an event is called."""


def told(number: int, event: AuditEvent) -> RunEvent:
    """Return an event of the audit log as the API has it; `number` is the number of its line."""
    kind = _TYPES.get(event.type, EventType.state_change)
    data = dict(event.details)
    if kind is EventType.state_change:
        data["state"] = event.type.value
    if name := _TITLED.get(event.type):
        data[name] = event.action
    if event.type is AuditType.step_started:
        data["status"] = StepStatus.in_progress.value
    elif event.type is AuditType.step_completed and "status" not in data:  # logs of earlier versions
        data["status"] = (StepStatus.done if data.get("notes") else StepStatus.blocked).value
    elif event.type is AuditType.plan_generated:
        titles = data.get("steps")
        titles = titles if isinstance(titles, list) else []
        ids = data.pop("step_ids", None)
        ids = ids if isinstance(ids, list) else list(range(1, len(titles) + 1))
        data["steps"] = [{"step_id": step_id, "title": title} for step_id, title in zip(ids, titles, strict=False)]
    return RunEvent(id=number, type=kind, at=event.at, message=_sentence(event), data=data)


def _sentence(event: AuditEvent) -> str:
    try:
        return sentence_of(event)
    except (KeyError, TypeError, AttributeError):  # a line of another version, with other details
        return event.action


def told_now(live: Live) -> RunEvent:
    """Return what a run does right now."""
    return RunEvent(
        id=0, type=EventType.now, at=live.at, message=live.phase, data=live.model_dump(mode="json", exclude={"at"})
    )


def told_end(state: RunState, at: str, message: str) -> RunEvent:
    """Return the last event of a stream: how the run ended, or that its process is gone and nobody goes on."""
    data = {"state": state.value, "ended": state.ended}
    return RunEvent(id=0, type=EventType.state_change, at=at, message=message or state.value, data=dict(data))

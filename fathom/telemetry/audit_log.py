"""Writing the audit log of a run: each event is on the disk before anything that follows from it leaves the process."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from pydantic_core import to_jsonable_python

from fathom.clock import now
from fathom.errors import StoreError
from fathom.models import AuditHead
from fathom.storage.store import ArtifactStore
from fathom.telemetry.audit_events import (
    BEGINNING,
    Actor,
    AuditEvent,
    AuditType,
    ChainedEvent,
    chained,
    events_in,
    written,
)
from fathom.telemetry.progress import Event, publish
from fathom.telemetry.tracing import new_id

AUDIT_FILE = "audit.jsonl"
PENDING_FILE = "audit-pending.jsonl"  # file beside the results, while the run has no folder

COMPUTED = frozenset(
    {
        AuditType.plan_generated,
        AuditType.step_started,
        AuditType.step_completed,
        AuditType.note_created,
        AuditType.reflection_completed,
        AuditType.section_written,
        AuditType.synthesis_completed,
    }
)
"""Events that follow from recorded calls. A resumed run computes them again, which is not a new event."""

_parent: ContextVar[str | None] = ContextVar("fathom_audit_parent", default=None)


class AuditLog:
    """Writes the log of one run. Events may be recorded by many tasks at once, in one event loop.

    Until the run has a folder, its events are in the `pending` file, not chained. `log` is called with each event once
    it is written, by the task that recorded it.
    """

    def __init__(self, store: ArtifactStore, pending: str, log: Callable[[AuditEvent], None] | None = None) -> None:
        self._store = store
        self._path = pending
        self._log = log
        self._chained = False
        self._waiting: dict[str, AuditEvent] = {}  # by id
        self._head: AuditHead | None = None  # None: the end of the file is unknown
        self._bytes = 0  # of the file up to there
        self._own: set[str] = set()  # ids of the events of this attempt
        self._earlier: dict[str, str] = {}  # ids of computed events of earlier attempts, by content
        self._writing = asyncio.Lock()

    @property
    def head(self) -> AuditHead | None:
        """The number of events and the hash of the last one; None before the first in the run's folder."""
        return self._head if self._chained else None

    async def exists(self) -> bool:
        """Whether an earlier process has recorded anything."""
        return await self._store.exists(self._path)

    async def record(self, type: AuditType, actor: Actor, action: str, event_id: str = "", /, **details: object) -> str:
        """Write an event and return its id, a new one by default; it is certain once the store has committed it.

        Events that wait at the same time are written together. Events that an earlier attempt has computed already are
        not written again.

        Raises:
            StoreError: it could not be written; the next event tries to write it too.
            RunBusy: another process has written to the log; no further event is written.
        """
        event = _event(type, actor, action, details, event_id)
        if type in COMPUTED and (known := self._earlier.get(_what(event))):
            return known
        self._waiting[event.id] = event
        self._own.add(event.id)
        await _whatever_happens(self._write(event))
        if self._log:
            self._log(event)
        publish(Event("recorded", recorded=event))
        return event.id

    @contextmanager
    def under(self, event_id: str) -> Iterator[None]:
        """Make an event the parent of events recorded inside the block, by this task and the tasks it starts."""
        token = _parent.set(event_id)
        try:
            yield
        finally:
            _parent.reset(token)

    async def settle(self, folder: str) -> None:
        """Continue in the run's folder, and write the earlier events that it lacks there."""
        await _whatever_happens(self._settle(folder))

    async def _settle(self, folder: str) -> None:
        async with self._writing:
            pending = events_in(await self._read(), AuditEvent)
            self._waiting = {**{event.id: event for event in pending}, **self._waiting}
            self._path, self._chained, self._head = f"{folder}/{AUDIT_FILE}", True, None
            await self._write_waiting()

    async def _write(self, event: AuditEvent) -> None:
        async with self._writing:
            if event.id in self._waiting:  # else it was written together with an earlier event
                await self._write_waiting()

    async def _write_waiting(self) -> None:
        if self._head is None:
            self._head = await self._open()
        head = self._head
        events = list(self._waiting.values())
        lines: Sequence[AuditEvent] = events
        if self._chained:
            lines, head = chained(events, head)
        if lines:
            data = written(lines)
            try:
                await self._store.append(self._path, data, self._bytes)
            except StoreError:
                self._head = None  # some of it may have been written
                raise
            self._bytes += len(data)
        self._head = head
        for event in events:
            del self._waiting[event.id]

    async def _open(self) -> AuditHead:
        """Find the end of the file. An incomplete last line of a killed process is cut off, and that is recorded."""
        data = await self._read()
        whole = data[: data.rfind(b"\n") + 1]
        found = events_in(whole, ChainedEvent if self._chained else AuditEvent)
        for event in found:
            self._waiting.pop(event.id, None)
            if event.type in COMPUTED and event.id not in self._own:
                self._earlier[_what(event)] = event.id
        if len(whole) < len(data):
            await self._store.write(self._path, whole)
            said = "cut off a line that a killed process had not finished"
            details = {"file": self._path, "bytes": len(data) - len(whole)}
            cut = _event(AuditType.error_occurred, "system", said, details)
            # After what earlier attempts left to be written: listeners have counted those lines already.
            earlier = {event.id: event for event in self._waiting.values() if event.id not in self._own}
            self._waiting = {**earlier, cut.id: cut, **self._waiting}
        self._bytes = len(whole)
        last = found[-1] if found else None
        return AuditHead(events=last.seq, hash=last.hash) if isinstance(last, ChainedEvent) else BEGINNING

    async def _read(self) -> bytes:
        try:
            return await self._store.read(self._path)
        except FileNotFoundError:
            return b""


async def _whatever_happens(work: Coroutine[Any, Any, None]) -> None:
    """Wait for work that continues even when the caller is cancelled, so that no line is left half written."""
    await asyncio.shield(asyncio.create_task(work))


def _event(type: AuditType, actor: Actor, action: str, details: Mapping[str, object], event_id: str = "") -> AuditEvent:
    return AuditEvent(
        id=event_id or new_id(),
        at=now().isoformat(timespec="milliseconds"),
        type=type,
        actor=actor,
        action=" ".join(action.split()),
        details=to_jsonable_python(dict(details), inf_nan_mode="null"),
        parent=_parent.get(),
    )


def _what(event: AuditEvent) -> str:
    """Return the content of an event, without its time and attempt."""
    return json.dumps([event.type, event.actor, event.action, event.details], sort_keys=True)

"""The current activity of a run: for its screen, and in a file beside its results for other processes.

The file is a view and never an input to the run. The audit log holds past events; this file holds the activity in
progress.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import count
from time import monotonic
from typing import Literal

from pydantic import ValidationError

from fathom.config.groups import Budget
from fathom.errors import RunBusy, StoreError
from fathom.models import Account, Draft, Model, Plan, Stage, StepStatus
from fathom.models.run import BatchRow
from fathom.storage.atomic import Flush
from fathom.storage.lease import RESULTS
from fathom.storage.store import ArtifactStore, json_bytes
from fathom.telemetry.audit_events import AuditEvent, AuditType

Kind = Literal[
    "phase",
    "begin",
    "end",
    "plan",
    "step",
    "tool",
    "spent",
    "speed",
    "reflection",
    "remark",
    "warning",
    "draft",
    "recorded",
    "batch",
]


@dataclass(frozen=True)
class Event:
    """Something that happens in a run: a phase begins, which lasts until the next one, or something has finished.

    A phase and what is being done in it are named from their beginning: nothing takes long without a name.
    """

    kind: Kind
    message: str = ""  # one line for a person
    stage: Stage | None = None  # of `phase`, where another stage of the run begins with it
    key: int = 0  # of `begin` and `end`: one of several concurrent activities
    plan: Plan | None = None  # of `plan`: with the steps' statuses
    step_id: str = ""  # of `step`, as is the next one
    status: StepStatus | None = None
    sources: tuple[str, ...] = ()  # of `tool`: the ids of the sources that it returned
    spent: Account | None = None  # of `spent`: by all attempts of the run, as are the next two
    caps: Budget | None = None
    priced: bool = True  # whether the cost of the last call is known
    draft: Draft | None = None  # of `draft`: replaces the earlier draft at its position
    recorded: AuditEvent | None = None  # of `recorded`: what was added to the run's audit log
    rows: tuple[BatchRow, ...] = ()  # of `batch`: the questions that changed; the first time, all of them


_listener: ContextVar[Callable[[Event], None] | None] = ContextVar("fathom_listener", default=None)
_keys = count(1)


@contextmanager
def listen(callback: Callable[[Event], None]) -> Iterator[None]:
    """Send the events of runs started inside the block to a callback, in the thread of the run.

    Who listens already goes on hearing them.
    """
    outer = _listener.get()

    def both(event: Event) -> None:
        if outer:
            outer(event)
        callback(event)

    token = _listener.set(both)
    try:
        yield
    finally:
        _listener.reset(token)


def publish(event: Event) -> None:
    """Send an event to the listener, if there is one."""
    if callback := _listener.get():
        callback(event)


def phase(message: str, stage: Stage | None = None) -> None:
    """Publish the phase that the run enters, and its stage if another one begins."""
    publish(Event("phase", message, stage=stage))


@contextmanager
def doing(message: str) -> Iterator[None]:
    """Publish an activity for as long as the block runs; several may run at once."""
    key = next(_keys)
    publish(Event("begin", message, key=key))
    try:
        yield
    finally:
        publish(Event("end", message, key=key))


WRITE_SECONDS = 1.0
REMOTE_DRAFT_SECONDS = 3.0  # seconds between two writes for a growing draft alone, if each is a request
ENDING_SECONDS = 3.0  # seconds for which the end of a run waits for the file
MOST_NOW = 20  # activities that are named
MOST_CHARACTERS = 300
MOST_DRAFT = 8_000  # characters of a section that is being written


class Live(Model):
    """The current activity of a run. `at` is an ISO 8601 time in UTC."""

    at: str
    stage: Stage = Stage.planning
    phase: str = ""
    now: list[str] = []  # texts being read and models being asked; several at once
    drafts: list[Draft] = []  # of the sections that are being written
    spent: Account | None = None  # by all attempts of the run
    caps: dict[str, float] = {}  # max_usd, max_tokens, max_calls, max_seconds; only the ones that are set


async def read_live(store: ArtifactStore, run_key: str) -> Live | None:
    """Return the current activity of a run, or the last one if its process was killed; None if there is none.

    Raises:
        StoreError: the store fails.
    """
    try:
        return Live.model_validate_json(await store.read(live_path(run_key)))
    except (FileNotFoundError, ValidationError):
        return None


def live_path(run_key: str) -> str:
    """Return the path of a run's file."""
    return f"{RESULTS}/{run_key}/now.json"


@asynccontextmanager
async def showing(store: ArtifactStore, run_key: str) -> AsyncIterator[None]:
    """Keep the file of a run while the block runs.

    It is written at most once a second, and only when something has changed. If a write is a request, a growing draft
    causes one at most every `REMOTE_DRAFT_SECONDS`. Failures of the store are ignored: the next change is written
    again. A finished run has no such file; for a stopped run, the file keeps the usage.
    """
    view = _View(store.impatient(), live_path(run_key))  # the next change comes soon
    writing = asyncio.create_task(view.keep())
    try:
        with listen(view.note):
            yield
        last = view.remove
    except BaseException:
        last = view.leave
        raise
    finally:
        view.ended.set()  # not cancelled: a write in progress would come after the last one
        await asyncio.wait([writing], timeout=ENDING_SECONDS)
        with suppress(TimeoutError):
            async with asyncio.timeout(ENDING_SECONDS):
                await last()


class _View:
    """The contents of the file. Events may come from any thread: each replaces a value, and none is taken apart."""

    def __init__(self, store: ArtifactStore, path: str) -> None:
        self._store = store
        self._path = path
        self.ended = asyncio.Event()
        self._phase, self._stage = "starting", Stage.planning
        self._doing: dict[int, str] = {}
        self._drafts: dict[int, Draft] = {}  # by position
        self._spent: Account | None = None
        self._caps: dict[str, float] = {}
        self._changed = self._grown = False

    def note(self, event: Event) -> None:
        """Take note of an event of the run."""
        if event.kind == "phase":
            self._phase, self._stage = event.message[:MOST_CHARACTERS], event.stage or self._stage
            self._drafts.clear()
        elif event.kind == "begin":
            self._doing[event.key] = event.message[:MOST_CHARACTERS]
        elif event.kind == "end":
            self._doing.pop(event.key, None)
        elif event.draft:
            cut = event.draft.text[:MOST_DRAFT]
            self._drafts[event.draft.position] = event.draft.model_copy(update={"text": cut})
            self._grown = True
            return
        elif event.recorded and event.recorded.type is AuditType.section_written:
            self._drafts.clear()
        elif event.kind == "spent" and event.spent and event.caps:
            self._spent = event.spent
            caps = event.caps.model_dump(exclude_none=True, exclude={"research_share"})
            self._caps = {name: float(cap) for name, cap in caps.items()}
        else:
            return
        self._changed = True

    async def keep(self) -> None:
        """Write what changes, until the run has ended."""
        last, patience = 0.0, 0.0 if self._store.local else REMOTE_DRAFT_SECONDS
        while not self.ended.is_set():
            if self._changed or (self._grown and monotonic() - last >= patience):
                self._changed, self._grown, last = False, False, monotonic()
                now = list(dict.fromkeys(list(self._doing.values())))[:MOST_NOW]
                await self._write(self._phase, now, list(self._drafts.values()))
            with suppress(TimeoutError):
                async with asyncio.timeout(WRITE_SECONDS):
                    await self.ended.wait()

    async def leave(self) -> None:
        """Leave only what was spent."""
        await self._write("", [], [])

    async def remove(self) -> None:
        """Remove the file."""
        with suppress(StoreError, RunBusy):
            await self._store.remove(self._path)

    async def _write(self, phase: str, now: list[str], drafts: list[Draft]) -> None:
        at = datetime.now(UTC).isoformat(timespec="seconds")
        live = Live(at=at, stage=self._stage, phase=phase, now=now, drafts=drafts, spent=self._spent, caps=self._caps)
        with suppress(StoreError, RunBusy):
            await self._store.write(self._path, json_bytes(live), flush=Flush.nothing)

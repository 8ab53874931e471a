"""The runs and conversations that a caller may see: runs that Prefect knows, and runs that only the store knows.

What does not change is kept: which run a folder is, and how a run ended that Prefect calls ended. Of the lines of the
page that is returned, what files say is read again once they have changed. A server that starts knows nothing and reads
all of it once.
"""

from __future__ import annotations

import asyncio
import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import cached_property, partial
from itertools import islice
from time import monotonic
from typing import Any, NamedTuple, TypeVar

import httpx
from prefect.client.schemas.filters import (
    FlowFilter,
    FlowFilterName,
    FlowRunFilter,
    FlowRunFilterExpectedStartTime,
    FlowRunFilterState,
    FlowRunFilterStateType,
)
from prefect.client.schemas.objects import TERMINAL_STATES, FlowRun, StateType
from prefect.client.schemas.sorting import FlowRunSort

from fathom.client.shapes import RunList, RunSummary
from fathom.config.environment import artifact_root
from fathom.errors import InvalidInput, StoreError
from fathom.flows.runs.finding import KnownRun
from fathom.flows.runs.index import RunIndex
from fathom.flows.runs.states import FLOW, row_of, state_of
from fathom.flows.server import MOST_AT_ONCE
from fathom.models import Ending, RunResult, RunState
from fathom.service.caller import Caller
from fathom.service.run_view import summary_of
from fathom.storage.atomic import READERS
from fathom.storage.ownership import Owners, Ownership, path_of
from fathom.storage.runs import StoredRun
from fathom.storage.store import RESULT, ArtifactStore
from fathom.tasks.clients import prefect_client

MOST = 200  # runs of a page
_MOST_KEPT = 2_000  # files
OWNER_SECONDS = 20.0  # for which another's run that was not shared is taken for one that still is not
_WORD = re.compile(r"\w+")
_Place = tuple[str, str]  # in the list, as a cursor names it
_Versions = Mapping[str, tuple[int, ...]]
T = TypeVar("T")


@dataclass(frozen=True)
class RunFilter:
    """Which runs are listed: those to which all of this applies.

    Attributes:
        states: empty for all.
        words: must all be in the question, or be the beginning of a word of it.
        owner: who asked; None for everybody.
        since: the earliest time at which it was asked.
        until: the time before which it was asked.
        parent: the id of the run that it follows up on.
        watch: the name of the watch that it belongs to.
    """

    states: frozenset[RunState] = field(default_factory=frozenset)
    words: str = ""
    owner: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    parent: str = ""
    watch: str = ""

    def takes(self, line: KnownRun) -> bool:
        """Whether a line may be listed, by all but its owner and its state."""
        created = datetime.fromisoformat(line.created) if self.since or self.until else None
        return not (
            (self.parent and line.stored.parent != self.parent)
            or (self.watch and line.stored.watch_name != self.watch)
            or (created and self.since and created < self.since)
            or (created and self.until and created >= self.until)
            or not _has(line.stored.query, self.words)
        )


EVERYTHING = RunFilter()


class ListedRun(NamedTuple):
    """A line of the list, and how the run ended: None if it has not, or its result cannot be read."""

    summary: RunSummary
    result: RunResult | None


class _Kept:
    """What was read from files, until they change."""

    def __init__(self) -> None:
        self._read: dict[str, tuple[tuple[int, ...], Any]] = {}

    async def get(self, path: str, versions: _Versions, read: Callable[[], Awaitable[T]]) -> T:
        """Return what was read from a file that has the same version; else read it. Without one, nothing is kept."""
        now = versions.get(path)
        if now is None:
            return await read()
        if path in self._read and self._read[path][0] == now:
            kept: T = self._read[path][1]
            return kept
        value = await read()
        self._read.pop(path, None)
        self._read[path] = now, value
        if len(self._read) > _MOST_KEPT:
            del self._read[next(iter(self._read))]
        return value


class _Known:
    """The runs that Prefect and the store knew, the newest first: the same for all readings while nothing changes."""

    def __init__(self, asked: dict[str, KnownRun], stored: list[StoredRun]) -> None:
        self.asked, self.stored = asked, stored
        self.lines = sorted(_merged(asked, stored), key=lambda line: line.order, reverse=True)

    @cached_property
    def groups(self) -> list[list[KnownRun]]:
        """The same by conversation."""
        return grouped(self.lines)


class _Reading:
    """What was known at a time, and what was asked of this reading.

    `began`: when it was begun to read them.
    """

    def __init__(self, began: float, known: _Known) -> None:
        self.began = began
        self.known = known
        self._answers: dict[tuple[object, ...], asyncio.Future[Any]] = {}

    async def answer(self, asked: tuple[object, ...], read: Callable[[], Awaitable[T]]) -> T:
        """Return what is read once for all who ask the same of this reading: it is as fresh as each could have it."""
        if asked not in self._answers:
            self._answers[asked] = asyncio.ensure_future(read())
        answer: T = await asyncio.shield(self._answers[asked])
        return answer


class Listing:
    """Lists the runs of one store."""

    def __init__(self, store: ArtifactStore, owners: Owners) -> None:
        self._store = store
        self._owners = owners
        self._index = RunIndex(store)
        self._prefect = PrefectRuns(store)
        self._ownership: dict[str, tuple[Ownership, float]] = {}
        self._results: dict[str, Ending] = {}
        self._kept = _Kept()
        self._lock = asyncio.Lock()
        self._outage: tuple[float, httpx.HTTPError] | None = None
        self._last = _Reading(-1.0, _Known({}, []))
        self._readers = asyncio.Semaphore(READERS)

    async def page(self, caller: Caller, wanted: RunFilter, limit: int, cursor: str) -> RunList:
        """Return the runs after the one that a cursor names, the newest first.

        Raises:
            InvalidInput: the cursor is none.
        """
        after, known = read_cursor(cursor), await self._refresh()
        page = partial(self._page, caller, wanted, limit, after, known.known.lines)
        return await known.answer(("page", caller, wanted, limit, cursor), page)

    async def _page(
        self, caller: Caller, wanted: RunFilter, limit: int, after: _Place | None, known: Sequence[KnownRun]
    ) -> RunList:
        lines = (line for line in known if (not after or line.order < after) and wanted.takes(line))
        if wanted.states:
            lines = (line for line in lines if self._ended_as(line) in {None, *wanted.states})
        found: list[tuple[KnownRun, RunSummary]] = []
        more = False
        # A piece at a time: the rest of a long list is not looked at.
        while not more and (piece := [*islice(lines, MOST)]):
            visible = await self._visible(caller, wanted, piece)
            if not wanted.states:
                visible = visible[: limit + 1 - len(found)]
            listed = await self._listed(visible, caller)
            for line, one in zip(visible, listed, strict=True):
                if one is None or (wanted.states and one.summary.state not in wanted.states):
                    continue
                if len(found) == limit:
                    more = True
                    break
                found.append((line, one.summary))
        return RunList(runs=[summary for _, summary in found], next=to_cursor(found[-1][0]) if more else None)

    async def threads(self, caller: Caller, wanted: RunFilter, limit: int, cursor: str = "") -> ThreadList:
        """Return the conversations after the one that a cursor names, the one with the newest question first.

        A conversation has the state of its newest question; all else may apply to any of its questions.

        Raises:
            InvalidInput: the cursor is none.
        """
        after, known = read_cursor(cursor), await self._refresh()
        threads = partial(self._threads, caller, wanted, limit, after, known.known.groups)
        return await known.answer(("threads", caller, wanted, limit, cursor), threads)

    async def _threads(
        self, caller: Caller, wanted: RunFilter, limit: int, after: _Place | None, groups: Sequence[list[KnownRun]]
    ) -> ThreadList:
        several = [line for group in groups if len(group) > 1 for line in group]
        hidden = {line.run_id for line in several}
        if hidden := hidden - {line.run_id for line in await self._visible(caller, EVERYTHING, several)}:
            shown = ([line for line in group if line.run_id not in hidden] for group in groups)
            groups = sorted(filter(None, shown), key=lambda group: group[0].order, reverse=True)
        wanted_ones = (
            group for group in groups if (not after or group[0].order < after) and any(map(wanted.takes, group))
        )
        found: list[tuple[KnownRun, Thread]] = []
        while len(found) <= limit and (piece := [*islice(wanted_ones, limit + 1)]):
            threads = await asyncio.gather(*(self._readable(caller, group) for group in piece))
            for group, listed in zip(piece, threads, strict=True):
                runs = [one.summary for one in listed]
                if (
                    runs
                    and (not wanted.states or runs[0].state in wanted.states)
                    and (wanted.owner is None or any(run.owner == wanted.owner for run in runs))
                ):
                    found.append((group[0], Thread(runs)))
        more = len(found) > limit
        found = found[:limit]
        return ThreadList([thread for _, thread in found], to_cursor(found[-1][0]) if more else None)

    async def thread_of(self, caller: Caller, run_id: str) -> list[ListedRun]:
        """Return the questions of the conversation of a run that the caller may see, the newest first."""
        groups = (await self._refresh()).known.groups
        group = next((group for group in groups if any(line.run_id == run_id for line in group)), [])
        return await self._readable(caller, group)

    async def _readable(self, caller: Caller, lines: Sequence[KnownRun]) -> list[ListedRun]:
        visible = await self._visible(caller, EVERYTHING, lines)
        return [*filter(None, await self._listed(visible, caller))]

    async def _refresh(self) -> _Reading:
        """Return the runs that Prefect and the store know.

        Requests that wait for the same reading share what is read, and an outage.
        """
        asked = monotonic()
        async with self._lock:
            if self._outage and self._outage[0] > asked:
                raise self._outage[1]
            if self._last.began > asked:
                return self._last
            began = monotonic()
            try:
                known = await self._prefect.refresh()
            except httpx.HTTPError as error:
                self._outage = monotonic(), error
                raise
            stored, last = await self._index.read(), self._last.known
            same = known == last.asked and stored is last.stored
            self._last = _Reading(began, last if same else _Known(known, stored))
            return self._last

    async def _visible(self, caller: Caller, wanted: RunFilter, lines: Sequence[KnownRun]) -> list[KnownRun]:
        owned = await asyncio.gather(*(self._owner(line) for line in lines))
        return [
            line
            for line, own in zip(lines, owned, strict=True)
            if own.readable_by(caller) and wanted.owner in (None, own.owner)
        ]

    async def _owner(self, line: KnownRun) -> Ownership:
        """Return whose a run is, as it was known some seconds ago."""
        own, at = self._ownership.get(line.run_id, (None, 0.0))
        if own is None or monotonic() - at > OWNER_SECONDS:
            async with self._readers:
                own = await self._owners.of(line.run_id, list(line.tags))
            self._ownership[line.run_id] = own, monotonic()
        return own

    async def _listed(self, lines: Sequence[KnownRun], caller: Caller) -> list[ListedRun | None]:
        """Return lines as they are now; None for one that is not there any more, or not to be seen any more."""
        results = [f"{line.stored.folder}/{RESULT}" for line in lines if line.stored.folder]
        versions = await self._store.versions([*results, *filter(None, (path_of(line.run_id) for line in lines))])
        return await asyncio.gather(*(self._now(line, caller, versions) for line in lines))

    async def _now(self, line: KnownRun, caller: Caller, versions: _Versions) -> ListedRun | None:
        async with self._readers:
            stored = await self._kept.get(path_of(line.run_id), versions, partial(self._owners.stored, line.run_id))
            own = stored or Ownership.of_tags(list(line.tags))
            if not own.readable_by(caller):
                return None
            state, result = await self._state(line, versions)
            only_stored = line.flow_run is None and line.state is None
            if not result and only_stored and await self._index.now(line.stored) is None:
                return None
        return ListedRun(summary_of(line, own, state, result), result)

    async def _state(self, line: KnownRun, versions: _Versions) -> tuple[RunState, RunResult | None]:
        try:
            result = await self._result(line, versions)
            flow_run = row_of(line.flow_run) if line.flow_run else None
            return line.state or await state_of(flow_run, line.stored, result), result
        except StoreError:  # one damaged run must not hide the others
            return line.state or RunState.unreadable, None

    def _ended_as(self, line: KnownRun) -> RunState | None:
        """Return how a run ended, if that is known without looking."""
        if line.flow_run or line.state:
            return line.state
        result = self._results.get(line.run_id)
        return RunState(result.value) if result else None

    async def _result(self, line: KnownRun, versions: _Versions) -> RunResult | None:
        result = await self._kept.get(f"{line.stored.folder}/{RESULT}", versions, line.stored.result)
        if result is None or result.run_id != line.run_id:
            self._results.pop(line.run_id, None)
            return None
        if line.flow_run is None or line.state is not None:
            self._results[line.run_id] = result.status
        return result


def to_cursor(line: KnownRun) -> str:
    """Return what names a place in the list."""
    return urlsafe_b64encode("|".join(line.order).encode()).decode().rstrip("=")


def read_cursor(cursor: str) -> _Place | None:
    """Return the place in the list that a cursor names; None without one.

    Raises:
        InvalidInput: it is none of ours.
    """
    if not cursor:
        return None
    try:
        created, _, run_id = urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)).decode("ascii").partition("|")
        datetime.fromisoformat(created)
    except ValueError:
        raise InvalidInput(
            "The cursor does not belong to this list.", next_step="send `next` from the previous page"
        ) from None
    return created, run_id


def _merged(asked: dict[str, KnownRun], stored: list[StoredRun]) -> list[KnownRun]:
    """Return the runs of Prefect and of the store, each once; a run has its files from the store."""
    lines = {run.run_id: KnownRun.of_stored(run) for run in stored if run.run_id and not run.damaged}
    for run_id, line in asked.items():
        own = lines.get(run_id)
        lines[run_id] = line.with_files(own.stored) if own else line
    return [*lines.values()]


def _has(question: str, words: str) -> bool:
    if not words:
        return True
    there = _WORD.findall(question.casefold())
    return all(any(one.startswith(word) for one in there) for word in _WORD.findall(words.casefold()))


def time_of(text: str) -> datetime | None:
    """Return the time that a text in ISO 8601 means, without a zone in UTC; None for no text.

    Raises:
        InvalidInput: it is none.
    """
    if not text:
        return None
    try:
        # A blank is a plus sign of an address that was not escaped.
        time = datetime.fromisoformat(text.replace(" ", "+") if "T" in text else text)
        return time.astimezone(UTC) if time.tzinfo else time.replace(tzinfo=UTC)
    except (ValueError, OverflowError):
        raise InvalidInput(f"{text!r} is not a time.", next_step="such as 2026-11-01T06:00:00Z or 2026-11-01") from None


_NEWEST = 10  # asked for when nearly all are known
_FORGET_SECONDS = 600.0  # then all is asked for again: flow runs may have been deleted
_CLOCKS = timedelta(minutes=1)  # by which the clocks of two machines may differ
_OPEN = [state for state in StateType if state not in TERMINAL_STATES]


class PrefectRuns:
    """The runs of one store that Prefect knows, by id. What has ended is asked for once."""

    def __init__(self, store: ArtifactStore) -> None:
        self._store = store
        self._root = store.address()
        self._ended: dict[str, KnownRun | None] = {}  # None: it is of another store
        self._since = monotonic()

    async def refresh(self) -> dict[str, KnownRun]:
        """Return all of them as they are now. A run that was taken up again after its end is looked at again."""
        if monotonic() - self._since > _FORGET_SECONDS:
            self._ended, self._since = {}, monotonic()
        still = FlowRunFilter(
            state=FlowRunFilterState(type=FlowRunFilterStateType(any_=_OPEN)),
            expected_start_time=FlowRunFilterExpectedStartTime(
                before_=datetime.now(UTC) + _CLOCKS
            ),  # without the runs that a schedule has planned
        )
        lines: dict[str, KnownRun] = {}
        for flow_run in await self._read(still, MOST_AT_ONCE, until_known=False):
            self._ended.pop(str(flow_run.id), None)
            if line := await self._line(flow_run):
                lines[line.run_id] = line
        over = FlowRunFilter(state=FlowRunFilterState(type=FlowRunFilterStateType(any_=list(TERMINAL_STATES))))
        for flow_run in await self._read(over, _NEWEST if self._ended else MOST_AT_ONCE, until_known=True):
            if str(flow_run.id) not in lines:
                self._ended[str(flow_run.id)] = await self._line(flow_run)
        return {**{run_id: line for run_id, line in self._ended.items() if line}, **lines}

    async def _read(self, which: FlowRunFilter, page: int, *, until_known: bool) -> list[FlowRun]:
        found: list[FlowRun] = []
        flows, newest = FlowFilter(name=FlowFilterName(any_=[FLOW])), FlowRunSort.END_TIME_DESC
        async with prefect_client() as client:
            while True:
                some = await client.read_flow_runs(
                    flow_filter=flows, flow_run_filter=which, sort=newest, limit=page, offset=len(found)
                )
                found += some
                if len(some) < page or (until_known and all(str(one.id) in self._ended for one in some)):
                    return found

    async def _line(self, flow_run: FlowRun) -> KnownRun | None:
        given = flow_run.parameters
        if "query" not in given or artifact_root((given.get("settings") or {}).get("artifacts")) != self._root:
            return None
        found = KnownRun.of_flow_run(self._store, flow_run)
        if flow_run.state and flow_run.state.is_final():
            return replace(found, flow_run=None, state=await state_of(row_of(flow_run)))
        return found


@dataclass(frozen=True)
class Thread:
    """A conversation. `runs`: its questions, the newest first; never empty."""

    runs: Sequence[RunSummary]

    @property
    def title(self) -> str:
        """The last name that one of its questions was given; else its first question."""
        return next((run.title for run in self.runs if run.title), self.runs[-1].question)

    @property
    def cost_usd(self) -> float:
        """What its questions have cost together, as far as that is known."""
        return sum(run.cost_usd or 0.0 for run in self.runs)


@dataclass(frozen=True)
class ThreadList:
    """A page of conversations, the one with the newest question first; `next` is the cursor of the page after it."""

    threads: Sequence[Thread]
    next: str | None = None


def grouped(lines: Sequence[KnownRun]) -> list[list[KnownRun]]:
    """Return runs by conversation, in each the newest first, and first the conversation with the newest question.

    Follow-ups of a run that is gone belong together.
    """
    parents = {line.run_id: line.stored.parent for line in lines}
    groups = defaultdict[str, list[KnownRun]](list)
    for line in sorted(lines, key=lambda line: line.order, reverse=True):
        first, seen = line.run_id, set[str]()
        while (parent := parents.get(first)) and first not in seen:  # a damaged record may lead in a circle
            seen.add(first)
            first = parent
        groups[first].append(line)
    return list(groups.values())

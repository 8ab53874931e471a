"""What Prefect and the store know of all runs, read once and then as far as it is new."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from datetime import UTC, datetime, timedelta
from time import monotonic

from prefect.client.orchestration import get_client
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

from fathom.errors import StoreError
from fathom.flows.preflight import artifact_root
from fathom.flows.runs.flow_runs import FLOW
from fathom.flows.runs.stored import read_json
from fathom.serve.runs.lines import Line, text
from fathom.serve.runs.reading import state_in
from fathom.storage.atomic import READERS
from fathom.storage.lease import RESULTS, read_lease, result_key
from fathom.storage.store import MANIFEST, PARTIAL, RUNS, ArtifactStore, RunFolder

_PAGE = 200  # flow runs in one request, the most that the server returns
_NEWEST = 50  # asked for when nearly all are known
_FORGET_SECONDS = 600.0  # then all is asked for again: flow runs may have been deleted
_CLOCKS = timedelta(minutes=1)  # by which those of machines may differ
_OPEN = [state for state in StateType if state not in TERMINAL_STATES]


class PrefectRuns:
    """The runs of one store that Prefect knows, by id. What has ended is asked for once."""

    def __init__(self, store: ArtifactStore) -> None:
        self._root = store.address()
        self._ended: dict[str, Line | None] = {}  # None: it is of another store
        self._since = monotonic()

    async def refresh(self) -> dict[str, Line]:
        """Return all of them as they are now. A run that was taken up again after its end is looked at again."""
        if monotonic() - self._since > _FORGET_SECONDS:
            self._ended, self._since = {}, monotonic()
        still = FlowRunFilter(
            state=FlowRunFilterState(type=FlowRunFilterStateType(any_=_OPEN)),
            expected_start_time=FlowRunFilterExpectedStartTime(
                before_=datetime.now(UTC) + _CLOCKS
            ),  # not those of a schedule
        )
        lines: dict[str, Line] = {}
        for flow_run in await self._read(still, _PAGE, until_known=False):
            self._ended.pop(str(flow_run.id), None)
            if line := await self._line(flow_run):
                lines[line.run_id] = line
        over = FlowRunFilter(state=FlowRunFilterState(type=FlowRunFilterStateType(any_=list(TERMINAL_STATES))))
        for flow_run in await self._read(over, _NEWEST if self._ended else _PAGE, until_known=True):
            if str(flow_run.id) not in lines:
                self._ended[str(flow_run.id)] = await self._line(flow_run)
        return {**{run_id: line for run_id, line in self._ended.items() if line}, **lines}

    async def _read(self, which: FlowRunFilter, page: int, *, until_known: bool) -> list[FlowRun]:
        found: list[FlowRun] = []
        flows, newest = FlowFilter(name=FlowFilterName(any_=[FLOW])), FlowRunSort.END_TIME_DESC
        async with get_client() as client:
            while True:
                some = await client.read_flow_runs(
                    flow_filter=flows, flow_run_filter=which, sort=newest, limit=page, offset=len(found)
                )
                found += some
                if len(some) < page or (until_known and all(str(one.id) in self._ended for one in some)):
                    return found

    async def _line(self, flow_run: FlowRun) -> Line | None:
        given = flow_run.parameters
        if "query" not in given or artifact_root((given.get("settings") or {}).get("artifacts")) != self._root:
            return None
        created, over = flow_run.created or datetime.now(UTC), flow_run.state and flow_run.state.is_final()
        return Line(
            str(flow_run.id),
            result_key(str(flow_run.id), given.get("run_key")),
            _stamp(created),
            text(given["query"]),
            parent=text(given.get("parent")),
            watch=text(given.get("watch")),
            tags=tuple(flow_run.tags),
            flow_run=None if over else flow_run,
            state=await state_in(flow_run, None) if over else None,
            ended=flow_run.end_time.isoformat() if flow_run.end_time else None,
        )


class StoredRuns:
    """The runs of one store by id: those with a folder, and those that have only stored results so far."""

    def __init__(self, store: ArtifactStore) -> None:
        self._store = store
        self._folders: dict[str, Line] = {}
        self._keys: dict[str, Line | None] = {}  # without a folder; None: no question, but a batch
        self._readers = asyncio.Semaphore(READERS)

    async def refresh(self, known: Collection[str]) -> dict[str, Line]:
        """Return all of them, except those without a folder whose run keys are known already."""
        names, keys = await asyncio.gather(self._store.list(RUNS), self._store.list(RESULTS))
        folders = {f"{RUNS}/{name}" for name in names}
        for gone in self._folders.keys() - folders:
            del self._folders[gone]
        await asyncio.gather(*(self._read(folder) for folder in folders - self._folders.keys()))
        taken = {*known, *(line.run_key for line in self._folders.values())}
        left = {key for key in keys if key not in taken}
        for gone in self._keys.keys() - left:
            del self._keys[gone]
        await asyncio.gather(*(self._read_lease(key) for key in left - self._keys.keys()))
        lines = [*(line for line in self._keys.values() if line), *self._folders.values()]
        return {line.run_id: line for line in lines}

    async def confirm(self, line: Line) -> bool:
        """Whether a run's folder is still its own; else it is forgotten."""
        if not line.folder:
            return True
        if (now := await self._manifest(line.folder)) and now.run_id == line.run_id:
            return True
        self._folders.pop(line.folder, None)
        return line.flow_run is not None or line.state is not None

    async def _read(self, folder: str) -> None:
        async with self._readers:
            if line := await self._manifest(folder):
                self._folders[folder] = line

    async def _manifest(self, folder: str) -> Line | None:
        try:
            found = await read_json(RunFolder(self._store, folder), MANIFEST)
        except StoreError:  # one damaged run must not hide the others
            return None
        if not isinstance(found, dict) or PARTIAL in found or not found.get("run_id"):
            return None
        parent = found.get("parent")
        return Line(
            text(found["run_id"]),
            text(found.get("run_key")),
            _stamp_of(text(found.get("started"))),
            text(found.get("query")),
            parent=text(parent.get("run_id")) if isinstance(parent, dict) else "",
            watch=text(found.get("watch")),
            folder=folder,
        )

    async def _read_lease(self, key: str) -> None:
        async with self._readers:
            try:
                lease = await read_lease(self._store, key)
            except StoreError:
                return
        if lease is None or lease.held:
            return
        given = lease.parameters
        question = text(given.get("query"))
        line = Line(lease.run_id, key, _stamp_of(lease.started), question, text(given.get("parent")))
        self._keys[key] = line if question else None


def _stamp_of(time: str) -> str:
    try:
        return _stamp(datetime.fromisoformat(time))
    except ValueError:
        return _stamp(datetime.fromtimestamp(0, UTC))


def _stamp(time: datetime) -> str:
    utc = time.astimezone(UTC) if time.tzinfo else time.replace(tzinfo=UTC)
    return utc.isoformat(timespec="microseconds")

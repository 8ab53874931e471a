"""What Prefect knows of all runs, read once and then as far as it is new."""

from __future__ import annotations

from dataclasses import replace
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

from fathom.flows.preflight import artifact_root
from fathom.flows.runs.finding import KnownRun
from fathom.flows.runs.flow_runs import FLOW, row_of
from fathom.flows.runs.states import state_of
from fathom.storage.store import ArtifactStore

_PAGE = 200  # flow runs in one request, the most that the server returns
_NEWEST = 50  # asked for when nearly all are known
_FORGET_SECONDS = 600.0  # then all is asked for again: flow runs may have been deleted
_CLOCKS = timedelta(minutes=1)  # by which those of machines may differ
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
            ),  # not those of a schedule
        )
        lines: dict[str, KnownRun] = {}
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

    async def _line(self, flow_run: FlowRun) -> KnownRun | None:
        given = flow_run.parameters
        if "query" not in given or artifact_root((given.get("settings") or {}).get("artifacts")) != self._root:
            return None
        found = KnownRun.of_flow_run(self._store, flow_run)
        if flow_run.state and flow_run.state.is_final():
            return replace(found, flow_run=None, state=await state_of(row_of(flow_run)))
        return found

"""Finding a run by its id, in Prefect and in the store. Imports Prefect."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import lru_cache
from uuid import UUID

from prefect.client.schemas.filters import (
    FlowFilter,
    FlowFilterName,
    FlowRunFilter,
    FlowRunFilterState,
    FlowRunFilterStateType,
)
from prefect.client.schemas.objects import FlowRun, StateType
from prefect.client.schemas.sorting import FlowRunSort
from prefect.exceptions import ObjectNotFound

from fathom.errors import InvalidInput, RunNotFound
from fathom.flows.runs.states import FLOW, place
from fathom.flows.runs.stored import find, is_prefix, several
from fathom.flows.server import MOST_AT_ONCE
from fathom.models import RunState
from fathom.storage.lease import as_restored, result_key
from fathom.storage.runs import StoredRun, read_manifest
from fathom.storage.store import ArtifactStore, RunFolder
from fathom.tasks.clients import prefect_client
from fathom.tasks.durable import recorded_folders


@dataclass(frozen=True)
class KnownRun:
    """A run, as the store and Prefect know it.

    Attributes:
        stored: the store's record; for a run without files yet, the parameters of its flow run.
        flow_run: None if Prefect has forgotten the run; in a list also once it has ended.
        state: in a list, its ending if Prefect knows it.
        created: ISO 8601 in UTC, down to the microsecond, so that its text can be ordered.
    """

    stored: StoredRun
    flow_run: FlowRun | None = None
    state: RunState | None = None
    created: str = ""
    ended: str | None = None
    tags: tuple[str, ...] = ()

    @classmethod
    def of_stored(cls, stored: StoredRun) -> KnownRun:
        """Return a run from the store's record alone."""
        return cls(stored, created=_started(stored.started))

    @classmethod
    def of_flow_run(cls, store: ArtifactStore, flow_run: FlowRun) -> KnownRun:
        """Return a run from Prefect's record alone."""
        run_id, given = str(flow_run.id), flow_run.parameters
        return cls(
            StoredRun.of_parameters(store, run_id, result_key(run_id, given.get("run_key")), given),
            flow_run,
            created=_stamp(flow_run.created or datetime.now(UTC)),
            ended=flow_run.end_time.isoformat() if flow_run.end_time else None,
            tags=tuple(flow_run.tags),
        )

    @property
    def run_id(self) -> str:
        """Its id, which is also its flow run's."""
        return self.stored.run_id

    @property
    def by_worker(self) -> bool:
        """Whether it was started for a work pool, so that a worker can take it up again."""
        return bool(self.flow_run and self.flow_run.deployment_id)

    @property
    def folder(self) -> RunFolder | None:
        """Its files; None before it has any."""
        return self.stored.files if self.stored.folder else None

    @property
    def order(self) -> tuple[str, str]:
        """Its place in a list, which never changes while Prefect knows the run."""
        return self.created, self.run_id

    def with_files(self, stored: StoredRun) -> KnownRun:
        """Return the same run with its files, which an earlier run of the same key may have left."""
        own = self.stored
        return replace(self, stored=replace(stored, run_id=own.run_id, run_key=own.run_key))


async def find_run(store: ArtifactStore, run_id: str) -> KnownRun:
    """Return the run with an id, which must be complete and in lower case.

    Raises:
        RunNotFound: neither Prefect nor the store knows it, or it is in another store.
    """
    missing = no_run(run_id)
    try:
        known_as = UUID(run_id)
    except ValueError:
        raise missing from None
    if str(known_as) != run_id:
        raise missing
    flow_run = None
    with suppress(ObjectNotFound):
        async with prefect_client() as client:
            flow_run = await client.read_flow_run(known_as)
    if flow_run is None or "query" not in flow_run.parameters:
        if stored := await _with_id(store, run_id):
            return KnownRun.of_stored(stored)
        raise missing
    if place(run_id, flow_run.parameters)[0].address() != store.address():
        raise missing
    key = result_key(run_id, flow_run.parameters.get("run_key"))
    restored = await as_restored(store, key)
    found = KnownRun.of_flow_run(restored, flow_run)
    for name in await recorded_folders(store, key):
        own = await read_manifest(restored, name)
        if own and not own.damaged and run_id in (own.run_id, key):
            return found.with_files(own)
    if flow_run.state and flow_run.state.is_completed():  # its records were removed; its manifest names it
        stored = await _with_id(store, run_id)
        return found.with_files(stored) if stored and stored.folder else found
    return found


def no_run(run_id: str) -> RunNotFound:
    """Return the error of a run that does not exist, or that whoever asks may not see."""
    return RunNotFound(f"There is no run {run_id[:60]}.", next_step="GET /api/v1/runs lists the runs")


async def find_flow_run(name: str, stored: Sequence[StoredRun] = ()) -> FlowRun:
    """Return Prefect's record of the run with an id, the prefix of an id or a name, or of runs found in a store.

    A run that waits for a person is found however old it is, any other run by a prefix only if it is among the latest.

    Raises:
        RunNotFound: Prefect knows none.
        InvalidInput: there are several, or it is no run of a question.
    """
    ids, of_questions = [run.run_id for run in stored], FlowFilter(name=FlowFilterName(any_=[FLOW]))
    paused = FlowRunFilter(state=FlowRunFilterState(type=FlowRunFilterStateType(any_=[StateType.PAUSED])))
    newest = FlowRunSort.EXPECTED_START_TIME_DESC
    async with prefect_client() as client:
        latest = await client.read_flow_runs(flow_filter=of_questions, sort=newest, limit=MOST_AT_ONCE)
        latest += await client.read_flow_runs(flow_filter=of_questions, flow_run_filter=paused, limit=MOST_AT_ONCE)
        known = [*{run.id: run for run in latest}.values()]
        again = [run for run in known if str(run.id) in ids or run.parameters.get("run_key") in ids]
        chosen = (
            [run for run in known if is_prefix(name, str(run.id))]
            or [run for run in known if run.name == name]
            or (again[:1] if len(stored) == 1 else again)  # for a run that was started again, the last time
        )
        if len(chosen) > 1:
            raise several(name, [str(run.id) for run in chosen])
        if chosen:
            return chosen[0]
        for run_id in [name, *ids]:  # older than the latest ones
            try:
                found = await client.read_flow_run(UUID(run_id))
            except (ValueError, ObjectNotFound):
                continue
            if (flow := await client.read_flow(found.flow_id)).name != FLOW:
                how = "the same `fathom batch` command with its --run-key, or Retry in the UI"
                raise InvalidInput(f"{run_id} is a run of {flow.name}, not of a question.", next_step=how)
            return found
    raise RunNotFound(
        f"No run {name!r} is known.", next_step="fathom runs lists the runs; FATHOM_ARTIFACTS sets where to look"
    )


async def _with_id(store: ArtifactStore, run_id: str) -> StoredRun | None:
    with suppress(RunNotFound):  # which says where the store is
        found = await find(store, run_id)
        return found if found.run_id == run_id else None
    return None


class Finder:
    """Finds runs for many simultaneous requests for the same run, as from listeners that reconnect together."""

    def __init__(self, store: ArtifactStore) -> None:
        self._store = store
        self._asking: dict[str, asyncio.Task[KnownRun]] = {}

    async def find(self, run_id: str) -> KnownRun:
        """Return the run of an id, perhaps as it was for a request a moment ago.

        Raises:
            RunNotFound: as for `find_run`.
        """
        task = self._asking.get(run_id)
        if task is None:
            task = self._asking[run_id] = asyncio.create_task(find_run(self._store, run_id))
            task.add_done_callback(lambda _: self._asking.pop(run_id, None))
        return await asyncio.shield(task)


@lru_cache(100_000)
def _started(text: str) -> str:
    try:
        return _stamp(datetime.fromisoformat(text))
    except ValueError:
        return _stamp(datetime.fromtimestamp(0, UTC))


def _stamp(time: datetime) -> str:
    """Return a time as text that can be ordered: in UTC, down to the microsecond."""
    utc = time.astimezone(UTC) if time.tzinfo else time.replace(tzinfo=UTC)
    return utc.isoformat(timespec="microseconds")

"""The list of runs that a terminal shows: the runs of the artifact store and of Prefect."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC

from fathom.errors import StoreError
from fathom.flows.runs.index import RunIndex
from fathom.flows.runs.states import FlowRunRow, place, recent, state_of
from fathom.flows.server import find_api
from fathom.models import Answered, RunState
from fathom.storage.atomic import side_by_side
from fathom.storage.lease import RESULTS, result_key
from fathom.storage.runs import StoredRun
from fathom.storage.store import ArtifactStore


@dataclass(frozen=True)
class RunRow:
    """A line of the list. `started` is an ISO 8601 time in UTC; `folder` is empty if the store has none.

    `answered` says whether the sources answer the question, and is None without a report. `bytes` is the size of its
    folder and of its stored results, if that was asked for; `parent` is the id of the run that it follows up on;
    `elsewhere` is the root of the store that has it, if that is another one.
    """

    run_id: str
    started: str
    state: RunState
    query: str
    folder: str
    answered: Answered | None = None
    bytes: int | None = None
    parent: str = ""
    elsewhere: str = ""


@dataclass(frozen=True)
class _Line:
    """A run before its state is read."""

    started: str
    run: StoredRun
    flow_run: FlowRunRow | None = None
    elsewhere: str = ""


async def latest(store: ArtifactStore, limit: int, say: Callable[[str], object] = lambda line: None) -> list[RunRow]:
    """Return the latest runs of the store and, if a Prefect API answers, of Prefect; the newest first."""
    index = RunIndex(store, say)
    stored = {run.run_id or run.files.folder: _Line(run.started, run) for run in await index.read()}
    lines = {**stored, **(await _of_prefect(store, limit, stored) if find_api() else {})}
    ordered = sorted(lines.values(), key=lambda line: line.started, reverse=True)
    rows: list[RunRow] = []
    at = 0
    while at < len(ordered) and len(rows) < limit:  # again if runs are gone
        piece, at = ordered[at : at + limit - len(rows)], at + limit - len(rows)
        rows += [row for row in await asyncio.gather(*(_row(index, line) for line in piece)) if row]
    return rows


async def _of_prefect(store: ArtifactStore, limit: int, stored: dict[str, _Line]) -> dict[str, _Line]:
    found: dict[str, _Line] = {}
    for flow_run in await recent(limit):
        if flow_run.start_time is None and flow_run.auto_scheduled:
            continue  # scheduled for later
        key = str(flow_run.parameters.get("run_key") or "")
        run_id = key if key in stored else flow_run.id  # restarted from its store
        if run_id in found:
            continue
        began = flow_run.start_time or flow_run.expected_start_time or flow_run.created
        started = began.astimezone(UTC).isoformat(timespec="seconds") if began else ""
        if run_id in stored:
            found[run_id] = _Line(started, stored[run_id].run, flow_run)
            continue
        asked = StoredRun.of_parameters(store, run_id, result_key(flow_run.id, key), flow_run.parameters)
        root = place(flow_run.id, flow_run.parameters)[0].address()
        found[run_id] = _Line(started, asked, flow_run, root if root != store.address() else "")
    return found


async def _row(index: RunIndex, line: _Line) -> RunRow | None:
    """Return a line with its present state; None if the run is gone."""
    run, flow_run, answered = line.run, line.flow_run, None
    try:
        result = await run.result()
        if not result or result.run_id != run.run_id:
            if (now := await index.now(run) if run.folder or not flow_run else run) is None:
                return None
            run = now
        else:
            answered = result.answered
        state = RunState.unreadable if run.damaged else await state_of(flow_run, run, result)
    except StoreError:  # one damaged run must not hide the others
        state = RunState.unreadable
    where = run.files.url if run.folder else ""
    row = RunRow(run.run_id, line.started, state, run.query, where, answered)
    return replace(row, parent=run.parent, elsewhere=line.elsewhere)


async def with_sizes(store: ArtifactStore, rows: Sequence[RunRow]) -> list[RunRow]:
    """Return rows with their sizes. Runs that share a run key share stored results; the newest of them counts these."""
    keys = {run.run_id: run.run_key for run in await RunIndex(store).read()}

    async def size(places: Sequence[str]) -> int:
        return sum([sum((await store.sizes(place)).values()) for place in places])

    counted: set[str] = set()
    folders: list[list[str]] = []
    for row in rows:
        own = [row.folder.removeprefix(f"{store.address()}/")] if row.folder else []
        key = keys.get(row.run_id)
        folders.append([*own, f"{RESULTS}/{key}"] if key and key not in counted else own)
        counted.add(key or "")
    sizes = await side_by_side(folders, size)
    return [replace(row, bytes=of_row) for row, of_row in zip(rows, sizes, strict=True)]

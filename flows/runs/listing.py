"""The list of runs: those in the artifact store and those that Prefect knows."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC
from typing import Any

from fathom.errors import StoreError
from fathom.evidence.followed import parent_id
from fathom.flows.runs.flow_runs import recent, state_of
from fathom.flows.runs.stored import known, read_json
from fathom.flows.server import find_api
from fathom.storage.atomic import READERS
from fathom.storage.lease import RESULTS, read_lease
from fathom.storage.store import ArtifactStore, RunFolder


@dataclass(frozen=True)
class RunRow:
    """A line of the list. `started` is an ISO 8601 time in UTC; `folder` is empty if the store has none.

    `bytes` is the size of its folder and of its stored results, if that was asked for; `parent` is the id of the run
    that it follows up on.
    """

    run_id: str
    started: str
    state: str
    query: str
    folder: str
    bytes: int | None = None
    parent: str = ""


async def latest(store: ArtifactStore, limit: int) -> list[RunRow]:
    """Return the latest runs of the store and, if a Prefect API answers, of Prefect; the newest first.

    A run is `interrupted` if it crashed, or if Prefect takes it for running but its process is gone.
    """
    stored = [await _row(store, manifest) for manifest in await known(store)]
    rows = {row.run_id or row.folder: row for row in stored}
    if find_api():
        listed: set[str] = set()
        for flow_run in await recent(limit):
            if flow_run.start_time is None and flow_run.auto_scheduled:
                continue  # scheduled for later
            key = flow_run.parameters.get("run_key")
            run_id = key if key in rows else flow_run.id  # restarted from its store
            if run_id in listed:
                continue
            listed.add(run_id)
            started = flow_run.start_time or flow_run.expected_start_time or flow_run.created
            at = started.astimezone(UTC).isoformat(timespec="seconds") if started else ""
            known_row = rows.get(run_id)
            # The store says how a run has ended; Prefect only that it has.
            ended = flow_run.state_type == "COMPLETED"
            state = known_row.state if known_row and ended else await state_of(flow_run)
            folder, query = known_row.folder if known_row else "", str(flow_run.parameters.get("query", ""))
            parent = known_row.parent if known_row else str(flow_run.parameters.get("parent") or "")
            rows[run_id] = RunRow(run_id, at, state, query, folder, parent=parent)
    return sorted(rows.values(), key=lambda row: row.started, reverse=True)[:limit]


async def with_sizes(store: ArtifactStore, rows: Sequence[RunRow]) -> list[RunRow]:
    """Return rows with their sizes. Runs that share a run key share stored results; the newest of them counts these."""
    keys = {str(manifest.get("run_id")): str(manifest.get("run_key", "")) for manifest in await known(store)}
    limit = asyncio.Semaphore(READERS)

    async def size(folder: str) -> int:
        async with limit:
            return sum((await store.sizes(folder)).values())

    counted: set[str] = set()
    folders: list[list[str]] = []
    for row in rows:
        own = [row.folder.removeprefix(f"{store.address()}/")] if row.folder else []
        key = keys.get(row.run_id)
        folders.append([*own, f"{RESULTS}/{key}"] if key and key not in counted else own)
        counted.add(key or "")
    sizes = await asyncio.gather(*(asyncio.gather(*map(size, of_row)) for of_row in folders))
    return [replace(row, bytes=sum(of_row)) for row, of_row in zip(rows, sizes, strict=True)]


async def _row(store: ArtifactStore, manifest: dict[str, Any]) -> RunRow:
    run_id, started, query = (str(manifest.get(name, "")) for name in ("run_id", "started", "query"))
    folder = RunFolder(store, manifest["folder"])
    try:
        state = await _state(folder, str(manifest.get("run_key", "")))
    except StoreError:  # one damaged run must not hide the others
        state = "unreadable"
    where = folder.url if folder.folder else ""
    return RunRow(run_id, started, state, query, where, parent=parent_id(manifest))


async def _state(folder: RunFolder, run_key: str) -> str:
    result = await read_json(folder, "result.json") if folder.folder else None
    if result is not None:
        return str(result.get("status")) if isinstance(result, dict) else "unreadable"
    lease = await read_lease(folder.store, run_key)
    return "running" if lease and lease.alive else "interrupted"

"""The list of runs: those that have a folder, and those that Prefect knows."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC

from fathom.store import ArtifactStore, RunFolder, runs
from flows.runs import read_json
from flows.server import find_api

__all__ = ["RunRow", "latest"]


@dataclass(frozen=True)
class RunRow:
    """A line of the list of runs. `started` is an ISO 8601 time in UTC, `folder` is empty when there is none here."""

    run_id: str
    started: str
    state: str
    query: str
    folder: str


async def latest(store: ArtifactStore, limit: int) -> list[RunRow]:
    """Return the latest runs of the store and, if a Prefect API answers, of Prefect; the newest first."""
    rows: dict[str, RunRow] = {}
    for manifest in await runs(store):
        folder = RunFolder(store, manifest["folder"])
        result = await read_json(folder, "result.json")
        run_id, state = str(manifest.get("run_id", "")), result["status"] if result else "unfinished"
        rows[run_id or folder.url] = RunRow(
            run_id, str(manifest.get("started", "")), state, str(manifest.get("query", "")), folder.url
        )
    if find_api():
        from flows import local

        for flow_run in await local.recent(limit):
            if flow_run.start_time is None and flow_run.auto_scheduled:
                continue  # a schedule's run of some later day
            run_id, state = str(flow_run.id), (flow_run.state_name or "").lower()
            started = flow_run.start_time or flow_run.expected_start_time or flow_run.created
            at = started.astimezone(UTC).isoformat(timespec="seconds") if started else ""
            known = rows[run_id].folder if run_id in rows else ""
            rows[run_id] = RunRow(run_id, at, state, str(flow_run.parameters.get("query", "")), known)
    return sorted(rows.values(), key=lambda row: row.started, reverse=True)[:limit]

"""A run, found: what Prefect and the store have of it."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from prefect.client.orchestration import get_client
from prefect.client.schemas.objects import FlowRun
from prefect.exceptions import ObjectNotFound

from fathom.errors import RunNotFound
from fathom.flows.runs.flow_runs import place
from fathom.flows.runs.stored import find, read_json
from fathom.storage.store import MANIFEST, ArtifactStore, RunFolder
from fathom.tasks.durable import recorded_folders


@dataclass(frozen=True)
class Found:
    """A run of this server's store. At least one of `flow_run` and `folder` is there.

    Attributes:
        run_id: its id, that of its flow run.
        run_key: the key of its stored results.
        flow_run: what Prefect knows; None if it has forgotten the run.
        folder: its files; None before it has any.
        manifest: its `run.json`; empty before it has one.
    """

    run_id: str
    run_key: str
    flow_run: FlowRun | None
    folder: RunFolder | None
    manifest: dict[str, Any]

    @property
    def tags(self) -> list[str]:
        """The tags of its flow run."""
        return list(self.flow_run.tags) if self.flow_run else []

    @property
    def question(self) -> str:
        """What was asked."""
        asked = self.flow_run.parameters.get("query") if self.flow_run else None
        return str(self.manifest.get("query") or asked or "")


async def find_run(store: ArtifactStore, run_id: str) -> Found:
    """Return the run of an id, whole and in lower case.

    Raises:
        RunNotFound: neither Prefect nor the store knows it, or it is in another store.
    """
    missing = RunNotFound(f"There is no run {run_id[:60]}.", next_step="GET /api/v1/runs lists the runs")
    try:
        known_as = UUID(run_id)
    except ValueError:
        raise missing from None
    if str(known_as) != run_id:
        raise missing
    flow_run = None
    with suppress(ObjectNotFound):
        async with get_client() as client:
            flow_run = await client.read_flow_run(known_as)
    if flow_run is None or "query" not in flow_run.parameters:
        try:
            manifest = await find(store, run_id)
        except RunNotFound:  # which says where the store is
            raise missing from None
        if manifest.get("run_id") != run_id:
            raise missing
        folder = RunFolder(store, str(manifest["folder"])) if manifest["folder"] else None
        return Found(run_id, str(manifest.get("run_key", "")), None, folder, manifest)
    own, key = place(run_id, flow_run.parameters)
    if own.address() != store.address():
        raise missing
    for name in await recorded_folders(store, key):
        folder = RunFolder(store, name)
        manifest = await read_json(folder, MANIFEST)
        if isinstance(manifest, dict) and (manifest.get("run_id") == run_id or key == run_id):
            return Found(run_id, key, flow_run, folder, manifest)
    if (
        flow_run.state and flow_run.state.is_completed()
    ):  # its records were removed; its folder is found by its manifest
        with suppress(RunNotFound):
            manifest = await find(store, run_id)
            if manifest.get("run_id") == run_id and manifest["folder"]:
                return Found(run_id, key, flow_run, RunFolder(store, str(manifest["folder"])), manifest)
    return Found(run_id, key, flow_run, None, {})


class Finder:
    """Finds runs for many who ask for the same one at the same moment, as listeners do that come back together."""

    def __init__(self, store: ArtifactStore) -> None:
        self._store = store
        self._asking: dict[str, asyncio.Task[Found]] = {}

    async def find(self, run_id: str) -> Found:
        """Return the run of an id, perhaps as it was for somebody who has asked a moment ago.

        Raises:
            RunNotFound: as `find_run` does.
        """
        task = self._asking.get(run_id)
        if task is None:
            task = self._asking[run_id] = asyncio.create_task(find_run(self._store, run_id))
            task.add_done_callback(lambda _: self._asking.pop(run_id, None))
        return await asyncio.shield(task)

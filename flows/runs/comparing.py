"""Stored runs as they are compared, and the runs of a watch."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from fathom.changes.sides import Side
from fathom.errors import StoreError
from fathom.evidence.provenance import results_of
from fathom.evidence.stored import stored_texts
from fathom.flows.runs.stored import files_of, folder_of, read_json, recorded
from fathom.models import Report
from fathom.storage.store import ArtifactStore, runs


async def side_of(store: ArtifactStore, manifest: Mapping[str, Any]) -> Side:
    """Return a finished run as it is compared; one that ended without a report has nothing to compare but that.

    Raises:
        NoReport: the run has not finished.
        StoreError: its files are damaged.
    """
    folder = folder_of(store, manifest)
    run_id, started, query = (str(manifest.get(name, "")) for name in ("run_id", "started", "query"))
    result = await read_json(folder, "result.json")
    if isinstance(result, dict) and result.get("report") is None:
        return Side(run_id, started, query, None, [])
    files = await files_of(store, manifest)
    try:
        report = Report.model_validate_json(files["report.json"])
    except KeyError:
        raise StoreError(f"{folder.path_of('report.json')} is missing.", next_step="restore the file") from None
    except ValidationError as error:
        wrong = error.errors()[0]["msg"]
        message = f"{folder.path_of('report.json')} is not a report of this version: {wrong}."
        raise StoreError(message, next_step="restore the file, or run again") from error
    texts = await asyncio.to_thread(stored_texts, files, results_of(recorded(files)))
    return Side(run_id, started, query, report, texts)


@dataclass(frozen=True)
class Ended:
    """A run of a watch that has ended: its manifest and its result, as they are stored."""

    manifest: dict[str, Any]
    result: dict[str, Any]

    @property
    def run_id(self) -> str:
        """Its id."""
        return str(self.manifest.get("run_id", ""))

    @property
    def started(self) -> str:
        """When it started, ISO 8601, UTC."""
        return str(self.manifest.get("started", ""))


async def runs_of(store: ArtifactStore, watch: str) -> list[Ended]:
    """Return the runs of a watch that have ended, the latest first; one whose result cannot be read has none."""
    found: list[Ended] = []
    for manifest in await runs(store):
        if manifest.get("watch") == watch:
            try:
                result = await read_json(folder_of(store, manifest), "result.json")
            except StoreError:
                result = {}
            if result is not None:
                found.append(Ended(manifest, result if isinstance(result, dict) else {}))
    return sorted(found, key=lambda run: run.started, reverse=True)

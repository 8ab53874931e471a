"""Stored runs as they are compared, and the runs of a watch."""

from __future__ import annotations

import asyncio
from typing import NamedTuple

from fathom.changes.comparing import Side
from fathom.errors import StoreError
from fathom.evidence.provenance import results_of
from fathom.evidence.stored import stored_texts
from fathom.flows.runs.index import RunIndex
from fathom.flows.runs.stored import files_of, recorded
from fathom.models import RunResult
from fathom.storage.runs import StoredRun
from fathom.storage.store import REPORT, ArtifactStore


class Ended(NamedTuple):
    """A run that has ended, and its result; None if that cannot be read."""

    run: StoredRun
    result: RunResult | None


async def side_of(run: StoredRun) -> Side:
    """Return a finished run as it is compared; one that ended without a report has nothing to compare but that.

    Raises:
        NoReport: the run has not finished.
        StoreError: its files are damaged.
    """
    result = await run.files.result()
    if result and result.report is None:
        return Side(run.run_id, run.started, run.query, None, [])
    files, report = await files_of(run), await run.files.report()
    if report is None:
        raise StoreError(f"{run.files.path_of(REPORT)} is missing.", next_step="restore the file")
    texts = await asyncio.to_thread(stored_texts, files, results_of(recorded(files)))
    return Side(run.run_id, run.started, run.query, report, texts)


async def runs_of(store: ArtifactStore, watch: str) -> list[Ended]:
    """Return the runs of a watch that have ended, the latest first."""
    found: list[Ended] = []
    for run in await RunIndex(store).read():
        if run.watch == watch:
            try:
                result = await run.files.result()
            except StoreError:
                found.append(Ended(run, None))
            else:
                found += [Ended(run, result)] if result else []
    return sorted(found, key=lambda ended: ended.run.started, reverse=True)

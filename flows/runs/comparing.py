"""Checking and comparing stored runs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import NamedTuple

from fathom.changes.comparing import ComparedRun
from fathom.errors import StoreError
from fathom.evidence.provenance import results_of
from fathom.evidence.stored import stored_texts
from fathom.evidence.trace import Trace, trace
from fathom.evidence.verify import Verification, misquotations, verify_run
from fathom.flows.runs.index import RunIndex
from fathom.flows.runs.stored import files_of, recorded
from fathom.models import RunResult
from fathom.models.evidence import Discrepancy
from fathom.storage.runs import StoredRun
from fathom.storage.store import REPORT, ArtifactStore


class Ended(NamedTuple):
    """A run that has ended, and its result; None if the result cannot be read."""

    run: StoredRun
    result: RunResult | None


async def side_of(run: StoredRun) -> ComparedRun:
    """Return a finished run for a comparison; without a report, only its ending can be compared.

    Raises:
        NoReport: the run has not finished.
        StoreError: its files are damaged.
    """
    result = await run.files.result()
    if result and result.report is None:
        return ComparedRun(run.run_id, run.started, run.query, None, [])
    files, report = await files_of(run), await run.files.report()
    if report is None:
        raise StoreError(f"{run.files.path_of(REPORT)} is missing.", next_step="restore the file")
    texts = await asyncio.to_thread(stored_texts, files, results_of(recorded(files)))
    return ComparedRun(run.run_id, run.started, run.query, report, texts)


async def runs_of(store: ArtifactStore, is_of_watch: Callable[[StoredRun], bool]) -> list[Ended]:
    """Return the runs of a watch that have ended, the latest first."""
    found: list[Ended] = []
    for run in await RunIndex(store).read():
        if is_of_watch(run):
            try:
                result = await run.result()
            except StoreError:
                found.append(Ended(run, None))
            else:
                found += [Ended(run, result)] if result else []
    return sorted(found, key=lambda ended: ended.run.started, reverse=True)


async def verified(run: StoredRun) -> Verification:
    """Check every file, quote and verdict of a run again.

    Raises:
        NoReport: it has no report, or its evidence was removed.
        StoreError: its record is damaged.
    """
    return await asyncio.to_thread(verify_run, await files_of(run))


async def traced(run: StoredRun, number: int) -> tuple[Trace, list[Discrepancy]]:
    """Return a claim with the way to each of its quotes, and the quotes that the stored bytes do not contain any more.

    Raises:
        InvalidInput: the report has no claim of that number.
        NoReport: the run has no report, or its evidence was removed.
        StoreError: its record is damaged.
    """
    files = await files_of(run)
    found = await asyncio.to_thread(trace, recorded(files), files, number)
    return found, list(misquotations(found.claim, files))

"""A stored run checked again: the same for `fathom verify`, `fathom trace` and the server."""

from __future__ import annotations

import asyncio

from fathom.evidence.trace import Trace, trace
from fathom.evidence.verify import Verification, misquotations, verify_run
from fathom.flows.runs.stored import files_of, recorded
from fathom.models.evidence import Problem
from fathom.storage.runs import StoredRun


async def verified(run: StoredRun) -> Verification:
    """Check every file, quote and verdict of a run again.

    Raises:
        NoReport: it has no report, or its evidence was removed.
        StoreError: its record is damaged.
    """
    return await asyncio.to_thread(verify_run, await files_of(run))


async def traced(run: StoredRun, number: int) -> tuple[Trace, list[Problem]]:
    """Return a claim with the way to each of its quotes, and the quotes that the stored bytes do not contain any more.

    Raises:
        InvalidInput: the report has no claim of that number.
        NoReport: the run has no report, or its evidence was removed.
        StoreError: its record is damaged.
    """
    files = await files_of(run)
    found = await asyncio.to_thread(trace, recorded(files), files, number)
    return found, list(misquotations(found.claim, files))

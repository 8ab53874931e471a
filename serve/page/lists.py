"""What the page lists, as far as the caller may see it."""

from __future__ import annotations

from fathom.client.shapes import RunList, RunState, RunSummary
from flows.listing import latest as rows
from serve.access.caller import Caller
from serve.runs.desk import Desk

_STATES = {"completed": RunState.complete, "crashed": RunState.interrupted}


async def latest(desk: Desk, caller: Caller, *, limit: int, cursor: str = "", **filters: str) -> RunList:
    """Return the runs that the caller may see, the newest first."""
    found = []
    for row in await rows(desk.store, 200):
        own = await desk.owners.of(row.run_id, [])
        words = filters.get("text", "").casefold().split()
        state = _STATES.get(row.state) or (RunState(row.state) if row.state in list(RunState) else RunState.interrupted)
        if not own.readable_by(caller) or not all(word in row.query.casefold() for word in words):
            continue
        if filters.get("state") and state != filters["state"]:
            continue
        found.append(
            RunSummary(
                id=row.run_id,
                question=row.query,
                state=state,
                created=row.started,
                owner=own.owner,
                shared=own.shared,
                parent=row.parent or None,
            )
        )
    start = int(cursor or 0)
    return RunList(runs=found[start : start + limit], next=str(start + limit) if len(found) > start + limit else None)

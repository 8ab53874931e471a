"""Searching the runs that somebody may read."""

from __future__ import annotations

from fathom.client.shapes import LibraryHits
from fathom.config.inputs import check_query
from fathom.errors import RunNotFound
from fathom.flows.runs.library import MOST_HITS
from fathom.service.caller import Caller
from fathom.service.runs import RunService


async def search(service: RunService, caller: Caller, query: str, limit: int) -> LibraryHits:
    """Return the sentences closest to a query in the runs that the caller may read.

    Raises:
        InvalidInput: the query is empty or too long.
    """

    async def may_read(run_id: str) -> bool:
        if caller.is_admin:
            return True
        if own := await service.owners.stored(run_id):
            return (await service.links.with_guest(own, run_id, caller)).readable_by(caller)
        try:  # Prefect alone may know whose it is
            return bool(await service.open(caller, run_id))
        except RunNotFound:
            return False

    hits = await service.library.search(check_query(query), min(limit, MOST_HITS), may_read)
    linked = [hit.model_copy(update={"link": f"/runs/{hit.run_id}"}) for hit in hits]
    return LibraryHits(query=query, hits=linked)

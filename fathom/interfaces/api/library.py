"""The library: all earlier runs, searched at once."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query

from fathom.client.shapes import LibraryHits
from fathom.interfaces.dependencies import TheCaller, TheService
from fathom.service import library

router = APIRouter(prefix="/api/v1/library", tags=["runs"])


@router.get("", summary="Search earlier runs")
async def search_library(
    service: TheService,
    caller: TheCaller,
    q: Annotated[str, Query(min_length=1, max_length=1_000, description="Words, or a question.")],
    limit: Annotated[int, Query(ge=1, le=100, description="Maximum number of sentences.")] = 20,
) -> LibraryHits:
    """Search the questions, answers, notes and sources of the finished runs that you may read, the best first."""
    return await library.search(service, caller, q, limit)

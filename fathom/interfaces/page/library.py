"""*Library*: all earlier runs, searched by what they asked, answered, noted and read."""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.responses import Response

from fathom.interfaces.dependencies import TheCaller, TheService
from fathom.interfaces.page.rendering import page
from fathom.service import library

router = APIRouter(prefix="/library", include_in_schema=False)
_HITS = 30


@router.get("")
async def search(request: Request, service: TheService, caller: TheCaller, q: str = "") -> Response:
    """Search the runs that the caller may read."""
    query = q.strip()[:1_000]
    found = (await library.search(service, caller, query, _HITS)).hits if query else []
    return page(request, "library", query=query, hits=found, may_ask=caller.may_ask)

"""*Runs* and *Settings*."""

from __future__ import annotations

import asyncio
from urllib.parse import urlencode

from fastapi import APIRouter, Request
from starlette.responses import Response

from fathom.client.shapes import RunState
from fathom.config.environment import Environment
from flows.diagnosis import examine
from serve.page.lists import latest
from serve.page.rendering import page
from serve.state import TheCaller, TheDesk

PAGE = 25

router = APIRouter(include_in_schema=False)


@router.get("/runs")
async def runs(
    request: Request,
    desk: TheDesk,
    caller: TheCaller,
    *,
    text: str = "",
    state: str = "",
    owner: str = "",
    cursor: str = "",
) -> Response:
    """List runs: searched, filtered, page by page."""
    filters = {"text": text.strip()[:200], "state": state if state in list(RunState) else "", "owner": owner[:100]}
    found = await latest(desk, caller, limit=PAGE, cursor=cursor, **filters)
    more = urlencode({**{name: value for name, value in filters.items() if value}, "cursor": found.next or ""})
    return page(request, "runs", found=found, filters=filters, more=more, first=not cursor)


@router.get("/settings")
async def settings(request: Request, desk: TheDesk, caller: TheCaller) -> Response:
    """Show what is configured, and never a secret."""
    findings = await asyncio.to_thread(lambda: list(examine()))
    return page(
        request,
        "settings",
        findings=findings,
        options=desk.options,
        store=desk.store.address(),
        model=Environment.read().model,
    )

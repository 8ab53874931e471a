"""*Runs* and *Settings*."""

from __future__ import annotations

from urllib.parse import urlencode

from fastapi import APIRouter, Request
from starlette.responses import Response

from fathom.interfaces.dependencies import TheCaller, TheDesk
from fathom.interfaces.page.rendering import page
from fathom.models import RunState
from fathom.service.caller import Role
from fathom.service.run_list import RunFilter
from fathom.service.status import status

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
    states = frozenset({RunState(filters["state"])} if filters["state"] else ())
    wanted = RunFilter(states=states, words=filters["text"], owner=filters["owner"].strip() or None)
    found = await desk.latest(caller, wanted, limit=PAGE, cursor=cursor)
    more = urlencode({**{name: value for name, value in filters.items() if value}, "cursor": found.next or ""})
    return page(request, "runs", found=found, filters=filters, more=more, first=not cursor)


@router.get("/settings")
async def settings(request: Request, desk: TheDesk, caller: TheCaller) -> Response:
    """Show what is configured, and never a secret."""
    return page(
        request,
        "settings",
        found=await status(desk, caller),
        options=desk.options,
        store=desk.store.address() if caller.role is Role.admin else "",
    )

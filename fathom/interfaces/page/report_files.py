"""The report as a page, as files to take away, and the files that it leads to."""

from __future__ import annotations

import mimetypes
from http import HTTPStatus
from typing import Annotated

from fastapi import APIRouter, Path
from starlette.responses import RedirectResponse, Response

from fathom.changes.model import CHANGES_FILES
from fathom.client.shapes import MEDIA_TYPES, Form
from fathom.errors import NotThere, RunNotFound, UserError
from fathom.flows.runs.finding import find_run
from fathom.flows.runs.stored import find as find_stored
from fathom.interfaces.dependencies import TheCaller, TheDesk
from fathom.report.html import render_html, unsafe
from fathom.service.caller import Caller
from fathom.service.runs import Desk
from fathom.storage.names import slug
from fathom.storage.store import REPORT_PAGE

router = APIRouter(prefix="/runs/{run_id}", include_in_schema=False)
_PAGES = (REPORT_PAGE, CHANGES_FILES[-1])
_SANDBOX = "sandbox allow-scripts allow-popups allow-popups-to-escape-sandbox allow-downloads; frame-ancestors 'self'"
"""Added to the policy that a report has in itself: by itself, too, it cannot act for whoever reads it."""
_NAME = Annotated[str, Path(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.-]{0,250}$")]
_PLAIN = {"X-Content-Type-Options": "nosniff", "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'"}
_FRAMED = (b'rel="noopener noreferrer nofollow"', b'rel="noopener noreferrer nofollow" target="_blank"')
_BESIDE = ((b'<a href="./', b'<a target="_blank" href="./'), (b'<a href="../', b'<a target="_blank" href="../'))
"""Inside of a frame, what leads out of the report opens beside it."""


@router.get("/report")
async def report(run_id: str, desk: TheDesk, caller: TheCaller, framed: str = "") -> Response:
    """Return the stored report as it is, with its own policy."""
    return await _page(desk, caller, run_id, REPORT_PAGE, framed=bool(framed))


@router.get("/export/{form}")
async def export(run_id: str, form: Form, desk: TheDesk, caller: TheCaller) -> Response:
    """Return the report as a file to keep."""
    data = await desk.report(caller, run_id, form)
    title = (await desk.report_data(caller, run_id)).title
    name = slug(title)[:80] or "report"
    headers = {**_PLAIN, "Content-Disposition": f'attachment; filename="{name}.{form}"'}
    return Response(data, media_type=MEDIA_TYPES[form], headers=headers)


@router.get("/{name}")
async def file(run_id: str, name: _NAME, desk: TheDesk, caller: TheCaller) -> Response:
    """Return a file of a run, which its report leads to: as text, and never as a page of its own."""
    try:
        found = await find_run(desk.store, run_id)
    except RunNotFound:
        if earlier := await _in_folder(desk, caller, run_id):
            return RedirectResponse(f"/runs/{earlier}", HTTPStatus.SEE_OTHER)
        raise
    if name in _PAGES:
        return await _page(desk, caller, run_id, name, framed=False)
    data = (await desk.files(caller, found.run_id, [name]))[name]
    kind = mimetypes.guess_type(name)[0] or "text/plain"
    readable = kind.startswith("text/") or kind == "application/json"
    headers = dict(_PLAIN) if readable else {**_PLAIN, "Content-Disposition": f'attachment; filename="{name}"'}
    return Response(data, media_type="text/plain" if readable else kind, headers=headers)


async def _in_folder(desk: Desk, caller: Caller, name: str) -> str:
    """Return the id of the run in a folder, which the report of a follow-up names; empty if there is none to see."""
    try:
        found, _ = await desk.readable(caller, (await find_stored(desk.store, name)).run_id)
    except UserError:
        return ""
    return found.run_id


async def _page(desk: Desk, caller: Caller, run_id: str, name: str, *, framed: bool) -> Response:
    data = (await desk.files(caller, run_id, [name]))[name]
    if why := unsafe(data):
        if name != REPORT_PAGE:
            raise NotThere(f"The stored page {why}, so it is not shown.")
        data = render_html(await desk.report_data(caller, run_id)).encode()  # of another version, or from elsewhere
    if framed:
        for old, new in (_FRAMED, *_BESIDE):
            data = data.replace(old, new)
    policy = data.decode().partition('Security-Policy" content="')[2].partition('"')[0].replace("&#39;", "'")
    headers = {
        "Content-Security-Policy": f"{policy}; {_SANDBOX}",
        "X-Frame-Options": "SAMEORIGIN",
        "X-Content-Type-Options": "nosniff",
        "Referrer-Policy": "no-referrer",
        "Cache-Control": "no-store",
    }
    return Response(data, media_type="text/html", headers=headers)

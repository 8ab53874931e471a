"""The report as a page, as files to take away, and the files that it leads to; and what a public link shows of them."""

from __future__ import annotations

import hashlib
import mimetypes
import re
from http import HTTPStatus
from typing import Annotated

from fastapi import APIRouter, Depends, Path, Query, Request
from starlette.responses import RedirectResponse, Response

from fathom.changes.model import CHANGES_FILES
from fathom.client.shapes import MEDIA_TYPES, Form
from fathom.errors import NotThere, RunNotFound
from fathom.evidence.provenance import alone
from fathom.evidence.stored import StoredText, locate
from fathom.interfaces.dependencies import RunId, TheCaller, TheGate, TheRun, TheService
from fathom.interfaces.page.rendering import page
from fathom.report.html import render_html, unsafe
from fathom.service import reports
from fathom.service.links import PUBLIC
from fathom.service.runs import RunHandle
from fathom.storage.names import slug
from fathom.storage.store import REPORT_PAGE

router = APIRouter(prefix="/runs/{run_id}", include_in_schema=False)
_PAGES = (REPORT_PAGE, CHANGES_FILES[-1])
_SANDBOX = "sandbox allow-scripts allow-popups allow-popups-to-escape-sandbox allow-downloads; frame-ancestors 'self'"
"""Added to the policy that a report has in itself: by itself, too, it cannot act for whoever reads it."""
FileName = Annotated[str, Path(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.-]{0,250}$")]
Place = Annotated[str, Query(alias="bytes", pattern=r"^(\d{1,12}-\d{1,12})?$")]
"""From which byte of a file to which one, as the links of a report name them."""
_PLAIN = {"Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'"}
_FRAMED = (b'rel="noopener noreferrer nofollow"', b'rel="noopener noreferrer nofollow" target="_blank"')
_BELOW = (b"<body>", b'<body class="framed">')
"""There the question stands above the report, which leaves it out."""
_BESIDE = ((b'<a href="./', b'<a target="_blank" href="./'), (b'<a href="../', b'<a target="_blank" href="../'))
"""Inside of a frame, what leads out of the report opens beside it."""


@router.get("/report")
async def report(run: TheRun, framed: str = "") -> Response:
    """Return the stored report as it is, with its own policy."""
    return await report_page(run, REPORT_PAGE, framed=bool(framed))


@router.get("/export/{form}")
async def export(run: TheRun, form: Form) -> Response:
    """Return the report as a file to keep."""
    data = await reports.exported(run, form)
    title = (await run.report_data()).title
    name = slug(title)[:80] or "report"
    headers = {**_PLAIN, "Content-Disposition": f'attachment; filename="{name}.{form}"'}
    return Response(data, media_type=MEDIA_TYPES[form], headers=headers)


@router.get("/{name}")
async def file(
    run_id: str, name: FileName, *, request: Request, service: TheService, caller: TheCaller, place: Place = ""
) -> Response:
    """Return a file of a run, which its report leads to: as text, and never as a page of its own."""
    try:
        run = await service.open(caller, run_id)
    except RunNotFound:
        if earlier := await service.in_folder(caller, run_id):
            return RedirectResponse(f"/runs/{earlier}", HTTPStatus.SEE_OTHER)
        raise
    if name in _PAGES:
        return await report_page(run, name)
    return await stored_file(run, name, request, place)


async def stored_file(run: RunHandle, name: str, request: Request, place: str) -> Response:
    """Return a file of a run as text or, if it is none, to be saved; with a `place`, the text that has these bytes."""
    if place and "__step" in name and name.endswith(".json"):  # what a tool returned; other files have no passages
        start, end = map(int, place.split("-"))
        stored = (await run.files([name]))[name]
        for text, first in locate(name, stored):
            if found := StoredText(text.source(), text.text, name, first_byte=first).characters(start, end):
                digest = hashlib.sha256(stored).hexdigest()
                return page(request, "passage", file=name, text=text, found=found, place=place, digest=digest)
    data = await reports.artifact(run, name)
    kind = mimetypes.guess_type(name)[0] or "text/plain"
    readable = kind.startswith("text/") or kind == "application/json"
    headers = dict(_PLAIN) if readable else {**_PLAIN, "Content-Disposition": f'attachment; filename="{name}"'}
    return Response(data, media_type="text/plain" if readable else kind, headers=headers)


async def report_page(run: RunHandle, name: str, *, framed: bool = False, by_itself: bool = False) -> Response:
    """Return a stored page with its own policy; `by_itself`, without the questions of other runs."""
    data = (await run.files([name]))[name]
    if why := unsafe(data):
        if name != REPORT_PAGE:
            raise NotThere(f"The stored page {why}, so it is not shown.")
        data = render_html(await run.report_data()).encode()  # of another version, or from elsewhere
    if by_itself:
        data = alone(data)
    if framed:
        for old, new in (_FRAMED, _BELOW, *_BESIDE):
            data = data.replace(old, new)
    policy = data.decode().partition('Security-Policy" content="')[2].partition('"')[0].replace("&#39;", "'")
    headers = {
        "Content-Security-Policy": f"{policy}; {_SANDBOX}",
        "X-Frame-Options": "SAMEORIGIN",
        "Referrer-Policy": "no-referrer",
    }
    return Response(data, media_type="text/html", headers=headers)


PER_MINUTE = 120
"""Requests from one address."""
_LINKED = re.compile(rb'href="\./([^"/?]+)[?"]')
_UNLISTED = {"X-Robots-Tag": "noindex, nofollow, noarchive", "Referrer-Policy": "no-referrer"}

public = APIRouter(prefix=f"{PUBLIC}{{run_id}}/{{secret}}", include_in_schema=False)


async def _open(run_id: RunId, secret: str, request: Request, gate: TheGate, service: TheService) -> RunHandle:
    gate.rates.take(("public link", request.state.peer), PER_MINUTE)
    return await service.open_public(run_id, secret)


SharedRun = Annotated[RunHandle, Depends(_open)]


@public.get("/")
async def shared_report(run: SharedRun) -> Response:
    """Return the report."""
    return _unlisted(await report_page(run, REPORT_PAGE, by_itself=True))


@public.get("/{name}")
async def shared_file(run: SharedRun, request: Request, name: FileName, place: Place = "") -> Response:
    """Return a file that the report leads to."""
    page = await report_page(run, REPORT_PAGE, by_itself=True)
    if name.encode() not in _LINKED.findall(bytes(page.body)):
        raise NotThere("The report leads to no such file.")
    return _unlisted(await stored_file(run, name, request, place))


def _unlisted(answer: Response) -> Response:
    answer.headers.update(_UNLISTED)
    return answer

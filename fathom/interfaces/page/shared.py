"""What a public link shows to anyone: the report of one run and the stored files that its citations lead to."""

from __future__ import annotations

import re
from typing import Annotated

from fastapi import APIRouter, Depends, Request
from starlette.responses import Response

from fathom.errors import NotThere
from fathom.interfaces.dependencies import RunId, TheGate, TheService
from fathom.interfaces.page.report_files import FileName, Place, report_page, stored_file
from fathom.service.links import PUBLIC
from fathom.service.runs import RunHandle
from fathom.storage.store import REPORT_PAGE

PER_MINUTE = 120
"""Requests from one address."""
_BESIDE = re.compile(rb'href="\./([^"/?]+)[?"]')
_UNLISTED = {"X-Robots-Tag": "noindex, nofollow, noarchive", "Referrer-Policy": "no-referrer"}

router = APIRouter(prefix=f"{PUBLIC}{{run_id}}/{{secret}}", include_in_schema=False)


async def _open(run_id: RunId, secret: str, request: Request, gate: TheGate, service: TheService) -> RunHandle:
    gate.rates.take(("public link", request.state.peer), PER_MINUTE)
    return await service.open_public(run_id, secret)


SharedRun = Annotated[RunHandle, Depends(_open)]


@router.get("/")
async def read(run: SharedRun) -> Response:
    """Return the report."""
    return _unlisted(await report_page(run, REPORT_PAGE, by_itself=True))


@router.get("/{name}")
async def file(run: SharedRun, request: Request, name: FileName, place: Place = "") -> Response:
    """Return a file that the report leads to."""
    page = await report_page(run, REPORT_PAGE, by_itself=True)
    if name.encode() not in _BESIDE.findall(bytes(page.body)):
        raise NotThere("The report leads to no such file.")
    return _unlisted(await stored_file(run, name, request, place))


def _unlisted(answer: Response) -> Response:
    answer.headers.update(_UNLISTED)
    return answer

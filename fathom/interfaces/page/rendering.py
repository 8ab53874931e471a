"""Pages made from templates, with their policy, their style and script, and errors as a page says them."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cache, partial
from http import HTTPMethod, HTTPStatus
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from fastapi import APIRouter, Request
from jinja2 import Environment
from starlette.responses import HTMLResponse, RedirectResponse, Response

from fathom.client.shapes import Problem
from fathom.errors import NotThere
from fathom.interfaces.gate import SECURITY_HEADERS, SIGN_IN
from fathom.interfaces.page.forms import Wrong, csrf_field, csrf_query
from fathom.models import RunState
from fathom.report.chapters import address_in_words
from fathom.report.html import pages_in
from fathom.report.prose import draft_html, inline_html
from fathom.storage.editions import shown_name
from fathom.text.plain import clean_line, counted, size
from fathom.text.urls import host_of, web_address
from fathom.text.wording import ENGLISH

POLICY = f"{SECURITY_HEADERS['Content-Security-Policy']}; frame-src 'self'"
STATES: dict[RunState, tuple[str, str]] = {
    RunState.queued: ("waiting its turn", "plain"),
    RunState.running: ("researching", "busy"),
    RunState.waiting: ("needs your answer", "fair"),
    RunState.interrupted: ("interrupted", "fair"),
    RunState.complete: ("complete", "good"),
    RunState.degraded: ("complete with gaps", "fair"),
    RunState.insufficient_evidence: ("nothing reliable found", "fair"),
    RunState.failed: ("failed", "bad"),
    RunState.cancelled: ("cancelled", "plain"),
    RunState.unreadable: ("unreadable", "bad"),
}
"""How the page names each state, and its colour."""
_MINUTE, _HOUR = 60, 3_600


def page(
    request: Request, name: str, status: int | None = None, *, wrong: Wrong | None = None, **values: Any
) -> HTMLResponse:
    """Return a page as a response; `values` are what its template names, `wrong` what is wrong with its form."""
    caller = getattr(request.state, "caller", None)
    status = status or (HTTPStatus.UNPROCESSABLE_ENTITY if wrong else HTTPStatus.OK)
    template = templates().get_template(f"{name}.html.j2")
    text = template.render(request=request, caller=caller, path=request.url.path, wrong=wrong or Wrong(), **values)
    return HTMLResponse(text, status, {"Content-Security-Policy": POLICY})


@cache
def templates() -> Environment:
    """Return the templates, with what they may name."""
    made = pages_in(Path(__file__).parent / "templates")
    made.globals.update(static=address_of, csrf=csrf_field, csrf_query=csrf_query, counted=counted, states=STATES)
    made.filters.update(line=clean_line, web=web_address, host=host_of, draft=draft_html, inline=inline_html)
    made.filters.update(place=partial(address_in_words, words=ENGLISH), shown=shown_name)
    made.filters.update(when=when, stamp=stamp, took=took, money=money, count=count, size=size)
    return made


def when(text: str) -> str:
    """Return a time as people write it: `today 14:05`, `23 Nov 14:05`, with the year if it is another. In UTC."""
    try:
        at = datetime.fromisoformat(text).astimezone(UTC)
    except ValueError:
        return text
    today = datetime.now(UTC)
    if at.date() == today.date():
        return f"today {at:%H:%M} UTC"
    return f"{at.day} {at:%b}{'' if at.year == today.year else f' {at.year}'} {at:%H:%M} UTC"


def stamp(text: str) -> str:
    """Return the time of day, with seconds."""
    return text[11:19]


def took(seconds: float) -> str:
    """Return a length of time: `8 s`, `2 min 5 s`, `1 h 3 min`."""
    whole = round(seconds)
    if whole < _MINUTE:
        return f"{whole} s"
    if whole < _HOUR:
        return f"{whole // _MINUTE} min {whole % _MINUTE} s"
    return f"{whole // _HOUR} h {whole % _HOUR // _MINUTE} min"


def money(usd: float | None) -> str:
    """Return an amount of dollars, with as many digits as it needs."""
    if usd is None:
        return "not known"
    if usd and usd < 0.01:
        return f"${usd:.4f}"
    return f"${usd:,.2f}"


def count(number: float) -> str:
    """Return a large number in few characters: `950`, `12 k`, `3 M`."""
    for limit, unit in ((1_000_000, "M"), (1_000, "k")):
        if number >= 10 * limit:
            return f"{number / limit:,.0f} {unit}"
        if number >= limit:
            return f"{number / limit:.1f} {unit}".replace(".0", "")
    return f"{number:,.0f}"


PREFIX = "/static/"
_FOLDER = Path(__file__).parent / "static"
_TYPES = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}

router = APIRouter(include_in_schema=False)


@cache
def _files() -> dict[str, tuple[str, bytes]]:
    """Return the name in an address, and the content, of each file by its own name."""
    found = {path: path.read_bytes() for path in _FOLDER.iterdir() if path.suffix in _TYPES}
    return {
        path.name: (f"{path.stem}.{hashlib.sha256(data).hexdigest()[:12]}{path.suffix}", data)
        for path, data in found.items()
    }


def address_of(name: str) -> str:
    """Return the address of a file."""
    return f"{PREFIX}{_files()[name][0]}"


@router.get(PREFIX + "{name}")
async def read(name: str) -> Response:
    """Return a file."""
    data = next((data for address, data in _files().values() if address == name), None)
    if data is None:
        raise NotThere("There is no such file.")
    headers = {"Cache-Control": "public, max-age=31536000, immutable"}
    return Response(data, media_type=_TYPES[Path(name).suffix], headers=headers)


_HEADINGS = {
    HTTPStatus.FORBIDDEN: "You may not do this",
    HTTPStatus.NOT_FOUND: "There is nothing here",
    HTTPStatus.METHOD_NOT_ALLOWED: "That cannot be done here",
    HTTPStatus.CONFLICT: "That is not possible now",
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE: "That is too large",
    HTTPStatus.MISDIRECTED_REQUEST: "This server has another name",
    HTTPStatus.UNPROCESSABLE_ENTITY: "That cannot be used",
    HTTPStatus.TOO_MANY_REQUESTS: "That was a lot at once",
    HTTPStatus.SERVICE_UNAVAILABLE: "Not available right now",
}


def answer(request: Request, problem: Problem, headers: Mapping[str, str]) -> Response:
    """Return a problem as a page; whoever is not signed in is sent where they can."""
    if problem.status == HTTPStatus.UNAUTHORIZED and request.method == HTTPMethod.GET:
        there = request.url.path + (f"?{request.url.query}" if request.url.query else "")
        return RedirectResponse(f"{SIGN_IN}?{urlencode({'next': there}, safe='/')}", HTTPStatus.SEE_OTHER)
    heading = _HEADINGS.get(HTTPStatus(problem.status), problem.title)
    shown = page(request, "error", problem.status, problem=problem, heading=heading)
    if again := headers.get("Retry-After"):
        shown.headers["Retry-After"] = again
    return shown

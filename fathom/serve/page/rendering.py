"""Pages made from templates, and the policy that they are sent with."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import cache
from http import HTTPStatus
from pathlib import Path
from typing import Any

from fastapi import Request
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.responses import HTMLResponse

from fathom.models import RunState
from fathom.report.prose import draft_html
from fathom.serve.page.assets import address_of
from fathom.serve.page.forms import csrf_field, csrf_query
from fathom.text.plain import clean_line, counted, size
from fathom.text.urls import web_address

POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "frame-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
}
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


def page(request: Request, name: str, status: int = HTTPStatus.OK, **values: Any) -> HTMLResponse:
    """Return a page as a response; `values` are what its template names."""
    caller = getattr(request.state, "caller", None)
    template = templates().get_template(f"{name}.html.j2")
    text = template.render(request=request, caller=caller, path=request.url.path, **values)
    return HTMLResponse(text, status, HEADERS)


@cache
def templates() -> Environment:
    """Return the templates: what they show is escaped, and a name that they do not know is an error."""
    made = Environment(
        loader=FileSystemLoader(Path(__file__).parent / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.globals.update(static=address_of, csrf=csrf_field, csrf_query=csrf_query, counted=counted, states=STATES)
    made.filters.update(line=clean_line, web=web_address, draft=draft_html)
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

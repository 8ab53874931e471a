"""Errors as a page says them."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPMethod, HTTPStatus
from urllib.parse import urlencode

from fastapi import Request
from starlette.responses import RedirectResponse, Response

from fathom.client.shapes import Problem
from fathom.serve.access.gate import SIGN_IN
from fathom.serve.page.rendering import page

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

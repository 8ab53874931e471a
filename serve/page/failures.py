"""Errors as a page says them, where a browser asked for a page."""

from __future__ import annotations

from http import HTTPStatus
from urllib.parse import urlencode

import httpx
from fastapi import Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import RedirectResponse, Response

from fathom.client.shapes import Problem
from fathom.errors import FathomError
from serve import problems
from serve.page.rendering import page

_HEADINGS = {
    HTTPStatus.FORBIDDEN: "You may not do this",
    HTTPStatus.NOT_FOUND: "There is nothing here",
    HTTPStatus.CONFLICT: "That does not go together",
    HTTPStatus.UNPROCESSABLE_ENTITY: "That cannot be used",
    HTTPStatus.TOO_MANY_REQUESTS: "That was a lot at once",
    HTTPStatus.SERVICE_UNAVAILABLE: "Not available right now",
}
_HANDLERS = {
    FathomError: problems.on_failure,
    RequestValidationError: problems.on_invalid,
    HTTPException: problems.on_http,
    httpx.HTTPError: problems.on_outage,
}
_MACHINES = ("/api/", "/v1/", "/mcp")
SIGN_IN = "/sign-in"


def wants_page(request: Request) -> bool:
    """Whether a browser asks for a page, and no program for data."""
    return not request.url.path.startswith(_MACHINES) and "text/html" in request.headers.get("accept", "")


async def on_error(request: Request, error: Exception) -> Response:
    """Answer with an error: as a page if one was asked for, else as data."""
    handler = next(handler for kind, handler in _HANDLERS.items() if isinstance(error, kind))
    answered = await handler(request, error)
    if not wants_page(request):
        return answered
    problem = Problem.model_validate_json(bytes(answered.body))
    if problem.status == HTTPStatus.UNAUTHORIZED and request.url.path != SIGN_IN:
        there = request.url.path + (f"?{request.url.query}" if request.url.query else "")
        return RedirectResponse(f"{SIGN_IN}?{urlencode({'next': there})}", HTTPStatus.SEE_OTHER)
    heading = _HEADINGS.get(HTTPStatus(problem.status), problem.title)
    shown = page(request, "error", problem.status, problem=problem, heading=heading)
    if again := answered.headers.get("Retry-After"):
        shown.headers["Retry-After"] = again
    return shown

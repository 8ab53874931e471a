"""Errors as `application/problem+json` (RFC 9457), with the codes of docs/errors.md."""

from __future__ import annotations

from http import HTTPStatus

from fastapi import Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException
from starlette.routing import Match

from fathom.client.shapes import Problem
from fathom.config.secrets import without_credentials
from fathom.errors import (
    FathomError,
    MissingCredential,
    NoReport,
    RunBusy,
    RunNotFound,
    ServerLost,
    ServerUnreachable,
    StoreError,
    UserError,
)
from fathom.errors.serving import (
    Conflict,
    ForeignPage,
    NotAcceptable,
    NotAllowed,
    NotInstalled,
    NotReady,
    NotSignedIn,
    NotThere,
    TooLarge,
    TooManyRequests,
    WrongHost,
    WrongMediaType,
)
from serve.access.caller import Caller, Role
from serve.chat import errors as openai

_STATUS: dict[type[FathomError], HTTPStatus] = {
    NotSignedIn: HTTPStatus.UNAUTHORIZED,
    NotAllowed: HTTPStatus.FORBIDDEN,
    ForeignPage: HTTPStatus.FORBIDDEN,
    WrongHost: HTTPStatus.MISDIRECTED_REQUEST,
    TooLarge: HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    RunNotFound: HTTPStatus.NOT_FOUND,
    NotThere: HTTPStatus.NOT_FOUND,
    NoReport: HTTPStatus.NOT_FOUND,
    NotAcceptable: HTTPStatus.NOT_ACCEPTABLE,
    Conflict: HTTPStatus.CONFLICT,
    RunBusy: HTTPStatus.CONFLICT,
    WrongMediaType: HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
    NotInstalled: HTTPStatus.NOT_IMPLEMENTED,
    TooManyRequests: HTTPStatus.TOO_MANY_REQUESTS,
    NotReady: HTTPStatus.SERVICE_UNAVAILABLE,
    ServerUnreachable: HTTPStatus.SERVICE_UNAVAILABLE,
    ServerLost: HTTPStatus.SERVICE_UNAVAILABLE,
    StoreError: HTTPStatus.SERVICE_UNAVAILABLE,
    MissingCredential: HTTPStatus.UNPROCESSABLE_ENTITY,
    UserError: HTTPStatus.UNPROCESSABLE_ENTITY,
}
_HELP = "fathom research --help"
MEDIA_TYPE = "application/problem+json"


def status_of(error: FathomError) -> HTTPStatus:
    """Return the HTTP status of a failure: that of its class, or of the nearest class above."""
    kinds = (kind for kind in type(error).__mro__ if issubclass(kind, FathomError))
    return next((_STATUS[kind] for kind in kinds if kind in _STATUS), HTTPStatus.INTERNAL_SERVER_ERROR)


def problem_of(error: FathomError) -> Problem:
    """Return what a client is told of a failure."""
    status = status_of(error)
    return Problem(
        type=f"urn:fathom:error:{error.code}",
        title=status.phrase,
        status=status,
        # It may repeat what was sent; a setting is an option of the command line.
        detail=without_credentials(error.message).removeprefix("--"),
        code=error.code,
        next_step=(error.next_step or error.remedy).replace(_HELP, "GET /api/v1/settings/schema describes them"),
    )


def answer(
    request: Request, problem: Problem, headers: dict[str, str] | None = None, error: Exception | None = None
) -> JSONResponse:
    """Return a problem as a response, in the form that is expected where the request went."""
    if openai.speaks_openai(request):
        return openai.answer(problem, headers or {}, error)
    return JSONResponse(problem.model_dump(), problem.status, headers, media_type=MEDIA_TYPE)


def hide_store(error: FathomError, caller: Caller | None, root: str) -> None:
    """Take out of a failure where on the server its store is: only administrators may know."""
    if caller is None or caller.role is not Role.admin:
        error.message = error.message.replace(root, "the store")
        error.next_step = error.next_step and error.next_step.replace(root, "the store")


async def on_failure(request: Request, error: Exception) -> JSONResponse:
    """Answer with a failure that Fathom names."""
    assert isinstance(error, FathomError)
    headers = {"Retry-After": str(int(error.retry_after) + 1)} if error.retry_after is not None else {}
    if isinstance(error, NotSignedIn):
        headers["WWW-Authenticate"] = "Bearer"
    hide_store(error, getattr(request.state, "caller", None), request.app.state.desk.store.address())
    return answer(request, problem_of(error), headers, error)


async def on_invalid(request: Request, error: Exception) -> JSONResponse:
    """Answer to a request that does not have the form that the document describes."""
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    place = ".".join(str(part) for part in first["loc"][1:]) or str(first["loc"][0])
    status = HTTPStatus.UNPROCESSABLE_ENTITY
    wrong = without_credentials(f"{place}: {first['msg']}")
    return answer(request, Problem(title=status.phrase, status=status, detail=wrong, code="E4001"))


async def on_http(request: Request, error: Exception) -> JSONResponse:
    """Answer with an error of the framework, such as an address that does not exist."""
    assert isinstance(error, HTTPException)
    status = HTTPStatus(error.status_code)
    headers = dict(error.headers or {})
    if status is HTTPStatus.METHOD_NOT_ALLOWED:  # the framework names the methods of one route only
        headers["Allow"] = ", ".join(methods_at(request)) or headers.get("Allow", "")
    return answer(request, Problem(title=status.phrase, status=status, detail=str(error.detail)), headers)


def methods_at(request: Request) -> list[str]:
    """Return the methods that an address knows, over all of its routes."""
    found: set[str] = set()
    for method in ("DELETE", "GET", "PATCH", "POST", "PUT"):
        scope = {**request.scope, "method": method}
        if any(route.matches(scope)[0] is Match.FULL for route in request.app.routes):
            found.add(method)
    return sorted(found)

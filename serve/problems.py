"""Errors as `application/problem+json` (RFC 9457), with the codes of docs/errors.md."""

from __future__ import annotations

from http import HTTPStatus

from fastapi import Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from fathom.client.shapes import Problem
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
from fathom.errors.serving import Conflict, NotAllowed, NotReady, NotSignedIn, NotThere, TooManyRequests

_STATUS: dict[type[FathomError], HTTPStatus] = {
    NotSignedIn: HTTPStatus.UNAUTHORIZED,
    NotAllowed: HTTPStatus.FORBIDDEN,
    RunNotFound: HTTPStatus.NOT_FOUND,
    NotThere: HTTPStatus.NOT_FOUND,
    NoReport: HTTPStatus.NOT_FOUND,
    Conflict: HTTPStatus.CONFLICT,
    RunBusy: HTTPStatus.CONFLICT,
    TooManyRequests: HTTPStatus.TOO_MANY_REQUESTS,
    NotReady: HTTPStatus.SERVICE_UNAVAILABLE,
    ServerUnreachable: HTTPStatus.SERVICE_UNAVAILABLE,
    ServerLost: HTTPStatus.SERVICE_UNAVAILABLE,
    StoreError: HTTPStatus.SERVICE_UNAVAILABLE,
    MissingCredential: HTTPStatus.UNPROCESSABLE_ENTITY,
    UserError: HTTPStatus.UNPROCESSABLE_ENTITY,
}
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
        detail=error.message,
        code=error.code,
        next_step=error.next_step or error.remedy,
    )


def answer(problem: Problem, headers: dict[str, str] | None = None) -> JSONResponse:
    """Return a problem as a response."""
    return JSONResponse(problem.model_dump(), problem.status, headers, media_type=MEDIA_TYPE)


async def on_failure(_request: Request, error: Exception) -> JSONResponse:
    """Answer with a failure that Fathom names."""
    assert isinstance(error, FathomError)
    headers = {"Retry-After": str(int(error.retry_after) + 1)} if error.retry_after is not None else {}
    if isinstance(error, NotSignedIn):
        headers["WWW-Authenticate"] = "Bearer"
    return answer(problem_of(error), headers)


async def on_invalid(_request: Request, error: Exception) -> JSONResponse:
    """Answer to a request that does not have the form that the document describes."""
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    place = ".".join(str(part) for part in first["loc"][1:]) or str(first["loc"][0])
    status = HTTPStatus.UNPROCESSABLE_ENTITY
    return answer(Problem(title=status.phrase, status=status, detail=f"{place}: {first['msg']}", code="E4001"))


async def on_http(_request: Request, error: Exception) -> JSONResponse:
    """Answer with an error of the framework, such as an address that does not exist."""
    assert isinstance(error, HTTPException)
    status = HTTPStatus(error.status_code)
    return answer(Problem(title=status.phrase, status=status, detail=str(error.detail)), dict(error.headers or {}))

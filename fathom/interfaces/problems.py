"""Errors as `application/problem+json` (RFC 9457), with the codes of docs/errors.md."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from http import HTTPStatus

import httpx
from fastapi import Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException
from starlette.routing import Match

from fathom.client.shapes import Problem
from fathom.config.given import wrong_in
from fathom.config.secrets import without_credentials
from fathom.errors import (
    Conflict,
    FathomError,
    ForeignPage,
    InvalidInput,
    InvalidState,
    MissingCredential,
    NoReport,
    NotAcceptable,
    NotAllowed,
    NotInstalled,
    NotReady,
    NotSignedIn,
    NotThere,
    RunNotFound,
    ServerLost,
    ServerUnreachable,
    StoreError,
    TooLarge,
    TooManyRequests,
    TooSlow,
    UserError,
    WrongHost,
    WrongMediaType,
    WrongValue,
)
from fathom.service.outages import outage
from fathom.service.run_view import API

_STATUS: dict[type[FathomError], HTTPStatus] = {
    NotSignedIn: HTTPStatus.UNAUTHORIZED,
    NotAllowed: HTTPStatus.FORBIDDEN,
    ForeignPage: HTTPStatus.FORBIDDEN,
    WrongHost: HTTPStatus.MISDIRECTED_REQUEST,
    TooLarge: HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    TooSlow: HTTPStatus.REQUEST_TIMEOUT,
    RunNotFound: HTTPStatus.NOT_FOUND,
    NotThere: HTTPStatus.NOT_FOUND,
    NoReport: HTTPStatus.NOT_FOUND,
    NotAcceptable: HTTPStatus.NOT_ACCEPTABLE,
    Conflict: HTTPStatus.CONFLICT,
    InvalidState: HTTPStatus.CONFLICT,
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
MEDIA_TYPE = "application/problem+json"


def phrase_of(status: int) -> str:
    """Return the name of a status. The standard library's are others from Python 3.13 on."""
    return httpx.codes.get_reason_phrase(status)


def status_of(error: FathomError) -> HTTPStatus:
    """Return the HTTP status of a failure: the status of its class, or of the nearest class above."""
    kinds = (kind for kind in type(error).__mro__ if issubclass(kind, FathomError))
    return next((_STATUS[kind] for kind in kinds if kind in _STATUS), HTTPStatus.INTERNAL_SERVER_ERROR)


def problem_of(error: FathomError) -> Problem:
    """Return what a client is told of a failure."""
    status, wrong = status_of(error), _wrong_in(error)
    return Problem(
        type=f"urn:fathom:error:{error.code}",
        title=phrase_of(status),
        status=status,
        detail=without_credentials(error.message),  # it may repeat what was sent
        code=error.code,
        next_step=error.next_step or (f"GET {API}/settings/schema describes the settings" if wrong else error.remedy),
        errors=wrong,
    )


def retry_after_of(error: FathomError) -> dict[str, str]:
    """Return the header that says in how many seconds it is worth asking again, if the failure says so."""
    return {} if error.retry_after is None else {"Retry-After": str(int(error.retry_after) + 1)}


def _wrong_in(error: FathomError) -> list[WrongValue]:
    """Return the values that an error is about, without credentials."""
    found = error.wrong if isinstance(error, InvalidInput) else ()
    return [
        replace(one, value=without_credentials(one.value) if isinstance(one.value, str) else one.value) for one in found
    ]


def answer(problem: Problem, headers: Mapping[str, str] | None = None) -> JSONResponse:
    """Return a problem as a response."""
    return JSONResponse(problem.model_dump(), problem.status, headers, media_type=MEDIA_TYPE)


def told(request: Request, error: Exception) -> tuple[Problem, dict[str, str]]:
    """Return what whoever sent a request is told of an error, and the headers of the answer."""
    if isinstance(error, httpx.HTTPError):
        error = outage(error)
    if isinstance(error, FathomError):
        return _of_failure(request, error)
    if isinstance(error, RequestValidationError):
        return _of_form(error), {}
    assert isinstance(error, HTTPException)
    return _of_framework(request, error)


def _of_failure(request: Request, error: FathomError) -> tuple[Problem, dict[str, str]]:
    headers = retry_after_of(error)
    if isinstance(error, NotSignedIn):
        headers["WWW-Authenticate"] = "Bearer"
    if isinstance(error, TooSlow):
        headers["Connection"] = "close"
    request.app.state.service.hide_paths(error, getattr(request.state, "caller", None))
    return problem_of(error), headers


def _of_form(error: RequestValidationError) -> Problem:
    """Return what is wrong with a request that does not have the form that the document describes."""
    wrong = wrong_in({**one, "loc": one["loc"][1:] or one["loc"]} for one in error.errors())
    return problem_of(InvalidInput(wrong=wrong, next_step=f"GET {API}/openapi.json describes every request"))


def _of_framework(request: Request, error: HTTPException) -> tuple[Problem, dict[str, str]]:
    """Return an error of the framework, such as an address that does not exist."""
    status = HTTPStatus(error.status_code)
    headers = dict(error.headers or {})
    place = request.url.path[:200]
    if status is HTTPStatus.NOT_FOUND:
        how = f"GET {API}/openapi.json lists the addresses"
        return problem_of(NotThere(f"There is nothing at {place}.", next_step=how)), headers
    detail, how = str(error.detail), ""
    if status is HTTPStatus.METHOD_NOT_ALLOWED:  # the framework names the methods of one route only
        headers["Allow"] = ", ".join(methods_at(request)) or headers.get("Allow", "")
        detail, how = f"{place} does not take {request.method}.", f"use {headers['Allow']}"
    return Problem(title=phrase_of(status), status=status, detail=detail, next_step=how), headers


def methods_at(request: Request) -> list[str]:
    """Return the methods that an address knows, over all of its routes."""
    found: set[str] = set()
    for method in ("DELETE", "GET", "PATCH", "POST", "PUT"):
        scope = {**request.scope, "method": method}
        if any(route.matches(scope)[0] is Match.FULL for route in request.app.routes):
            found.add(method)
    return sorted(found)

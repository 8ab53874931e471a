"""Errors in the form of OpenAI's API, which its clients turn into exceptions and messages."""

from __future__ import annotations

from http import HTTPStatus

from fastapi import Request
from fastapi.responses import JSONResponse

from fathom.client.shapes import Problem
from fathom.errors import FathomError, NoReport, NotThere

PREFIX = "/v1/"
_CODES = {HTTPStatus.UNAUTHORIZED: "invalid_api_key", HTTPStatus.TOO_MANY_REQUESTS: "rate_limit_exceeded"}
"""Codes that clients know; all others are those of docs/errors.md."""


class NoModel(NotThere):
    """There is no model of that name."""

    remedy = "GET /v1/models lists the models"


class RunFailed(FathomError):
    """The run that a request started failed."""

    code = NoReport.code
    remedy = NoReport.remedy


def speaks_openai(request: Request) -> bool:
    """Whether whoever sent a request expects errors of this form."""
    return request.url.path.startswith(PREFIX)


def error_of(problem: Problem, error: Exception | None = None) -> dict[str, dict[str, str | None]]:
    """Return a problem in the form of OpenAI's API; the message has its code of docs/errors.md and what to do."""
    status = HTTPStatus(problem.status)
    hint = f" ({problem.next_step})" if problem.next_step else ""
    lacks_model = isinstance(error, NoModel)
    return {
        "error": {
            "message": f"{problem.code or ''} {problem.detail or problem.title}{hint}".strip(),
            "type": "server_error" if status >= HTTPStatus.INTERNAL_SERVER_ERROR else "invalid_request_error",
            "param": "model" if lacks_model else None,
            "code": "model_not_found" if lacks_model else _CODES.get(status, problem.code),
        }
    }


def answer(problem: Problem, headers: dict[str, str], error: Exception | None = None) -> JSONResponse:
    """Return a problem as a response. A failed run is not tried again: it would be researched and paid again."""
    status = HTTPStatus(problem.status)
    if status is HTTPStatus.UNPROCESSABLE_ENTITY:
        status = HTTPStatus.BAD_REQUEST
    again = {"x-should-retry": "false"} if status is HTTPStatus.INTERNAL_SERVER_ERROR else {}
    return JSONResponse(error_of(problem, error), status, {**headers, **again})

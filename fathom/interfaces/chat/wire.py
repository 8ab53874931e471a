"""What both forms of the endpoint put on the wire alike: answers that take long, events, citations and errors.

OpenAI's clients turn errors of this form into exceptions and messages.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Coroutine
from datetime import datetime
from http import HTTPStatus
from time import time
from typing import Any

from fastapi import Request, Response
from fastapi.responses import JSONResponse, StreamingResponse

from fathom.client.shapes import Problem
from fathom.errors import FathomError
from fathom.interfaces import problems
from fathom.interfaces.chat.answers import Reference
from fathom.interfaces.chat.shapes import NoModel
from fathom.interfaces.dependencies import STREAM
from fathom.service import progress

PREFIX = "/v1/"
_CODES = {HTTPStatus.UNAUTHORIZED: "invalid_api_key", HTTPStatus.TOO_MANY_REQUESTS: "rate_limit_exceeded"}
"""Codes that clients know; docs/errors.md lists all others."""

SILENCE = ": still at work\n\n"
"""A comment, for what looks at connections; an empty event follows it, for what looks at events."""


async def patient(make: Callable[[], Coroutine[Any, Any, dict[str, Any]]]) -> Response:
    """Return what takes long as a response: spaces, which JSON allows, keep the connection alive.

    A failure after the first of them can no longer have a status of its own; its error is in the body.
    """
    task = asyncio.ensure_future(make())
    try:
        done, _ = await asyncio.wait({task}, timeout=progress.KEEP_ALIVE)
    except asyncio.CancelledError:
        task.cancel()
        raise
    if done:
        return JSONResponse(task.result())

    async def parts() -> AsyncIterator[str]:
        try:
            while not (await asyncio.wait({task}, timeout=progress.KEEP_ALIVE))[0]:
                yield " "
            yield json.dumps(task.result())
        except FathomError as error:
            yield json.dumps({**error_of(problems.problem_of(error), error), "choices": [], "output": []})
        finally:
            task.cancel()

    return StreamingResponse(parts(), media_type="application/json", headers=STREAM)


def server_of(request: Request) -> str:
    """Return the address at which the client reaches this server."""
    return str(request.base_url).rstrip("/")


def created(at: str) -> int:
    """Return an ISO 8601 time in seconds since 1970."""
    return int(datetime.fromisoformat(at).timestamp()) if at else int(time())


def event(data: dict[str, Any], kind: str = "") -> str:
    """Return data as a server-sent event."""
    head = f"event: {kind}\n" if kind else ""
    return f"{head}data: {json.dumps(data, ensure_ascii=False)}\n\n"


def citation_of(reference: Reference) -> dict[str, Any]:
    """Return a citation's fields; `text[start_index:end_index]` is its number in the text."""
    return {"start_index": reference.start, "end_index": reference.end, "title": reference.title, "url": reference.url}


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

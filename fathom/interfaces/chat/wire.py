"""What both forms of the endpoint put on the wire alike."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Coroutine
from datetime import datetime
from time import time
from typing import Annotated, Any

from fastapi import Header, Request, Response
from fastapi.responses import JSONResponse, StreamingResponse

from fathom.errors import FathomError, InvalidInput
from fathom.interfaces import problems
from fathom.interfaces.chat.answers import Reference
from fathom.interfaces.chat.errors import error_of
from fathom.service import progress

Key = Annotated[str, Header(alias="Idempotency-Key", max_length=200)]
STREAM = {"Cache-Control": "no-cache", "X-Accel-Buffering": "no"}
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


def refuse_format(kind: object) -> None:
    """Refuse an answer in a form that a report does not have.

    Raises:
        InvalidInput: one is asked for.
    """
    if kind not in (None, "text"):
        raise InvalidInput(
            "The answer is a report in Markdown and no other format.",
            next_step="GET /api/v1/runs/{id}/report with Accept: application/json has the report as data",
        )


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
    return {
        "start_index": reference.start,
        "end_index": reference.end,
        "title": reference.title,
        "url": reference.url,
    }

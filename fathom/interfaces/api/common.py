"""What the routes have in common: parameters, bodies of JSON, and streams of events."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from typing import Annotated

from fastapi import Depends, Header, Query, Request
from fastapi.responses import StreamingResponse

from fathom.client.shapes import RunEvent
from fathom.errors import WrongMediaType

JSON = "application/json"
Limit = Annotated[int, Query(ge=1, le=200, description="Maximum number of entries per page.")]
Cursor = Annotated[str, Query(max_length=300, description="`next` from the previous page.")]
Key = Annotated[
    str,
    Header(
        alias="Idempotency-Key", max_length=200, description="A caller who sends the same key again gets the same run."
    ),
]
LastEvent = Annotated[
    str, Header(alias="Last-Event-ID", pattern=r"^[0-9]{0,12}$", description="Id of the last event you received.")
]
After = Annotated[
    int, Query(ge=0, lt=10**12, description="The same as Last-Event-ID, for clients that cannot set headers.")
]


async def _json_only(request: Request) -> None:
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != JSON and not (kind.startswith("application/") and kind.endswith("+json")):
        raise WrongMediaType(f"The body must be JSON, not {kind[:60] or 'of no media type'}.")


JSON_ONLY = [Depends(_json_only)]
"""Dependencies of a route that takes a body: only JSON, and said to be JSON, which no form of another page can send."""


PULSE_SECONDS = 15.0
"""After so long without an event a comment is sent: proxies and clients cut streams that are silent for longer."""
STREAM = {"Cache-Control": "no-cache", "X-Accel-Buffering": "no"}
PULSE = b": still there\n\n"
_RETRY = b"retry: 2000\n\n"  # ms after which a browser comes back when the stream was cut off
_ENDED_RETRY = b"retry: 60000\n"  # one that has not closed the stream of a run that ended


class EventStream(StreamingResponse):
    """Server-sent events."""

    media_type = "text/event-stream"


async def frames(events: AsyncGenerator[RunEvent | None, None]) -> AsyncIterator[bytes]:
    """Yield events as they are sent; None is a pulse."""
    yield _RETRY
    async with aclosing(events):
        async for event in events:
            yield _frame(event) if event else PULSE


def _frame(event: RunEvent) -> bytes:
    number = f"id: {event.id}\n".encode() if event.id else b""
    ended = _ENDED_RETRY if "ended" in event.data else b""
    return number + ended + f"event: {event.type.value}\ndata: {event.model_dump_json()}\n\n".encode()

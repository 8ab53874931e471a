"""Events as a stream of server-sent events (the WHATWG HTML standard, 9.2)."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing

from fathom.client.shapes import RunEvent

PULSE_SECONDS = 15.0
"""After so long without an event a comment is sent: proxies and clients cut streams that are silent for longer."""
RETRY = b"retry: 2000\n\n"  # ms after which a browser comes back when the stream was cut off
ENDED_RETRY = b"retry: 60000\n"  # one that has not closed the stream of a run that ended
PULSE = b": still there\n\n"
HEADERS = {"Cache-Control": "no-cache", "X-Accel-Buffering": "no"}
MEDIA_TYPE = "text/event-stream"


async def stream(events: AsyncGenerator[RunEvent | None, None]) -> AsyncIterator[bytes]:
    """Yield events as they are sent; None is a pulse."""
    yield RETRY
    async with aclosing(events):
        async for event in events:
            yield frame(event) if event else PULSE


def frame(event: RunEvent) -> bytes:
    """Return an event as it is sent."""
    number = f"id: {event.id}\n".encode() if event.id else b""
    ended = ENDED_RETRY if "ended" in event.data else b""
    return number + ended + f"event: {event.type.value}\ndata: {event.model_dump_json()}\n\n".encode()

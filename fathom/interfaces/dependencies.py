"""What routes share: the service, the gate, who asks, the run of an address, parameters, and streams of events.

What is injected is a coroutine: FastAPI sends each function that is none to a thread, which costs more than most of a
request.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from typing import Annotated

from fastapi import Depends, Header, Path, Query, Request
from fastapi.responses import StreamingResponse

from fathom.client.shapes import RunEvent
from fathom.errors import WrongMediaType
from fathom.interfaces.gate import Gate
from fathom.interfaces.uploads import media_type
from fathom.service.caller import Caller
from fathom.service.runs import RunHandle, RunService


async def _service(request: Request) -> RunService:
    service = request.app.state.service
    assert isinstance(service, RunService)
    return service


async def _gate(request: Request) -> Gate:
    gate = request.app.state.gate
    assert isinstance(gate, Gate)
    return gate


async def _caller(request: Request) -> Caller:
    caller = request.state.caller
    assert isinstance(caller, Caller)
    return caller


TheService = Annotated[RunService, Depends(_service)]
TheGate = Annotated[Gate, Depends(_gate)]
TheCaller = Annotated[Caller, Depends(_caller)]
"""Set by `fathom.interfaces.gate` before any route is reached."""
RunId = Annotated[
    str, Path(description="Id of the run.", max_length=60, examples=["df99f416-1f7e-4c63-94d9-a70b9f20c5f2"])
]


async def _run(run_id: RunId, service: TheService, caller: TheCaller) -> RunHandle:
    return await service.open(caller, run_id)


TheRun = Annotated[RunHandle, Depends(_run)]

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
    kind = media_type(request.headers)
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

"""Research sessions, as the engine's first design has them."""

from __future__ import annotations

from http import HTTPStatus
from typing import Annotated

from fastapi import APIRouter, Path
from fastapi.responses import StreamingResponse

from fathom.client.sessions import CreateSessionRequest, ExecuteRequest, ExecutionStarted, Session
from fathom.interfaces.api.parts import JSON_ONLY, EventStream, LastEvent
from fathom.interfaces.dependencies import TheCaller, TheDesk
from fathom.service import sessions
from fathom.service.events import HEADERS

router = APIRouter(prefix="/research/sessions", tags=["sessions"])
SessionId = Annotated[
    str,
    Path(
        alias="sessionId",
        max_length=60,
        description="Id of the session.",
        examples=["0b8f5c1e-6f0e-4b57-9c56-0d5a4c1f7a21"],
    ),
]


@router.post("", status_code=HTTPStatus.CREATED, summary="Create a session", dependencies=JSON_ONLY)
async def create_session(request: CreateSessionRequest, desk: TheDesk, caller: TheCaller) -> Session:
    """Create a session; nothing is researched until it is executed."""
    return await sessions.create(desk, caller, request)


@router.get("/{sessionId}", summary="Read a session")
async def read_session(session_id: SessionId, desk: TheDesk, caller: TheCaller) -> Session:
    """Return a session: its state, plan, metrics and result."""
    return await sessions.read(desk, caller, session_id)


@router.delete("/{sessionId}", status_code=HTTPStatus.NO_CONTENT, summary="Cancel a session")
async def cancel_session(session_id: SessionId, desk: TheDesk, caller: TheCaller) -> None:
    """End the run of a session, or keep it from being executed."""
    await sessions.cancel(desk, caller, session_id)


@router.post(
    "/{sessionId}/execute", status_code=HTTPStatus.ACCEPTED, summary="Execute a session", dependencies=JSON_ONLY
)
async def execute_session(
    session_id: SessionId, request: ExecuteRequest, desk: TheDesk, caller: TheCaller
) -> ExecutionStarted:
    """Start the run of a session. The same question again names the same run."""
    return await sessions.execute(desk, caller, session_id, request)


@router.get(
    "/{sessionId}/stream",
    summary="Follow a session",
    response_class=EventStream,
    responses={
        200: {
            "description": "Server-sent events until the run has ended; the data of each is a ProgressEvent.",
            "content": {"text/event-stream": {"schema": {"type": "string"}, "example": "event: state_change\n"}},
        },
        409: {"description": "The session was not executed."},
    },
)
async def follow_session(
    session_id: SessionId,
    desk: TheDesk,
    caller: TheCaller,
    last_event_id: LastEvent = "",
) -> StreamingResponse:
    """Follow what happens in a session, as server-sent events."""
    await sessions.run_of(desk, caller, session_id)

    events = sessions.stream(desk, caller, session_id, int(last_event_id) if last_event_id else 0)
    return EventStream(events, headers=HEADERS)

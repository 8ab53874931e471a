"""Runs: started, read, followed, answered, ended."""

from __future__ import annotations

from http import HTTPStatus
from typing import Annotated

from fastapi import APIRouter, Header, Query, Response
from fastapi.responses import StreamingResponse

from fathom.client.shapes import AnswerRequest, FollowUpRequest, RemarkRequest, Run, RunRequest
from serve.runs.sse import HEADERS, MEDIA_TYPE
from serve.state import TheCaller, TheDesk

router = APIRouter(prefix="/api/v1/runs", tags=["runs"])
LastEvent = Annotated[
    str, Header(alias="Last-Event-ID", pattern=r"^[0-9]{0,12}$", description="The id of the last event that you had.")
]
After = Annotated[int, Query(ge=0, lt=10**12, description="The same, for clients that can set no header.")]
Key = Annotated[str, Header(alias="Idempotency-Key", max_length=200)]


class EventStream(StreamingResponse):
    """Server-sent events."""

    media_type = MEDIA_TYPE


@router.post("", status_code=HTTPStatus.ACCEPTED)
async def start_run(
    request: RunRequest, response: Response, desk: TheDesk, caller: TheCaller, idempotency_key: Key = ""
) -> Run:
    """Research a question."""
    run = await desk.start(caller, request, idempotency_key)
    response.headers["Location"] = run.links.run
    return run


@router.get("/{run_id}")
async def read_run(run_id: str, desk: TheDesk, caller: TheCaller) -> Run:
    """Return a run: its state, plan, metrics and result."""
    return await desk.get(caller, run_id)


@router.delete("/{run_id}", status_code=HTTPStatus.NO_CONTENT)
async def cancel_run(run_id: str, desk: TheDesk, caller: TheCaller) -> None:
    """End a run without a report."""
    await desk.cancel(caller, run_id)


@router.post("/{run_id}/answer")
async def answer_run(run_id: str, request: AnswerRequest, desk: TheDesk, caller: TheCaller) -> Run:
    """Answer what a run asks."""
    return await desk.answer(caller, run_id, request)


@router.post("/{run_id}/remarks", status_code=HTTPStatus.NO_CONTENT)
async def tell_run(run_id: str, request: RemarkRequest, desk: TheDesk, caller: TheCaller) -> None:
    """Tell a run that is going on what else to look at."""
    await desk.tell(caller, run_id, request.text)


@router.post("/{run_id}/stop", status_code=HTTPStatus.NO_CONTENT)
async def stop_run(run_id: str, desk: TheDesk, caller: TheCaller) -> None:
    """End the research of a run and let it write with what there is."""
    await desk.stop(caller, run_id)


@router.post("/{run_id}/ask", status_code=HTTPStatus.ACCEPTED)
async def ask_run(
    run_id: str, request: FollowUpRequest, desk: TheDesk, caller: TheCaller, idempotency_key: Key = ""
) -> Run:
    """Ask a question that follows up on a finished run."""
    return await desk.ask(caller, run_id, request, idempotency_key)


@router.get("/{run_id}/events", response_class=EventStream)
async def follow_run(
    run_id: str, desk: TheDesk, caller: TheCaller, last_event_id: LastEvent = "", after: After = 0
) -> StreamingResponse:
    """Follow what happens in a run, as server-sent events.

    The id of an event is the number of its line in the audit log. Whoever comes back with `Last-Event-ID` gets
    what follows, on any server and however often the run was resumed. `now` says what the run does at the moment; it
    has no id. The last event is a `state_change` with `ended` in its data: then close the stream.
    """
    events = await desk.stream(caller, run_id, int(last_event_id) if last_event_id else after)
    return EventStream(events, headers=HEADERS)

"""Runs: started, read, followed, answered, ended."""

from __future__ import annotations

from collections.abc import AsyncIterator
from http import HTTPStatus
from typing import Annotated

from fastapi import APIRouter, Header, Response
from fastapi.responses import StreamingResponse

from fathom.client.shapes import AnswerRequest, FollowUpRequest, RemarkRequest, Run, RunRequest
from serve.state import TheCaller, TheDesk

router = APIRouter(prefix="/api/v1/runs", tags=["runs"])
Key = Annotated[str, Header(alias="Idempotency-Key", max_length=200)]


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


@router.get("/{run_id}/events")
async def follow_run(
    run_id: str, desk: TheDesk, caller: TheCaller, last_event_id: Annotated[int, Header(alias="Last-Event-ID")] = 0
) -> StreamingResponse:
    """Follow what happens in a run, as server-sent events."""
    await desk.get(caller, run_id)

    async def lines() -> AsyncIterator[str]:
        async for event in desk.events(caller, run_id, last_event_id):
            number = f"id: {event.id}\n" if event.id else ""
            yield f"{number}event: {event.type.value}\ndata: {event.model_dump_json()}\n\n"

    headers = {"Cache-Control": "no-cache", "X-Accel-Buffering": "no"}
    return StreamingResponse(lines(), media_type="text/event-stream", headers=headers)

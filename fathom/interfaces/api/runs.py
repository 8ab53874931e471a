"""Runs: started, listed, read, followed, answered, ended; shared with others; and all earlier ones searched at once."""

from __future__ import annotations

from http import HTTPStatus
from typing import Annotated

from fastapi import APIRouter, Query, Response
from fastapi.responses import RedirectResponse, StreamingResponse
from pydantic import BaseModel

from fathom.client.shapes import (
    ActivityEntry,
    AnswerRequest,
    FollowUpRequest,
    LibraryHits,
    RatingRequest,
    RemarkList,
    RemarkRequest,
    Run,
    RunChange,
    RunList,
    RunRequest,
    ShareLink,
    WaitingRemark,
)
from fathom.interfaces.dependencies import (
    JSON_ONLY,
    PULSE_SECONDS,
    STREAM,
    After,
    Cursor,
    EventStream,
    Key,
    LastEvent,
    Limit,
    RunId,
    TheCaller,
    TheRun,
    TheService,
    frames,
)
from fathom.models import ReportRating, RunState
from fathom.service import reports
from fathom.service.caller import Caller
from fathom.service.run_list import RunFilter, time_of
from fathom.storage.steering import Steer, waiting_among

router = APIRouter(prefix="/api/v1/runs", tags=["runs"])
_Since = Annotated[
    str,
    Query(
        min_length=1,
        max_length=40,
        description="A time or day in ISO 8601; without a time zone, UTC.",
        examples=["2026-11-01"],
        json_schema_extra={"format": "date-time"},
    ),
]
_Words = Annotated[
    str, Query(max_length=200, description="Only runs whose question has these words or words that begin with them.")
]


class RunQuery(BaseModel):
    """Which runs are listed, and which page of them."""

    state: Annotated[list[RunState], Query(description="Only runs in one of these states; repeatable.")] = []
    q: _Words = ""
    owner: Annotated[str | None, Query(max_length=200, description="Only runs of this user.")] = None
    mine: Annotated[bool, Query(description="Only your own runs.")] = False
    since: _Since = ""
    until: _Since = ""
    parent: Annotated[str, Query(max_length=60, description="Only runs that follow up on this run.")] = ""
    watch: Annotated[str, Query(max_length=100, description="Only runs of this watch.")] = ""
    limit: Limit = 50
    cursor: Cursor = ""

    def filter_for(self, caller: Caller) -> RunFilter:
        """Return which runs the caller wants; raise an InvalidInput if a time is none."""
        return RunFilter(
            states=frozenset(self.state),
            words=self.q,
            owner=caller.name if self.mine else self.owner,
            since=time_of(self.since),
            until=time_of(self.until),
            parent=self.parent,
            watch=self.watch,
        )


@router.post("", status_code=HTTPStatus.ACCEPTED, summary="Start a run", dependencies=JSON_ONLY)
async def start_run(
    request: RunRequest, response: Response, service: TheService, caller: TheCaller, idempotency_key: Key = ""
) -> Run:
    """Research a question. The answer comes at once; `Location` and `links` say where the run is."""
    run = await service.start(caller, request, idempotency_key)
    response.headers["Location"] = run.links.run
    return run


@router.get("", summary="List runs")
async def list_runs(service: TheService, caller: TheCaller, wanted: Annotated[RunQuery, Query()]) -> RunList:
    """List the runs that you may see, the newest first. New runs do not move the pages after a cursor."""
    return await service.latest(caller, wanted.filter_for(caller), limit=wanted.limit, cursor=wanted.cursor)


@router.get("/{run_id}", summary="Read a run")
async def read_run(run: TheRun) -> Run:
    """Return a run: its state, plan, metrics and result."""
    return await run.read()


@router.delete("/{run_id}", status_code=HTTPStatus.NO_CONTENT, summary="Cancel or remove a run")
async def cancel_run(
    run: TheRun,
    *,
    remove: Annotated[bool, Query(description="Remove an ended run with its report and all of its files.")] = False,
) -> None:
    """End a run without a report. One that has ended stays as it is, unless it is to be removed."""
    await (run.remove() if remove else run.cancel())


@router.post("/{run_id}/answer", summary="Answer a run", dependencies=JSON_ONLY)
async def answer_run(run: TheRun, request: AnswerRequest) -> Run:
    """Answer what a run asks: its questions, or whether its plan or report is accepted."""
    return await run.answer(request)


@router.post(
    "/{run_id}/remarks", status_code=HTTPStatus.NO_CONTENT, summary="Tell a run something", dependencies=JSON_ONLY
)
async def tell_run(run: TheRun, request: RemarkRequest) -> None:
    """Tell a run that is going on what else to look at."""
    await run.steer(Steer.tell, request.text)


@router.get("/{run_id}/remarks", summary="List remarks that wait")
async def list_remarks(run: TheRun) -> RemarkList:
    """Return the remarks that a run has not taken up yet, the oldest first; each can still be taken back."""
    waiting = waiting_among(await run.said())
    remarks = [WaitingRemark(id=one.token, text=one.text, author=one.author, at=one.at) for one in waiting]
    return RemarkList(remarks=remarks)


@router.delete("/{run_id}/remarks/{remark_id}", status_code=HTTPStatus.NO_CONTENT, summary="Take a remark back")
async def take_back(run: TheRun, remark_id: str) -> None:
    """Take a remark back that the run has not taken up yet."""
    await run.steer(Steer.back, remark_id)


@router.post("/{run_id}/stop", status_code=HTTPStatus.NO_CONTENT, summary="End a run's research")
async def stop_run(run: TheRun) -> None:
    """End the research of a run and let it write with what there is."""
    await run.steer(Steer.stop)


@router.put("/{run_id}/rating", summary="Rate a report", dependencies=JSON_ONLY)
async def rate_run(run: TheRun, request: RatingRequest) -> list[ReportRating]:
    """Say whether a report was of use, again to change it. The answer lists the ratings of all readers."""
    return await run.rate(request)


@router.get("/{run_id}/ratings", summary="List ratings")
async def list_ratings(run: TheRun) -> list[ReportRating]:
    """Return how readers rated a report, the oldest rating first."""
    return await run.ratings()


@router.post("/{run_id}/resume", status_code=HTTPStatus.ACCEPTED, summary="Resume a run")
async def resume_run(run: TheRun) -> Run:
    """Continue a run that was interrupted, failed or was cancelled. No finished call is repeated."""
    return await run.resume()


@router.post("/{run_id}/ask", status_code=HTTPStatus.ACCEPTED, summary="Follow up on a run", dependencies=JSON_ONLY)
async def ask_run(run: TheRun, request: FollowUpRequest, response: Response, idempotency_key: Key = "") -> Run:
    """Ask a question that follows up on a finished run, in a run of its own."""
    started = await run.ask(request, idempotency_key)
    response.headers["Location"] = started.links.run
    return started


@router.get("/{run_id}/follow-ups", summary="List follow-ups")
async def list_follow_ups(
    run: TheRun, service: TheService, caller: TheCaller, limit: Limit = 50, cursor: Cursor = ""
) -> RunList:
    """List the runs that follow up on a run, the newest first."""
    return await service.latest(caller, RunFilter(parent=run.run_id), limit=limit, cursor=cursor)


@router.get(
    "/{run_id}/events",
    summary="Follow a run",
    response_class=EventStream,
    responses={
        200: {
            "description": "Server-sent events until the run has ended; the data of each is a RunEvent.",
            "content": {"text/event-stream": {"schema": {"type": "string"}, "example": "id: 1\nevent: state_change\n"}},
        }
    },
)
async def follow_run(
    run_id: RunId, service: TheService, caller: TheCaller, last_event_id: LastEvent = "", after: After = 0
) -> StreamingResponse:
    """Follow what happens in a run, as server-sent events.

    The id of an event is the number of its line in the audit log. Whoever comes back with `Last-Event-ID` gets
    what follows, on any server and however often the run was resumed. `now` says what the run does at the moment; it
    has no id. The last event is a `state_change` with `ended` in its data: then close the stream.
    """
    run = await service.open(caller, run_id, to_follow=True)
    return EventStream(frames(run.events(int(last_event_id or after), PULSE_SECONDS)), headers=STREAM)


sharing = APIRouter(tags=["sharing"])
_RUN = "/api/v1/runs/{run_id}"


@sharing.patch(_RUN)
async def share_run(run: TheRun, request: RunChange, service: TheService, caller: TheCaller) -> Run:
    """Share a run with everybody who is signed in, or end that; or give it a name."""
    if request.shared is not None:
        await run.share(shared=request.shared)
    if request.title is not None:
        run = await service.open(caller, run.run_id)
        await run.rename(request.title)
    return await service.read(caller, run.run_id)


@sharing.post(f"{_RUN}/links", status_code=HTTPStatus.CREATED)
async def link_run(
    run: TheRun,
    *,
    public: Annotated[
        bool, Query(description="Show the report, and nothing else, to anyone who has the link, without sign-in.")
    ] = False,
) -> ShareLink:
    """Make a link that shares a run with whoever has it and is signed in, or its report with anyone."""
    return await run.link(public=public)


@sharing.get(f"{_RUN}/links")
async def list_links(run: TheRun) -> list[ShareLink]:
    """Return the links to a run, without their addresses."""
    return await run.links()


@sharing.delete(f"{_RUN}/links/{{link_id}}", status_code=HTTPStatus.NO_CONTENT)
async def unlink_run(run: TheRun, link_id: str) -> None:
    """Remove a link; whoever came by it may no longer read the run."""
    await run.unlink(link_id)


@sharing.get(f"{_RUN}/activity")
async def read_activity(run: TheRun) -> list[ActivityEntry]:
    """Return who did what with a run over a server: asked, answered, steered, cancelled, shared it."""
    return await run.activity()


@sharing.get("/runs/{run_id}/join/{secret}", include_in_schema=False)
async def join_run(run_id: str, secret: str, service: TheService, caller: TheCaller) -> RedirectResponse:
    """Let in who has a link, and show the run."""
    await service.join(caller, run_id, secret)
    return RedirectResponse(f"/runs/{run_id}", HTTPStatus.SEE_OTHER)


searching = APIRouter(prefix="/api/v1/library", tags=["runs"])


@searching.get("", summary="Search earlier runs")
async def search_library(
    service: TheService,
    caller: TheCaller,
    q: Annotated[str, Query(min_length=1, max_length=1_000, description="Words, or a question.")],
    limit: Annotated[int, Query(ge=1, le=100, description="Maximum number of sentences.")] = 20,
) -> LibraryHits:
    """Search the questions, answers, notes and sources of the finished runs that you may read, the best first."""
    return await reports.search_library(service, caller, q, limit)

"""Watched questions."""

from __future__ import annotations

from http import HTTPStatus
from typing import Annotated

from fastapi import APIRouter, Path, Response

from fathom.client.resources import Watch, WatchChange, WatchHistory, WatchList, WatchRequest
from fathom.client.shapes import Run
from fathom.interfaces.dependencies import JSON_ONLY, Limit, TheCaller, TheService
from fathom.service import watches

router = APIRouter(prefix="/api/v1/watches", tags=["watches"])
Name = Annotated[str, Path(max_length=100, description="Name of the watch.", examples=["pro-plan"])]


@router.get("", summary="List watches")
async def list_watches(service: TheService, caller: TheCaller) -> WatchList:
    """List your watched questions with their schedules, by name."""
    return await watches.everyone(service, caller)


@router.post("", status_code=HTTPStatus.CREATED, summary="Watch a question", dependencies=JSON_ONLY)
async def create_watch(request: WatchRequest, response: Response, service: TheService, caller: TheCaller) -> Watch:
    """Ask a question on a schedule. Each run reads the web afresh and says what changed since the one before."""
    made = await watches.add(service, caller, request)
    response.headers["Location"] = f"/api/v1/watches/{made.name}"
    return made


@router.get("/{name}", summary="Read a watch")
async def read_watch(name: Name, service: TheService, caller: TheCaller) -> Watch:
    """Return a watch: its question, schedule and next run."""
    return await watches.one(service, caller, name)


@router.patch("/{name}", summary="Pause or resume a watch", dependencies=JSON_ONLY)
async def change_watch(name: Name, request: WatchChange, service: TheService, caller: TheCaller) -> Watch:
    """Pause a watch, or have it run by its schedule again."""
    return await watches.change(service, caller, name, request)


@router.delete("/{name}", status_code=HTTPStatus.NO_CONTENT, summary="Remove a watch")
async def delete_watch(name: Name, service: TheService, caller: TheCaller) -> None:
    """Remove a watch and its notifications; its runs stay."""
    await watches.remove(service, caller, name)


@router.post("/{name}/run", status_code=HTTPStatus.ACCEPTED, summary="Run a watch now")
async def run_watch(name: Name, response: Response, service: TheService, caller: TheCaller) -> Run:
    """Start a run of a watch now, besides its schedule."""
    run = await watches.run(service, caller, name)
    response.headers["Location"] = run.links.run
    return run


@router.get("/{name}/history", summary="List the runs of a watch")
async def list_watch_runs(name: Name, service: TheService, caller: TheCaller, limit: Limit = 50) -> WatchHistory:
    """List the runs of a watch, the newest first, with what changed in each."""
    return await watches.history(service, caller, name, limit)

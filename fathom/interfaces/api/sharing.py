"""Sharing a run with others, and who did what with it."""

from __future__ import annotations

from http import HTTPStatus
from typing import Annotated

from fastapi import APIRouter, Query
from fastapi.responses import RedirectResponse

from fathom.client.shapes import ActivityEntry, Run, RunChange, ShareLink
from fathom.interfaces.dependencies import TheCaller, TheRun, TheService

router = APIRouter(tags=["sharing"])
_RUN = "/api/v1/runs/{run_id}"


@router.patch(_RUN)
async def share_run(run: TheRun, request: RunChange, service: TheService, caller: TheCaller) -> Run:
    """Share a run with everybody who is signed in, or end that; or give it a name."""
    if request.shared is not None:
        await run.share(shared=request.shared)
    if request.title is not None:
        run = await service.open(caller, run.run_id)
        await run.rename(request.title)
    return await service.read(caller, run.run_id)


@router.post(f"{_RUN}/links", status_code=HTTPStatus.CREATED)
async def link_run(
    run: TheRun,
    *,
    public: Annotated[
        bool, Query(description="Show the report, and nothing else, to anyone who has the link, without sign-in.")
    ] = False,
) -> ShareLink:
    """Make a link that shares a run with whoever has it and is signed in, or its report with anyone."""
    return await run.link(public=public)


@router.get(f"{_RUN}/links")
async def list_links(run: TheRun) -> list[ShareLink]:
    """Return the links to a run, without their addresses."""
    return await run.links()


@router.delete(f"{_RUN}/links/{{link_id}}", status_code=HTTPStatus.NO_CONTENT)
async def unlink_run(run: TheRun, link_id: str) -> None:
    """Remove a link; whoever came by it may no longer read the run."""
    await run.unlink(link_id)


@router.get(f"{_RUN}/activity")
async def read_activity(run: TheRun) -> list[ActivityEntry]:
    """Return who did what with a run over a server: asked, answered, steered, cancelled, shared it."""
    return await run.activity()


@router.get("/runs/{run_id}/join/{secret}", include_in_schema=False)
async def join_run(run_id: str, secret: str, service: TheService, caller: TheCaller) -> RedirectResponse:
    """Let in who has a link, and show the run."""
    await service.join(caller, run_id, secret)
    return RedirectResponse(f"/runs/{run_id}", HTTPStatus.SEE_OTHER)

"""Whether the server lives, and whether it can do its work. Both are open to everybody, so they name no address."""

from __future__ import annotations

from fastapi import APIRouter

from fathom.interfaces.dependencies import TheDesk

router = APIRouter(prefix="/api/v1", tags=["health"])


@router.get("/health", summary="Ask whether the server lives")
async def health() -> dict[str, str]:
    """Say that the server lives."""
    return {"status": "ok"}


@router.get("/ready", summary="Ask whether the server can work")
async def ready(desk: TheDesk) -> dict[str, str]:
    """Say that a question would be researched: Prefect answers, the store can be written, and a worker lives."""
    await desk.readiness.check()
    return {"status": "ok"}

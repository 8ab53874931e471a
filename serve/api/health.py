"""Whether the server lives, and whether it can do its work."""

from __future__ import annotations

from fastapi import APIRouter

router = APIRouter(prefix="/api/v1", tags=["health"])


@router.get("/health")
async def health() -> dict[str, str]:
    """Say that the server lives."""
    return {"status": "ok"}

"""Who asks, and what is left of what they may use."""

from __future__ import annotations

from fastapi import APIRouter

from fathom.client.shapes import Me
from fathom.interfaces.dependencies import TheCaller, TheDesk, TheGate
from fathom.interfaces.gate import LOCAL, PER_MINUTE

router = APIRouter(prefix="/api/v1", tags=["access"])


@router.get("/me")
async def read_me(desk: TheDesk, gate: TheGate, caller: TheCaller) -> Me:
    """Return your name and role, your limits and what is left of them."""
    limits = caller.limits
    per_minute = None if caller == LOCAL else limits.requests_per_minute or PER_MINUTE
    runs_left, usd_left = await desk.spending.left(caller)
    return Me(
        name=caller.name,
        role=caller.role.value,
        requests_per_minute=per_minute,
        requests_left=gate.rates.left(caller.name, per_minute) if per_minute else None,
        runs_per_day=limits.runs_per_day,
        runs_left=runs_left,
        daily_usd=limits.daily_usd,
        usd_left=usd_left,
    )

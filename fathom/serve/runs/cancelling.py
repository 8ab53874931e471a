"""Cancelling a run, also one that a worker has just taken."""

from __future__ import annotations

import asyncio
from uuid import UUID

from prefect.client.orchestration import get_client
from prefect.states import Cancelled, Cancelling

from fathom.serve.outages import asking_patiently

BEGIN_SECONDS = 5.0
"""In which a run that was taken begins. It would overwrite a state that was set while it begins."""
_LOOK_SECONDS = 0.1


async def cancel_flow_run(flow_run_id: UUID, message: str) -> bool:
    """Cancel a flow run, and return whether there was anything to cancel."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + BEGIN_SECONDS
    async with get_client() as client:
        state = (await client.read_flow_run(flow_run_id)).state
        while state and state.is_pending() and loop.time() < deadline:
            await asyncio.sleep(_LOOK_SECONDS)
            state = (await client.read_flow_run(flow_run_id)).state
        if state and state.is_final():
            return False
        # Without a process there is nobody who would say that it has ended.
        waits = state is not None and (state.is_scheduled() or state.name == "Suspended")
        with asking_patiently():
            ends = Cancelled if waits else Cancelling
            await client.set_flow_run_state(flow_run_id, ends(message=message), force=True)
    return True

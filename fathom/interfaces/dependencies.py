"""What routes are given: the service, the gate, who asks, and the run of an address, for who may see it.

All are coroutines: FastAPI sends each function that is none to a thread, which costs more than most of a request.
"""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, Path, Request

from fathom.interfaces.gate import Gate
from fathom.service.caller import Caller
from fathom.service.runs import RunHandle, RunService


async def _service(request: Request) -> RunService:
    service = request.app.state.service
    assert isinstance(service, RunService)
    return service


async def _gate(request: Request) -> Gate:
    gate = request.app.state.gate
    assert isinstance(gate, Gate)
    return gate


async def _caller(request: Request) -> Caller:
    caller = request.state.caller
    assert isinstance(caller, Caller)
    return caller


TheService = Annotated[RunService, Depends(_service)]
TheGate = Annotated[Gate, Depends(_gate)]
TheCaller = Annotated[Caller, Depends(_caller)]
"""Set by `fathom.interfaces.gate` before any route is reached."""
RunId = Annotated[
    str, Path(description="Id of the run.", max_length=60, examples=["df99f416-1f7e-4c63-94d9-a70b9f20c5f2"])
]


async def _run(run_id: RunId, service: TheService, caller: TheCaller) -> RunHandle:
    return await service.open(caller, run_id)


TheRun = Annotated[RunHandle, Depends(_run)]

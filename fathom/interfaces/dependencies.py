"""What every route gets: the desk, and who asks."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, Request

from fathom.interfaces.gate import Gate
from fathom.service.caller import Caller
from fathom.service.runs import Desk


def _desk(request: Request) -> Desk:
    desk = request.app.state.desk
    assert isinstance(desk, Desk)
    return desk


def _gate(request: Request) -> Gate:
    gate = request.app.state.gate
    assert isinstance(gate, Gate)
    return gate


def _caller(request: Request) -> Caller:
    caller = request.state.caller
    assert isinstance(caller, Caller)
    return caller


TheDesk = Annotated[Desk, Depends(_desk)]
TheGate = Annotated[Gate, Depends(_gate)]
TheCaller = Annotated[Caller, Depends(_caller)]
"""Set by `fathom.interfaces.gate` before any route is reached."""

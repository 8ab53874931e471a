"""Limits on requests to a provider that hold over all processes; who keeps them is set from outside.

Inside a process, requests to one provider are spaced and counted where they are made. That several machines share one
quota only a server can know, so a run is given a `Turns` that asks it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from contextvars import ContextVar

Turns = Callable[[str], AbstractAsyncContextManager[None]]
"""Given the name of a provider, such as `openai` or `tavily`: waits for a request's turn, and holds its place."""

_turns: ContextVar[Turns | None] = ContextVar("fathom_turns", default=None)


@asynccontextmanager
async def sharing(turns: Turns) -> AsyncIterator[None]:
    """Have the requests inside the block wait for their turn."""
    token = _turns.set(turns)
    try:
        yield
    finally:
        _turns.reset(token)


@asynccontextmanager
async def turn(provider: str) -> AsyncIterator[None]:
    """Make one request to a provider inside the block, once the limits that all processes share allow it."""
    if (turns := _turns.get()) is None:
        yield
        return
    async with turns(provider):
        yield

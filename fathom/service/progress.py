"""What happens in a run, as lines for a person, until it has ended or asks something; and what to say in silences."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass
from datetime import datetime
from typing import TypeVar

import httpx

from fathom.client.shapes import EventType, Run, RunEvent
from fathom.models import Asked, RunState
from fathom.service.caller import Caller
from fathom.service.runs import RunService

KEEP_ALIVE = 10.0
"""Seconds after which something is sent although nothing has happened: programs and proxies cut silent connections."""
_LOOK = 1.0  # seconds from one look at whether a run waits for a person to the next
_SILENT = ("llm_called",)
_ItemT = TypeVar("_ItemT")


@dataclass(frozen=True)
class Begun:
    """A run that is being followed. `since`: what happened before was told already; `asked`: what was answered."""

    run: Run
    since: datetime | None = None
    asked: tuple[Asked, str] | None = None


async def progress(service: RunService, caller: Caller, begun: Begun) -> AsyncGenerator[str, None]:
    """Yield what happens in a run, a line for each event, until it has ended or waits for a person.

    An empty line says that nothing has happened for `KEEP_ALIVE` seconds.
    """
    loop = asyncio.get_running_loop()
    told_last, answered = loop.time(), loop.time()
    talks = bool(begun.run.settings.get("people"))
    events = (await service.open(caller, begun.run.id, to_follow=True)).events()
    async with aclosing(with_silences(events, min(_LOOK, KEEP_ALIVE))) as happening:
        async for event in happening:
            if event is not None and (line := _line_of(event, begun.since)):
                told_last = loop.time()
                yield line
                continue
            if silent := loop.time() - told_last >= KEEP_ALIVE:
                told_last = loop.time()
                yield ""
            if event is None and (talks or silent):
                try:
                    run = await service.read(caller, begun.run.id)
                except httpx.HTTPError:  # looked again: an outage of Prefect ends no stream
                    continue
                if run.state.ended:  # cancelled before a worker took it
                    return
                same = begun.asked == (run.asked, run.complaint) and loop.time() - answered < KEEP_ALIVE
                if run.state is RunState.waiting and run.asked and not same:
                    return


async def with_silences(items: AsyncGenerator[_ItemT, None], seconds: float) -> AsyncGenerator[_ItemT | None, None]:
    """Yield the items, and None whenever there was none for some seconds. The items are closed by a task of their own.

    That outlives a request which is cancelled, where nothing can be awaited any more.
    """
    arrived: asyncio.Queue[tuple[_ItemT] | None] = asyncio.Queue()

    async def pump() -> None:
        try:
            async with aclosing(items):
                async for item in items:
                    arrived.put_nowait((item,))
        finally:
            arrived.put_nowait(None)

    pumping = asyncio.ensure_future(pump())
    waiting = asyncio.ensure_future(arrived.get())
    try:
        while True:
            if not (await asyncio.wait({waiting}, timeout=seconds))[0]:
                yield None
                continue
            if (found := waiting.result()) is None:
                await pumping  # fails as the items did
                return
            yield found[0]
            waiting = asyncio.ensure_future(arrived.get())
    finally:
        pumping.cancel()
        waiting.cancel()


def _line_of(event: RunEvent, since: datetime | None) -> str:
    if event.type is EventType.now or event.data.get("state") in _SILENT:
        return ""
    if since and datetime.fromisoformat(event.at) < since:
        return ""
    return event.message.strip()

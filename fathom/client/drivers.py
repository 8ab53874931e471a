"""The two ways to run a program of `fathom.client.core`: blocking, and on an event loop."""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import AsyncGenerator, AsyncIterator, Generator, Iterator
from contextlib import AsyncExitStack, ExitStack
from typing import Any, TypeVar

import httpx

from fathom.client.core import Open, Pause, Program, Tell
from fathom.client.shapes import RunEvent

T = TypeVar("T")


class Blocking:
    """Runs programs while the caller waits."""

    def __init__(self) -> None:
        self.http = httpx.Client()

    def run(self, program: Program[T]) -> T:
        """Run a program and return its value."""
        kept: list[T] = []
        for _ in self.events(_keeping(program, kept)):
            pass
        return kept[0]

    def events(self, program: Program[Any]) -> Generator[RunEvent, None, None]:
        """Run a program and yield the events that it passes on."""
        answer: Any = None
        chunks: Iterator[bytes] = iter(())
        with ExitStack() as opened:
            while True:
                try:
                    step = program.throw(answer) if isinstance(answer, httpx.TransportError) else program.send(answer)
                except StopIteration:
                    return
                answer = None
                if isinstance(step, RunEvent):
                    yield step
                elif isinstance(step, Tell):
                    step.handler(step.event)
                elif isinstance(step, Pause):
                    time.sleep(step.seconds)
                else:
                    try:
                        if isinstance(step, httpx.Request):
                            answer = self.http.send(step)
                        elif isinstance(step, Open):
                            opened.close()
                            answer = self.http.send(step.request, stream=True)
                            opened.callback(answer.close)
                            if not answer.is_success:
                                answer.read()
                            chunks = answer.iter_bytes()
                        else:
                            answer = next(chunks, b"")
                    except httpx.TransportError as error:
                        answer = error


class Awaiting:
    """Runs programs on the caller's event loop."""

    def __init__(self) -> None:
        self.http = httpx.AsyncClient()

    async def run(self, program: Program[T]) -> T:
        """Run a program and return its value."""
        kept: list[T] = []
        async for _ in self.events(_keeping(program, kept)):
            pass
        return kept[0]

    async def events(self, program: Program[Any]) -> AsyncGenerator[RunEvent, None]:
        """Run a program and yield the events that it passes on; functions of the user may be coroutine functions."""
        answer: Any = None
        chunks: AsyncIterator[bytes] | None = None
        async with AsyncExitStack() as opened:
            while True:
                try:
                    step = program.throw(answer) if isinstance(answer, httpx.TransportError) else program.send(answer)
                except StopIteration:
                    return
                answer = None
                if isinstance(step, RunEvent):
                    yield step
                elif isinstance(step, Tell):
                    told = step.handler(step.event)
                    if inspect.isawaitable(told):
                        await told
                elif isinstance(step, Pause):
                    await asyncio.sleep(step.seconds)
                else:
                    try:
                        if isinstance(step, httpx.Request):
                            answer = await self.http.send(step)
                        elif isinstance(step, Open):
                            await opened.aclose()
                            answer = await self.http.send(step.request, stream=True)
                            opened.push_async_callback(answer.aclose)
                            if not answer.is_success:
                                await answer.aread()
                            chunks = answer.aiter_bytes()
                        elif chunks is not None:
                            answer = await anext(chunks, b"")
                    except httpx.TransportError as error:
                        answer = error


def _keeping(program: Program[T], kept: list[T]) -> Program[None]:
    kept.append((yield from program))

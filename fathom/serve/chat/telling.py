"""What is said of a run while it is followed, in order: lines on what happens, then the answer."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import aclosing

import httpx

from fathom.errors import FathomError
from fathom.serve import problems
from fathom.serve.caller import Caller
from fathom.serve.chat.answers import Answer, answer_of
from fathom.serve.outages import outage
from fathom.serve.runs.desk import Desk
from fathom.serve.runs.progress import Begun, progress


async def said(text: str) -> AsyncIterator[str | Answer]:
    """Yield an answer that needs no research."""
    yield Answer(text, [])


async def researched(desk: Desk, caller: Caller, begun: Begun, server: str) -> AsyncIterator[str | Answer]:
    """Yield lines on what happens, empty ones in silences, then the answer: nothing of it before it is verified."""
    yield f"{begun.run.state.value.capitalize()}: {server}{begun.run.links.page}"
    try:
        async with aclosing(progress(desk, caller, begun)) as happening:
            async for line in happening:
                yield line
        yield await answer_of(desk, caller, begun.run.id, server)
    except httpx.HTTPError as error:
        raise outage(error) from error
    except FathomError as error:  # it is told within the answer, past the handler of failures
        problems.hide_store(error, caller, desk.store.address())
        raise


async def collected(parts: AsyncIterator[str | Answer]) -> tuple[Answer, list[str]]:
    """Return the answer and the lines before it."""
    lines = list[str]()
    async for part in parts:
        if isinstance(part, Answer):
            return part, lines
        lines += [part] if part else []
    raise AssertionError("an answer is the last part")

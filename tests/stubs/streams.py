"""Streamed answers: the text in tokens, and how these are written."""

from __future__ import annotations

import asyncio
import json
import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from aiohttp import web

from tests.stubs.records import Record
from tests.stubs.replies import Delivery

__all__ = ["Events", "framed", "send", "tokens"]

_TOKEN = re.compile(r"\s*\S{1,4}|\s+")
_PAUSE = 0.002  # seconds between the tokens of a loop


@dataclass(frozen=True)
class Events:
    """An answer as one protocol streams it: what comes before the tokens, each token, and what comes after them."""

    content_type: str
    head: bytes
    tokens: list[bytes]
    tail: bytes
    error: bytes


def tokens(text: str) -> list[str]:
    """Return the pieces of a text, of at most four letters and with the space before them; joined they are the text."""
    return _TOKEN.findall(text)


def framed(frame: dict[str, Any], field: str, text: str, before: str = "data: ", after: str = "\n\n") -> list[bytes]:
    """Return one event for each token of a text: the frame with the token in place of its field, which is empty.

    The frame becomes JSON once, as a suite streams very many tokens.
    """
    opening, closing = json.dumps(frame).split(f'"{field}": ""')
    return [f'{before}{opening}"{field}": {json.dumps(token)}{closing}{after}'.encode() for token in tokens(text)]


async def send(
    request: web.Request, record: Record, events: Events, delivery: Delivery, finish: Callable[[], None]
) -> web.StreamResponse:
    """Write a stream; `finish` is called before its last bytes."""
    response = web.StreamResponse(headers={"Content-Type": events.content_type})
    await response.prepare(request)
    shown = events.tokens[: math.ceil(len(events.tokens) * delivery.share)]
    if delivery == Delivery():
        record.tokens = len(shown)
        finish()
        await response.write(b"".join([events.head, *shown, events.tail]))
        await response.write_eof()
        return response
    await response.write(events.head)
    for token in shown:
        await asyncio.sleep(delivery.seconds)
        await response.write(token)
        record.tokens += 1
    while delivery.ending == "loop":
        for token in shown[-delivery.loop :]:
            await asyncio.sleep(_PAUSE)
            await response.write(token)
            record.tokens += 1
            record.repeated += 1
    if delivery.ending == "silent":
        await asyncio.sleep(3_600)
    if delivery.ending == "cut":
        if request.transport:
            request.transport.abort()
        return response
    finish()
    await response.write(events.error if delivery.ending == "error" else events.tail)
    await response.write_eof()
    return response

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

__all__ = ["AT_ONCE", "Events", "Pieces", "send", "tokens"]

_TOKEN = re.compile(r"\s*\S{1,4}|\s+")
AT_ONCE = 16
"""Tokens in one event of an answer that is written undisturbed, after as many that come alone: reading takes time."""

_PAUSE = 0.002  # seconds between the tokens of a loop


@dataclass(frozen=True)
class Events:
    """An answer as one protocol streams it: what comes before the tokens, these, and what comes after them."""

    content_type: str
    head: bytes
    pieces: Pieces
    tail: bytes
    error: bytes


def tokens(text: str) -> list[str]:
    """Return the pieces of a text, of at most four letters and with the space before them; joined they are the text."""
    return _TOKEN.findall(text)


class Pieces:
    """The events of an answer between its first and its last, of so many tokens each, and how many tokens there are."""

    def __init__(self, at_once: int) -> None:
        self.events: list[bytes] = []
        self.count = 0
        self._at_once = at_once

    def add(self, frame: dict[str, Any], field: str, text: str, before: str = "data: ", after: str = "\n\n") -> None:
        """Add the events of a text: the frame with some tokens in place of its field, which is empty.

        The frame becomes JSON once, as a suite streams very many tokens.
        """
        opening, closing = json.dumps(frame).split(f'"{field}": ""')
        said = tokens(text)
        self.count += len(said)
        alone, rest = said[: self._at_once], said[self._at_once :]
        together = ("".join(rest[n : n + self._at_once]) for n in range(0, len(rest), self._at_once))
        for piece in (*alone, *together):
            self.events.append(f'{before}{opening}"{field}": {json.dumps(piece)}{closing}{after}'.encode())

    def one(self, event: bytes) -> None:
        """Add an event that counts as a token."""
        self.events.append(event)
        self.count += 1


async def send(
    request: web.Request, record: Record, events: Events, delivery: Delivery, finish: Callable[[], None]
) -> web.StreamResponse:
    """Write a stream, an event for a token unless it is undisturbed; `finish` is called before its last bytes."""
    response = web.StreamResponse(headers={"Content-Type": events.content_type})
    await response.prepare(request)
    shown = events.pieces.events[: math.ceil(len(events.pieces.events) * delivery.share)]
    if delivery == Delivery():
        record.tokens = events.pieces.count
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

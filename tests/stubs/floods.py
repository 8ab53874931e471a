"""Answers without end, or nearly: what a client must stop reading by itself.

`flood` is 30 MB of HTML, `json_flood` a JSON string of that size, `bomb` the same zipped into 30 KB, and `drip` a byte
every 20 milliseconds.
"""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import AsyncIterator
from functools import cache

__all__ = ["FLOOD", "FLOODS", "flooding"]

FLOOD = 30 * 2**20
FLOODS = ("flood", "json_flood", "bomb", "drip")
_LINE = b"<p>Please sign in to the network &amp; go on.</p>\n"
_PIECE = 2**16


@cache
def _bomb() -> bytes:
    return gzip.compress(b'{"results": "' + b" " * FLOOD)


async def flooding(behaviour: str) -> AsyncIterator[bytes]:
    """Yield the pieces of an answer."""
    if behaviour == "bomb":
        yield _bomb()
        return
    if behaviour == "json_flood":
        yield b'{"results": "'
    while behaviour == "drip":
        yield b" "
        await asyncio.sleep(0.02)
    piece = _LINE * (_PIECE // len(_LINE))
    for _ in range(FLOOD // len(piece)):
        yield piece

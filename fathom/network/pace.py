"""How often a public service is asked: what its rules of use allow, over all runs of this process.

Runs of one process may have event loops of their own, so what waits here holds no object of a loop. Several processes
share a limit through `fathom.network.limits`.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import cache

from fathom.errors import ToolRateLimited

LONGEST_WAIT = 30.0  # seconds that a request waits for the rest that a service asked for
LONGEST_REST = 60 * 60.0
_GLANCE = 0.02  # seconds between two looks at whether it is one's turn


class Pace:
    """Lets a number of requests to a service run at once, and starts them some seconds apart."""

    def __init__(self, service: str, at_once: int) -> None:
        self._service = service
        self._places = threading.Semaphore(at_once)
        self._door = threading.Lock()
        self._free_at = 0.0

    @asynccontextmanager
    async def turn(self, apart: float) -> AsyncIterator[None]:
        """Make one request inside the block, once it is its turn; the next starts at least `apart` seconds later.

        Raises:
            ToolRateLimited: the service asked for a longer rest than a request waits for.
        """
        async with _held(self._places):
            async with _held(self._door):
                wait = self._free_at - time.monotonic()
                if wait > LONGEST_WAIT:
                    message = f"{self._service} asked not to be asked again for another {wait:.0f} seconds."
                    raise ToolRateLimited(message, retry_after=wait)
                await asyncio.sleep(max(0.0, wait))
                self._free_at = time.monotonic() + apart
            yield

    def rest(self, seconds: float) -> None:
        """Start no request for some seconds, at most an hour: the service asked for it."""
        self._free_at = max(self._free_at, time.monotonic() + min(seconds, LONGEST_REST))


@cache
def pace_of(service: str, address: str, at_once: int) -> Pace:
    """Return the pace of the service at an address, the same for all who ask it."""
    return Pace(service, at_once)


@asynccontextmanager
async def _held(place: threading.Semaphore | threading.Lock) -> AsyncIterator[None]:
    while not place.acquire(blocking=False):  # noqa: ASYNC110 (an event belongs to one loop)
        await asyncio.sleep(_GLANCE)
    try:
        yield
    finally:
        place.release()

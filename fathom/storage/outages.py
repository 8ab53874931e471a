"""Riding out the outages of an object store: what it would not take or give is asked again, for a limited time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from time import monotonic
from typing import TypeVar

from fathom.storage.atomic import AtomicFiles

T = TypeVar("T")

OUTAGE_SECONDS = 60.0
"""How long a run waits for an object store that does not answer."""
_PAUSES = (0.5, 5.0)  # the first and the longest, in seconds; each is twice the one before


class Outages:
    """Calls to the files of a store, each repeated while the store does not answer, up to `patience` seconds.

    An outage begins with a failure and ends with the next success. `say` is told of it once, and once it has lasted for
    too long, no call waits for its end any more. Each call must be one that may be repeated.
    """

    def __init__(self, files: AtomicFiles, patience: float, say: Callable[[str], object]) -> None:
        self._files = files
        self._patience = patience
        self._say = say
        self._until: float | None = None  # when the outage will have lasted too long

    async def call(self, path: str, blocking: Callable[[str], T]) -> T:
        """Call a function with a path in a thread and return its result; `AtomicFiles.failures` are raised."""
        until: float | None = None
        pause, longest = _PAUSES
        while True:
            try:
                result = await asyncio.to_thread(blocking, path)
            except self._files.failures as error:
                if not self._files.is_outage(error):
                    self._until = None  # it answered
                    raise
                now = monotonic()
                if (outage := self._until) is None:
                    outage = self._until = now + self._patience
                    if self._patience:
                        self._say(f"the artifact store does not answer; trying again for up to {self._patience:.0f} s")
                until = until or now + self._patience
                left = min(until, outage) - now
                if left <= 0:
                    raise
            else:
                self._until = None
                return result
            await asyncio.sleep(min(pause, left))
            pause = min(2 * pause, longest)

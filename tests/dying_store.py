"""A store whose process is killed before one of its changes, and what it then leaves."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

from fathom.storage.atomic import Flush
from fathom.storage.store import ArtifactStore
from tests.processes import ended_process

__all__ = ["Killed", "WatchedStore", "bury"]


class Killed(BaseException):
    """The end of the process."""


class WatchedStore(ArtifactStore):
    """A real store on a local disk that calls a function before each of its changes, with their number, from 0."""

    def __init__(self, root: str, before: Callable[[int], Awaitable[None]]) -> None:
        super().__init__(root)
        self._before = before
        self._changes = 0

    async def _changing(self) -> None:
        number, self._changes = self._changes, self._changes + 1
        await self._before(number)

    async def write(self, path: str, data: bytes, *, flush: Flush = Flush.everything) -> None:
        await self._changing()
        await super().write(path, data, flush=flush)

    async def create(self, path: str, data: bytes, *, private: bool = False) -> bool:
        await self._changing()
        return await super().create(path, data, private=private)

    async def remove_all(self, paths: Sequence[str]) -> None:
        for path in paths:  # a kill may come between any two files
            await self._changing()
            await super().remove_all([path])


def bury(root: Path) -> None:
    """Make every lease of this process a lease of a process that has ended."""
    dead = ended_process()
    for path in root.glob(".results/*/lease/*.json"):
        path.write_text(json.dumps({**json.loads(path.read_bytes()), "pid": dead}))

"""Remarks of people to a run during its research: numbered files beside its results, which any process can add.

Each is created exclusively, so a race has one winner and the other takes the next number. The run itself ends the
list: it writes that it hears no more, or that its research has ended, as an entry like the others. So either a remark
    stands before that entry, and the run has it, or its number is taken, and its author is told that it came too late.

Runs may share a key, and with it the folder: an entry names its run.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from uuid import uuid4

from fathom.models import Model, Remark
from fathom.storage.lease import RESULTS
from fathom.storage.names import numbers_in
from fathom.storage.store import ArtifactStore


class Steer(StrEnum):
    """The kind of an entry."""

    tell = "tell"  # a remark, to be taken up
    stop = "stop"  # to end the research and write
    heard = "heard"  # from the run: it takes up no further remark
    ended = "ended"  # from the run: its research is over


class SteeringEntry(Model):
    """One entry. `at` is an ISO 8601 time in UTC."""

    kind: Steer
    run_id: str
    author: str
    at: str
    text: str = ""
    token: str = ""  # different for every entry

    @property
    def remark(self) -> Remark:
        """The entry as the run keeps it."""
        return Remark(text=self.text, author=self.author, at=self.at)


class Steering:
    """The entries of one run. An entry is read only once."""

    def __init__(self, store: ArtifactStore, run_key: str, run_id: str) -> None:
        self._store = store
        self._folder = f"{RESULTS}/{run_key}/steering"
        self._run_id = run_id
        self._read: dict[int, SteeringEntry] = {}

    async def entries(self) -> list[SteeringEntry]:
        """Return the entries of the run, in their order.

        Raises:
            StoreError: one cannot be read.
        """
        new = set(numbers_in(await self._store.list(self._folder))) - self._read.keys()
        for number in sorted(new):
            if entry := await self._store.stored(SteeringEntry, self._path(number), "remove that file"):
                self._read[number] = entry
        return [entry for _, entry in sorted(self._read.items()) if entry.run_id == self._run_id]

    async def stopped(self) -> Remark | None:
        """Return who stopped the research, if anybody did.

        Raises:
            StoreError: an entry cannot be read.
        """
        return stop_among(await self.entries())

    async def add(self, entry: SteeringEntry) -> bool:
        """Add an entry after the ones that were read last; return False if another entry came first.

        Raises:
            StoreError: it cannot be written.
        """
        number = max(self._read, default=0) + 1
        own = entry.model_copy(update={"token": uuid4().hex})
        if not await self._store.create(self._path(number), own.model_dump_json(indent=1).encode()):
            return False
        self._read[number] = own
        return True

    def _path(self, number: int) -> str:
        return f"{self._folder}/{number:04}.json"


def stop_among(entries: Sequence[SteeringEntry]) -> Remark | None:
    """Return who stopped the research, if one of the entries does."""
    return next((entry.remark for entry in entries if entry.kind is Steer.stop), None)

"""What people say to a run and of it: remarks during its research, ratings of its report.

Remarks are numbered files beside the run's results, which any process can add. Each is created exclusively, so a race
has one winner and the other takes the next number. The run writes entries like the others: that it takes up the
remarks before this entry, that it hears no more, or that its research has ended. So either a remark stands before the
last two, and the run has it, or its number is taken, and its author is told that it came too late. In the same way, a
remark is either taken back before the run takes it up, or its author is told that this came too late.

Runs may share a key, and with it the folder: an entry names its run.

A rating is a thumb and a note, a file for each run and reader; a second thought replaces the first. Ratings lie beside
the runs, not in their folders: a run's evidence does not change because somebody reads it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from enum import StrEnum
from uuid import uuid4

from fathom.models import Model, Remark, ReportRating
from fathom.storage.atomic import side_by_side
from fathom.storage.lease import RESULTS
from fathom.storage.names import numbers_in
from fathom.storage.store import ArtifactStore, json_bytes


class Steer(StrEnum):
    """The kind of an entry."""

    tell = "tell"  # a remark, to be taken up
    back = "back"  # a remark is taken back; `text` is its token
    stop = "stop"  # to end the research and write
    taken = "taken"  # from the run: it takes up the remarks before this entry
    heard = "heard"  # from the run: it takes up no further remark
    ended = "ended"  # from the run: its research is over


_BY_RUN = (Steer.taken, Steer.heard, Steer.ended)


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


def told_among(entries: Sequence[SteeringEntry]) -> list[SteeringEntry]:
    """Return the remarks that were not taken back, in their order."""
    back = {entry.text for entry in entries if entry.kind is Steer.back}
    return [entry for entry in entries if entry.kind is Steer.tell and entry.token not in back]


def waiting_among(entries: Sequence[SteeringEntry]) -> list[SteeringEntry]:
    """Return the remarks that the run has not taken up yet, which can still be taken back."""
    last = max((n for n, entry in enumerate(entries, 1) if entry.kind in _BY_RUN), default=0)
    return [entry for entry in told_among(entries) if entry in entries[last:]]


def stop_among(entries: Sequence[SteeringEntry]) -> Remark | None:
    """Return who stopped the research, if one of the entries does."""
    return next((entry.remark for entry in entries if entry.kind is Steer.stop), None)


RATINGS = ".ratings"


class Rated(Model):
    """How many readers were content, and how many were not."""

    up: int = 0
    down: int = 0

    @property
    def said(self) -> str:
        """The counts in words; empty if there are none."""
        total = self.up + self.down
        return f"{self.up} up, {self.down} down ({self.up / total:.0%} up)" if total else ""


class Ratings:
    """The ratings of the runs of a store."""

    def __init__(self, store: ArtifactStore) -> None:
        self._store = store

    async def give(self, run_id: str, *, good: bool, note: str, by: str) -> ReportRating:
        """Store a reader's rating of a run, in place of an earlier one of theirs.

        Raises:
            StoreError: it cannot be written.
        """
        rating = ReportRating(good=good, note=note, by=by, at=datetime.now(UTC).isoformat(timespec="seconds"))
        name = hashlib.sha256(by.encode()).hexdigest()[:16]
        await self._store.write(f"{RATINGS}/{run_id}/{name}.json", json_bytes(rating))
        return rating

    async def of(self, run_id: str) -> list[ReportRating]:
        """Return the ratings of a run, the oldest first.

        Raises:
            StoreError: one cannot be read.
        """
        paths = [f"{RATINGS}/{run_id}/{name}" for name in await self._store.list(f"{RATINGS}/{run_id}")]
        found = await side_by_side(paths, lambda path: self._store.stored(ReportRating, path, "remove that file"))
        return sorted((rating for rating in found if rating), key=lambda rating: rating.at)

    async def total(self, run_ids: Iterable[str]) -> Rated:
        """Return how readers rated some runs, each rating once.

        Raises:
            StoreError: one cannot be read.
        """
        rated = set(await self._store.list(RATINGS)) & set(run_ids)
        found = [rating for each in await side_by_side(rated, self.of) for rating in each]
        up = sum(rating.good for rating in found)
        return Rated(up=up, down=len(found) - up)

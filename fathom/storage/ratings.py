"""What readers say of reports: a thumb and a note, a file for each run and reader. A second thought replaces the first.

They lie beside the runs, not in their folders: a run's evidence does not change because somebody reads it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from datetime import UTC, datetime

from fathom.models import Model, ReportRating
from fathom.storage.atomic import side_by_side
from fathom.storage.store import ArtifactStore, json_bytes

FOLDER = ".ratings"


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
        await self._store.write(f"{FOLDER}/{run_id}/{name}.json", json_bytes(rating))
        return rating

    async def of(self, run_id: str) -> list[ReportRating]:
        """Return the ratings of a run, the oldest first.

        Raises:
            StoreError: one cannot be read.
        """
        paths = [f"{FOLDER}/{run_id}/{name}" for name in await self._store.list(f"{FOLDER}/{run_id}")]
        found = await side_by_side(paths, lambda path: self._store.stored(ReportRating, path, "remove that file"))
        return sorted((rating for rating in found if rating), key=lambda rating: rating.at)

    async def total(self, run_ids: Iterable[str]) -> Rated:
        """Return how readers rated some runs, each rating once.

        Raises:
            StoreError: one cannot be read.
        """
        rated = set(await self._store.list(FOLDER)) & set(run_ids)
        found = [rating for each in await side_by_side(rated, self.of) for rating in each]
        up = sum(rating.good for rating in found)
        return Rated(up=up, down=len(found) - up)

"""Whose something is, as it is stored: by the service when somebody asks, and read by the runs that may read others."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from fathom.models import Model
from fathom.storage.store import ArtifactStore, json_bytes

FOLDER = ".serve/runs"
RUN_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_OWNER, _SHARED, _ADMIN = "owner:", "shared", "admin"
"""Tags of a flow run that say the same: they are set when it is created, before the store can be."""


class Reader(Protocol):
    """Somebody who reads what others own."""

    @property
    def name(self) -> str:
        """Their name."""

    @property
    def is_admin(self) -> bool:
        """Whether they may read everything."""


@dataclass(frozen=True)
class Asker:
    """Who asked a run, as its flow run says. Who started it without a server has the store, and may read all of it."""

    name: str = ""
    is_admin: bool = True


class Ownership(Model):
    """Whose something is. `owner` is empty where nobody is known, as of a run that a command started.

    `admin`: whether the owner may read everything, as it was when they asked. `title`: what a run was named; empty for
    its question. `removed`: nobody sees it any more. `guest`: the one who asks now, if a link let them in; not stored.
    """

    owner: str = ""
    shared: bool = False
    admin: bool = False
    title: str = ""
    removed: bool = False
    guest: str = ""

    @classmethod
    def of_tags(cls, tags: Sequence[str]) -> Ownership:
        """Return what the tags of a flow run or a deployment say."""
        owner = next((tag.removeprefix(_OWNER) for tag in tags if tag.startswith(_OWNER)), "")
        return cls(owner=owner, shared=_SHARED in tags, admin=_ADMIN in tags)

    @property
    def tags(self) -> list[str]:
        """The tags that say the same."""
        owner = [f"{_OWNER}{self.owner}"] if self.owner else []
        return [
            "fathom",
            "serve",
            *owner,
            *([_SHARED] if self.shared else []),
            *([_ADMIN] if self.admin else []),
        ]

    @property
    def asker(self) -> Asker:
        """The owner as somebody who reads other runs."""
        return Asker(self.owner, self.admin or not self.owner)

    def readable_by(self, reader: Reader) -> bool:
        """Whether somebody may see it."""
        return not self.removed and (reader.is_admin or self.shared or reader.name in {self.owner, self.guest} - {""})


class Owners:
    """The owners of the runs of one store."""

    def __init__(self, store: ArtifactStore) -> None:
        self._store = store

    async def record(self, run_id: str, ownership: Ownership) -> None:
        """Store whose a run is."""
        await self._store.write(_path(run_id), json_bytes(ownership.model_dump(exclude={"guest"})))

    async def of(self, run_id: str, tags: Sequence[str]) -> Ownership:
        """Return whose a run is: what is stored, else what the tags of its flow run say; raises as `stored` does."""
        return await self.stored(run_id) or Ownership.of_tags(tags)

    async def stored(self, run_id: str) -> Ownership | None:
        """Return what is stored of whose a run is; None for a run that was not asked of a server.

        Raises:
            StoreError: it cannot be read.
        """
        path = path_of(run_id)
        return await self._store.stored(Ownership, path, "restore the file") if path else None


def path_of(run_id: str) -> str:
    """Return the file that says whose a run is; empty for an id that no run has, as a changed manifest may say."""
    return _path(run_id) if RUN_ID.fullmatch(run_id) else ""


def _path(run_id: str) -> str:
    return f"{FOLDER}/{run_id}.json"

"""Whose each run is, kept on the store, and who did what with it.

Who did what with a run from outside: asked, answered, steered, cancelled, shared it. The run's audit log has one
writer, the run. So a server writes what people do to a log of its own on the store, one file an entry,
`.serve/audit/{run id}/{number}.json`, each created exclusively: a race has one winner.
"""

from __future__ import annotations

import asyncio
import re
from datetime import UTC, datetime
from enum import StrEnum
from uuid import uuid4

from pydantic import ValidationError

from fathom.errors import StoreError
from fathom.models import Model
from fathom.service.caller import Caller, Ownership
from fathom.storage.store import ArtifactStore, json_bytes

FOLDER = ".serve/runs"
OWNER_TAG, SHARED_TAG = "owner:", "shared"
"""Tags of a flow run that say the same: they are set when it is created, before the store can be."""


class Owners:
    """The owners of the runs of one store."""

    def __init__(self, store: ArtifactStore) -> None:
        self._store = store

    async def record(self, run_id: str, ownership: Ownership) -> None:
        """Store whose a run is."""
        await self._store.write(_path(run_id), json_bytes(ownership.model_dump(exclude={"guest"})))

    async def of(self, run_id: str, tags: list[str]) -> Ownership:
        """Return whose a run is: what is stored, else what the tags of its flow run say.

        Raises:
            StoreError: what is stored cannot be read.
        """
        try:
            return Ownership.model_validate_json(await self._store.read(_path(run_id)))
        except FileNotFoundError:
            owner = next((tag.removeprefix(OWNER_TAG) for tag in tags if tag.startswith(OWNER_TAG)), "")
            return Ownership(owner=owner, shared=SHARED_TAG in tags)
        except ValidationError as error:
            raise StoreError(f"{self._store.address(_path(run_id))} is damaged: {error}.") from error


def tags_of(ownership: Ownership) -> list[str]:
    """Return the tags that say whose a flow run is."""
    owner = [f"{OWNER_TAG}{ownership.owner}"] if ownership.owner else []
    return ["fathom", "serve", *owner, *([SHARED_TAG] if ownership.shared else [])]


def _path(run_id: str) -> str:
    return f"{FOLDER}/{run_id}.json"


JOURNAL = ".serve/audit"
_RUN = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_NAME = re.compile(r"(\d{4,9})\.json")


class Deed(StrEnum):
    """What somebody did."""

    asked = "asked"
    answered = "answered"
    told = "told"
    stopped = "stopped"
    cancelled = "cancelled"
    shared = "shared"
    unshared = "unshared"
    linked = "linked"  # made a link
    unlinked = "unlinked"
    joined = "joined"  # came by a link


class Entry(Model):
    """One deed. `at` is an ISO 8601 time in UTC; `token` is the id of the token that was used, if one was."""

    at: str
    by: str
    role: str
    token: str = ""
    deed: Deed
    detail: str = ""
    unique: str = ""  # different for every entry


class Journal:
    """What people did with the runs of one store."""

    def __init__(self, store: ArtifactStore) -> None:
        self._store = store

    async def note(self, run_id: str, caller: Caller, deed: Deed, detail: str = "") -> None:
        """Write down what a caller did.

        Raises:
            StoreError: it cannot be written.
        """
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        own = {"role": caller.role.value, "token": caller.token, "unique": uuid4().hex}
        entry = Entry(at=now, by=caller.name, deed=deed, detail=detail, **own)
        number = max((int(name[:-5]) for name in await self._names(run_id)), default=0) + 1
        while not await self._store.create(
            _journal_path(run_id, f"{number:04}.json"), entry.model_dump_json().encode()
        ):
            number += 1

    async def of(self, run_id: str) -> list[Entry]:
        """Return what was done with a run, in order.

        Raises:
            StoreError: an entry cannot be read.
        """
        paths = [_journal_path(run_id, name) for name in await self._names(run_id)]
        texts = await asyncio.gather(*map(self._store.read, paths))
        try:
            return [Entry.model_validate_json(text) for text in texts]
        except ValidationError as error:
            raise StoreError(
                f"{self._store.address(f'{JOURNAL}/{run_id}')} is damaged: {error.errors()[0]['msg']}."
            ) from None

    async def _names(self, run_id: str) -> list[str]:
        if not _RUN.fullmatch(run_id):  # of a run that was imported, or whose manifest is damaged
            return []
        names = [name for name in await self._store.list(f"{JOURNAL}/{run_id}") if _NAME.fullmatch(name)]
        return sorted(names, key=lambda name: int(name[:-5]))


def _journal_path(run_id: str, name: str) -> str:
    return f"{JOURNAL}/{run_id}/{name}"

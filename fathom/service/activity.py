"""The activity log: who did what with a run from outside: asked, answered, steered, cancelled, shared it.

The run's audit log has one writer, the run. So a server writes what people do to a log of its own on the store, a file
an entry, `.serve/audit/{run id}/{number}.json`, each created exclusively: a race has one winner.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from enum import StrEnum
from uuid import uuid4

from fathom.models import Model
from fathom.service.caller import Caller
from fathom.storage.atomic import side_by_side
from fathom.storage.store import ArtifactStore

FOLDER = ".serve/audit"
RUN_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_NAME = re.compile(r"(\d{4,9})\.json")


class Action(StrEnum):
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
    rated = "rated"
    renamed = "renamed"
    removed = "removed"


class Activity(Model):
    """One thing that somebody did. `at` is an ISO 8601 time in UTC, `token` the id of the token used, if any."""

    at: str
    by: str
    role: str
    token: str = ""
    action: Action
    detail: str = ""
    unique: str = ""  # different for every entry


class ActivityLog:
    """What people did with the runs of one store."""

    def __init__(self, store: ArtifactStore) -> None:
        self._store = store

    async def note(self, run_id: str, caller: Caller, action: Action, detail: str = "") -> None:
        """Write down what a caller did.

        Raises:
            StoreError: it cannot be written.
        """
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        own = {"role": caller.role.value, "token": caller.token, "unique": uuid4().hex}
        entry = Activity(at=now, by=caller.name, action=action, detail=detail, **own)
        number = max((int(name[:-5]) for name in await self._names(run_id)), default=0) + 1
        while not await self._store.create(_path(run_id, f"{number:04}.json"), entry.model_dump_json().encode()):
            number += 1

    async def of(self, run_id: str) -> list[Activity]:
        """Return what was done with a run, in order.

        Raises:
            StoreError: an entry cannot be read.
        """
        paths = [_path(run_id, name) for name in await self._names(run_id)]
        found = await side_by_side(paths, lambda path: self._store.stored(Activity, path, "restore the file"))
        return [entry for entry in found if entry]

    async def _names(self, run_id: str) -> list[str]:
        if not RUN_ID.fullmatch(run_id):  # of a run that was imported, or whose manifest is damaged
            return []
        names = [name for name in await self._store.list(f"{FOLDER}/{run_id}") if _NAME.fullmatch(name)]
        return sorted(names, key=lambda name: int(name[:-5]))


def _path(run_id: str, name: str) -> str:
    return f"{FOLDER}/{run_id}/{name}"

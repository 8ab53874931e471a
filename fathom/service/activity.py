"""The activity log: who did what with a run from outside: asked, answered, steered, cancelled, shared it.

The run's audit log has one writer, the run. So a server writes what people do to a log of its own on the store, a file
an entry, `.serve/audit/{run id}/{number}.json`, each created exclusively: a race has one winner.
"""

from __future__ import annotations

from datetime import UTC, datetime
from enum import StrEnum
from uuid import uuid4

from fathom.models import Model
from fathom.service.caller import Caller
from fathom.storage.atomic import side_by_side
from fathom.storage.names import numbers_in
from fathom.storage.ownership import RUN_ID
from fathom.storage.store import ArtifactStore

FOLDER = ".serve/audit"


class Action(StrEnum):
    """What somebody did."""

    asked = "asked"
    answered = "answered"
    told = "told"
    took_back = "took_back"  # a remark
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
        number = max(await self._numbers(run_id), default=0) + 1
        while not await self._store.create(_path(run_id, number), entry.model_dump_json().encode()):
            number += 1

    async def of(self, run_id: str) -> list[Activity]:
        """Return what was done with a run, in order.

        Raises:
            StoreError: an entry cannot be read.
        """
        paths = [_path(run_id, number) for number in await self._numbers(run_id)]
        found = await side_by_side(paths, lambda path: self._store.stored(Activity, path, "restore the file"))
        return [entry for entry in found if entry]

    async def _numbers(self, run_id: str) -> list[int]:
        # The run may have been imported, or its manifest may be damaged.
        return numbers_in(await self._store.list(f"{FOLDER}/{run_id}")) if RUN_ID.fullmatch(run_id) else []


def _path(run_id: str, number: int) -> str:
    return f"{FOLDER}/{run_id}/{number:04}.json"

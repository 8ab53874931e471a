"""Whose something is, and who may see and change it: one rule for runs, batches, watches, corpora and sessions."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import ValidationError

from fathom.errors import FathomError, NotAllowed, StoreError
from fathom.models import Model
from fathom.service.caller import Caller, Role
from fathom.storage.store import ArtifactStore, json_bytes

FOLDER = ".serve/runs"
_OWNER, _SHARED = "owner:", "shared"
"""Tags of a flow run that say the same: they are set when it is created, before the store can be."""


class Ownership(Model):
    """Whose something is. `owner` is empty where nobody is known, as of a run that a command started.

    `title`: what a run was named; empty for its question. `removed`: nobody sees it any more.

    `guest`: the one who asks now, if a link let them in; it is not stored.
    """

    owner: str = ""
    shared: bool = False
    title: str = ""
    removed: bool = False
    guest: str = ""

    @classmethod
    def of_tags(cls, tags: Sequence[str]) -> Ownership:
        """Return what the tags of a flow run or a deployment say."""
        owner = next((tag.removeprefix(_OWNER) for tag in tags if tag.startswith(_OWNER)), "")
        return cls(owner=owner, shared=_SHARED in tags)

    @property
    def tags(self) -> list[str]:
        """The tags that say the same."""
        owner = [f"{_OWNER}{self.owner}"] if self.owner else []
        return ["fathom", "serve", *owner, *([_SHARED] if self.shared else [])]

    def readable_by(self, caller: Caller) -> bool:
        """Whether somebody may see it."""
        return not self.removed and (caller.is_admin or self.shared or caller.name in {self.owner, self.guest} - {""})

    def check_read(self, caller: Caller, missing: FathomError) -> None:
        """Check that somebody may see it.

        Raises:
            FathomError: they may not, and so may not learn that it exists: `missing`, as if it did not.
        """
        if not self.readable_by(caller):
            raise missing

    def check_owner(self, caller: Caller, what: str) -> None:
        """Check that somebody who may see it may also change and end it; `what` is such as `run`.

        Raises:
            NotAllowed: it is somebody else's.
        """
        caller.check(Role.asker)
        if not caller.may_change(self.owner):
            raise NotAllowed(f"Only the owner of the {what} and administrators may do this.")


class Owners:
    """The owners of the runs of one store."""

    def __init__(self, store: ArtifactStore) -> None:
        self._store = store

    async def record(self, run_id: str, ownership: Ownership) -> None:
        """Store whose a run is."""
        await self._store.write(_path(run_id), json_bytes(ownership.model_dump(exclude={"guest"})))

    async def of(self, run_id: str, tags: Sequence[str]) -> Ownership:
        """Return whose a run is: what is stored, else what the tags of its flow run say.

        Raises:
            StoreError: what is stored cannot be read.
        """
        try:
            return Ownership.model_validate_json(await self._store.read(_path(run_id)))
        except FileNotFoundError:
            return Ownership.of_tags(tags)
        except ValidationError as error:
            raise StoreError(f"{self._store.address(_path(run_id))} is damaged: {error}.") from error


def _path(run_id: str) -> str:
    return f"{FOLDER}/{run_id}.json"

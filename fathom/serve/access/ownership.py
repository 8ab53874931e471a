"""Whose each run is, kept on the store, so that every server knows it and a lost Prefect database loses nothing."""

from __future__ import annotations

from pydantic import ValidationError

from fathom.errors import StoreError
from fathom.serve.caller import Ownership
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

"""The library of a run: the earlier runs that whoever asked it may read. Imports Prefect."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from fathom.errors import RunNotFound
from fathom.flows.runs.finding import find_run
from fathom.flows.runs.library import Library
from fathom.storage.ownership import Owners, Ownership
from fathom.storage.store import ArtifactStore
from fathom.tools.earlier import TextsFor


def library_of(store: ArtifactStore, cache: Path, tags: Sequence[str]) -> TextsFor:
    """Return the search of a run in earlier ones, from the tags of its flow run, which say who asked."""
    asker, owners = Ownership.of_tags(tags).asker, Owners(store)

    async def may_read(run_id: str) -> bool:
        if asker.is_admin:
            return True
        try:
            return (await owners.of(run_id, (await find_run(store, run_id)).tags)).readable_by(asker)
        except RunNotFound:
            return False

    return partial(Library(store, cache).texts, may_read=may_read)

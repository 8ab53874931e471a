"""What no corpus needs any more is removed: earlier editions, and files that only these have.

An edition is needed while it is the last one of its corpus, for a period after it was replaced, and as long as a run
that has not finished reads the corpus.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from datetime import datetime

from fathom.models import Model
from fathom.storage.corpora import Corpora
from fathom.storage.editions import CORPORA, Edition, edition_path, folder_of
from fathom.storage.lease import RESULTS, read_lease
from fathom.storage.runs import runs
from fathom.storage.store import REMOVED_AT_ONCE, RESULT, ArtifactStore


class OldUploads(Model):
    """What no corpus needs: files on the store, and their bytes."""

    files: int = 0
    bytes: int = 0


async def prune_uploads(store: ArtifactStore, before: datetime, *, dry_run: bool) -> OldUploads:
    """Remove what no corpus has needed since a time, and return what was removed, or with `dry_run` would be."""
    folders = [f"{CORPORA}/{name}" for name in await store.list(CORPORA)]
    found = {folder: old for folder in folders if (old := await _old(store, folder, before))}
    reads = await _read_by_unfinished(store) if found else set()
    sizes: dict[str, int] = {}
    for folder in found.keys() - reads:
        # Others may have added files meanwhile.
        old = found[folder] if dry_run else await _old(store, folder, before)
        sizes |= old
        paths = list(old)
        for start in range(0, 0 if dry_run else len(paths), REMOVED_AT_ONCE):
            await store.remove_all(paths[start : start + REMOVED_AT_ONCE])
    return OldUploads(files=len(sizes), bytes=sum(sizes.values()))


async def _old(store: ArtifactStore, folder: str, before: datetime) -> Mapping[str, int]:
    """Return what is not needed of a corpus, with its bytes, in the order in which it may go: the last edition last."""
    sizes = await store.sizes(folder)
    editions = await Corpora(store).history(folder)
    kept = [edition for edition, until in zip(editions, [*editions[1:], None], strict=True) if _needed(until, before)]
    if kept and kept[-1].removed and datetime.fromisoformat(kept[-1].changed) < before:
        kept = []
    own = {edition_path(folder, edition.number) for edition in kept}
    needed = own | {path for edition in kept for path in _files(folder, edition)}
    return {
        path: sizes[path] for path in sorted(sizes, key=lambda path: ("/editions/" in path, path)) if path not in needed
    }


def _needed(replaced_by: Edition | None, before: datetime) -> bool:
    return replaced_by is None or datetime.fromisoformat(replaced_by.changed) >= before


def _files(folder: str, edition: Edition) -> list[str]:
    return [f"{folder}/readings/{edition.digest}.json", *(f"{folder}/blobs/{file.sha256}" for file in edition.files)]


async def _read_by_unfinished(store: ArtifactStore) -> set[str]:
    """Return the folders of the corpora that runs read which have not finished; a few may have no folder yet."""
    found = await runs(store, partial=True)
    ends = await asyncio.gather(*(store.exists(f"{run.folder}/{RESULT}") for run in found))
    finished = {run.run_key for run, ended in zip(found, ends, strict=True) if ended}
    names = [name for run, ended in zip(found, ends, strict=True) if not ended for name in run.corpora]
    for key in await store.list(RESULTS):
        if key not in finished and (lease := await read_lease(store, key)):
            settings = lease.parameters.get("settings")
            names += [str(name) for name in (settings or {}).get("corpora") or []] if isinstance(settings, dict) else []
    return {folder_of(name) for name in names}

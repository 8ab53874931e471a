"""Corpora: named sets of uploaded files on the artifact store, and the removal of files that none of them needs.

    corpora/{slug of the name}/editions/000001.json    the first state of the corpus; each change writes the next one
    corpora/{slug of the name}/blobs/{SHA-256}         the bytes of a file

An edition never changes once it is written.

If several are written at once, only one gets the number; the others start again from its content. The name of a file is
data in an edition. No path is made from it, so any name of any system is allowed. Files that no corpus needs any more
are removed: earlier editions, and files that only these have. An edition is needed while it is the last one of its
corpus, for a period after it was replaced, and as long as a run that has not finished reads the corpus.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime

from fathom.errors import Conflict, InvalidInput, NotThere, StoreError
from fathom.models import CorpusFile, Model, UnreadFile
from fathom.storage.editions import (
    CORPORA,
    FILE_NAME_CHARS,
    LIMITS,
    Edition,
    StorageLimits,
    Upload,
    UsedCorpus,
    called,
    check_name,
    composed,
    edition_path,
    folder_of,
    is_name,
    name_taken,
    no_corpus,
    own_name,
)
from fathom.storage.lease import RESULTS, read_lease
from fathom.storage.names import numbers_in
from fathom.storage.ownership import Asker, Reader
from fathom.storage.runs import runs
from fathom.storage.store import REMOVED_AT_ONCE, RESULT, ArtifactStore, json_bytes

MOST_LEFT_OUT = 500  # names kept of files that were not stored
_TRIES = 20  # attempts at a change while others change the same corpus


class CorpusStore:
    """The corpora of a store."""

    def __init__(self, store: ArtifactStore, limits: StorageLimits = LIMITS) -> None:
        self.store = store
        self.limits = limits

    async def all(self) -> list[Edition]:
        """Return the corpora as they are now, by name."""
        folders = await self.store.list(CORPORA)
        found = await asyncio.gather(*(self._last(f"{CORPORA}/{folder}") for folder in folders))
        return sorted((e for e in found if e and not e.removed), key=lambda edition: edition.name.casefold())

    async def find(self, name: str) -> Edition | None:
        """Return a corpus as it is now; None if no corpus has that name, ignoring case and punctuation."""
        edition = await self._last(folder_of(name)) if is_name(name) else None
        return edition if edition and not edition.removed else None

    async def meant(self, name: str, reader: Reader) -> Edition | None:
        """Return the corpus that somebody means by a name, as it is now; None if they may read none of that name.

        It is their own, or the one that has the name in the store, or the one that its owner calls so.

        Raises:
            InvalidInput: several others call a corpus so.
        """
        for one in (own_name(name, reader.name), name):
            if (edition := await self.find(one)) and edition.ownership.readable_by(reader):
                return edition
        same = [one for one in await self.all() if folder_of(called(one.name)) == folder_of(name)]
        others = [one for one in same if one.ownership.readable_by(reader)]
        if len(others) > 1:
            which = ", ".join(f"{one.name!r} of {one.owner}" for one in others)
            raise InvalidInput(f"Several corpora are called {name!r}.", next_step=f"name one of them: {which}")
        return others[0] if others else None

    async def get(self, name: str) -> Edition:
        """Return a corpus as it is now.

        Raises:
            NotThere: there is none of that name.
        """
        if edition := await self.find(name):
            return edition
        raise no_corpus(name)

    async def fixed(self, names: Sequence[str], asker: Asker) -> list[UsedCorpus]:
        """Return the present editions of some corpora, for a run of somebody to read.

        Raises:
            InvalidInput: one does not exist, is not for whoever asks, or has no files.
        """
        found: dict[str, UsedCorpus] = {}
        for name in names:
            edition = await self.meant(name, asker)
            if edition is None:
                raise no_corpus(name, InvalidInput)
            if not edition.files:
                raise InvalidInput(f"The corpus {name!r} has no files.", next_step="add some, or choose another corpus")
            found[edition.name] = edition.used()
        return [*found.values()]

    async def edition(self, used: UsedCorpus) -> Edition:
        """Return the edition that a run reads.

        Raises:
            StoreError: it was removed.
        """
        edition = await self._read(folder_of(used.name), used.edition)
        if edition is None or edition.digest != used.digest:
            raise StoreError(
                f"The corpus {used.name!r} is no longer stored as the run began to read it.",
                next_step="ask the question again: the new run reads the corpus as it is now",
            )
        return edition

    async def load(self, name: str, file: CorpusFile) -> bytes:
        """Return the bytes of a file.

        Raises:
            StoreError: they are missing or damaged.
        """
        path = f"{folder_of(name)}/blobs/{file.sha256}"
        try:
            data = await self.store.read(path)
        except FileNotFoundError:
            data = b""
        if hashlib.sha256(data).hexdigest() != file.sha256:
            raise StoreError(
                f"{self.store.address(path)}, the file {file.name!r} of the corpus {name!r}, is missing or damaged.",
                next_step="upload the file again",
            )
        return data

    async def create(
        self,
        name: str,
        uploads: Sequence[Upload],
        left_out: Sequence[UnreadFile] = (),
        *,
        owner: str = "",
        shared: bool = False,
        temporary: bool = False,
    ) -> Edition:
        """Make a corpus of files; `left_out` names the uploaded files that are not stored.

        Raises:
            InvalidInput: its name or a file's name cannot be used.
            Conflict: the name is taken.
            TooLarge: a limit is exceeded; nothing was written.
        """
        name = check_name(name)
        await self._check(uploads, [])
        _check_free(name, await self._last(folder_of(name)), owner)
        files = await self._store(name, uploads)

        def first(last: Edition | None) -> Edition:
            _check_free(name, last, owner)
            now = _now()
            return Edition(
                number=last.number + 1 if last else 1,
                name=name,
                owner=owner,
                shared=shared,
                temporary=temporary,
                created=now,
                changed=now,
                by=owner,
                files=_in_order(files),
                left_out=[*left_out][-MOST_LEFT_OUT:],
            )

        return await self._settle(await self._append(folder_of(name), first), uploads)

    async def add(
        self, name: str, uploads: Sequence[Upload], left_out: Sequence[UnreadFile] = (), *, by: str = ""
    ) -> Edition:
        """Add files to a corpus; each replaces the file of the same name; `left_out` is as for `create`.

        Raises:
            NotThere: there is no such corpus.
            InvalidInput: the name of a file cannot be used.
            TooLarge: a limit is exceeded; nothing was written.
        """
        await self._check(uploads, (await self.get(name)).files)
        files = await self._store(name, uploads)
        came = [*(file.name for file in files), *(file.path for file in left_out)]

        def changed(last: Edition) -> Edition:
            together = [*_without(last.files, [file.name for file in files]), *files]
            self.limits.check_corpus(together)  # others may have added files meanwhile
            missing = [*(file for file in last.left_out if file.path not in came), *left_out]
            return last.model_copy(update={"files": _in_order(together), "left_out": missing[-MOST_LEFT_OUT:]})

        return await self._settle(await self._change(name, by, changed), uploads)

    async def drop(self, name: str, file: str, *, by: str = "") -> Edition:
        """Remove a file of a corpus, or its name from the list of files that were left out.

        Raises:
            NotThere: there is no such corpus or file.
        """

        def changed(last: Edition) -> Edition:
            kept, missing = _without(last.files, [file]), [one for one in last.left_out if one.path != file]
            if len(kept) + len(missing) == len(last.files) + len(last.left_out):
                raise NotThere(
                    f"The corpus {name!r} has no file {file[:FILE_NAME_CHARS]!r}.",
                    next_step="use a name from the list of its files",
                )
            return last.model_copy(update={"files": kept, "left_out": missing})

        return await self._change(name, by, changed)

    async def share(self, name: str, *, shared: bool, by: str = "") -> Edition:
        """Set whether everyone with read access may read the corpus.

        Raises:
            NotThere: there is no such corpus.
        """
        return await self._change(name, by, lambda last: last.model_copy(update={"shared": shared}))

    async def remove(self, name: str, *, by: str = "") -> None:
        """Remove a corpus. Runs that read it go on; `fathom prune` removes its files.

        Raises:
            NotThere: there is no such corpus.
        """
        nothing = {"removed": True, "files": [], "left_out": []}
        await self._change(name, by, lambda last: last.model_copy(update=nothing))

    async def discard(self, names: Iterable[str]) -> None:
        """Remove the corpora of some names that were made for one run only."""
        for name in names:
            if (edition := await self.find(name)) and edition.temporary:
                await self.remove(name, by=edition.owner)

    async def history(self, folder: str) -> Sequence[Edition]:
        """Return the stored editions of the corpus in a folder, the last one at the end."""
        numbers = numbers_in(await self.store.list(f"{folder}/editions"))
        found = await asyncio.gather(*(self._read(folder, number) for number in numbers))
        return [edition for edition in found if edition]

    async def used(self) -> int:
        """Return the bytes of all corpora, with their earlier editions."""
        return sum((await self.store.sizes(CORPORA)).values()) if await self.store.exists(CORPORA) else 0

    async def _check(self, uploads: Sequence[Upload], held: Sequence[CorpusFile]) -> None:
        self.limits.check_each(uploads)
        new = [CorpusFile(name=upload.name, sha256="", bytes=upload.size) for upload in uploads]
        self.limits.check_corpus([*_without(held, [file.name for file in new]), *new])
        self.limits.check_all(await self.used() + sum(file.bytes for file in new))

    async def _store(self, name: str, uploads: Sequence[Upload]) -> list[CorpusFile]:
        """Store files one after the other, so that only one is in memory."""
        files: list[CorpusFile] = []
        for upload in uploads:
            data = await asyncio.to_thread(upload.read)
            file = CorpusFile(name=upload.name, sha256=hashlib.sha256(data).hexdigest(), bytes=len(data))
            await self.store.write(f"{folder_of(name)}/blobs/{file.sha256}", data)
            files.append(file)
        return files

    async def _settle(self, edition: Edition, uploads: Sequence[Upload]) -> Edition:
        """Store files again if `prune` removed them before the edition named them."""
        held = await self.store.list(f"{folder_of(edition.name)}/blobs")
        sums = {file.name: file.sha256 for file in edition.files}
        await self._store(edition.name, [u for u in uploads if sums.get(u.name) not in (None, *held)])
        return edition

    async def _change(self, name: str, by: str, changed: Callable[[Edition], Edition]) -> Edition:
        await self.get(name)

        def following(last: Edition | None) -> Edition:
            if last is None or last.removed:
                raise no_corpus(name)
            return changed(last).model_copy(update={"number": last.number + 1, "by": by, "changed": _now()})

        return await self._append(folder_of(name), following)

    async def _append(self, folder: str, following: Callable[[Edition | None], Edition]) -> Edition:
        for _ in range(_TRIES):
            edition = following(await self._last(folder))
            if await self.store.create(edition_path(folder, edition.number), json_bytes(edition)):
                return edition
        raise Conflict(f"The corpus in {folder} is being changed by others.", next_step="try again")

    async def _last(self, folder: str) -> Edition | None:
        numbers = numbers_in(await self.store.list(f"{folder}/editions"))
        return await self._read(folder, numbers[-1]) if numbers else None

    async def _read(self, folder: str, number: int) -> Edition | None:
        return await self.store.stored(Edition, edition_path(folder, number), "restore the file")


def _check_free(name: str, last: Edition | None, owner: str) -> None:
    # A run that waits in a queue, or a watch's run, must not read the files that somebody else has under the name now.
    if last and not (last.removed and last.owner == owner):
        raise name_taken(name, last)


def _without(files: Iterable[CorpusFile], names: Iterable[str]) -> list[CorpusFile]:
    gone = {composed(name) for name in names}
    return [file for file in files if composed(file.name) not in gone]


def _in_order(files: Iterable[CorpusFile]) -> list[CorpusFile]:
    return sorted(files, key=lambda file: file.name)


def _now() -> str:
    return datetime.now(UTC).isoformat()


class OldUploads(Model):
    """Files on the store that no corpus needs, and their bytes."""

    files: int = 0
    bytes: int = 0


async def prune_uploads(store: ArtifactStore, before: datetime, *, dry_run: bool) -> OldUploads:
    """Remove the files that no corpus has needed since a time, and return them; with `dry_run` only return them."""
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
    """Return the unneeded files of a corpus, with their bytes, in the order of removal: the last edition last."""
    sizes = await store.sizes(folder)
    editions = await CorpusStore(store).history(folder)
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
    """Return the folders of the corpora that unfinished runs read; some of these runs may have no folder yet."""
    found = await runs(store, partial=True)
    ends = await asyncio.gather(*(store.exists(f"{run.folder}/{RESULT}") for run in found))
    finished = {run.run_key for run, ended in zip(found, ends, strict=True) if ended}
    names = [name for run, ended in zip(found, ends, strict=True) if not ended for name in run.corpora]
    for key in await store.list(RESULTS):
        if key not in finished and (lease := await read_lease(store, key)):
            settings = lease.parameters.get("settings")
            names += [str(name) for name in (settings or {}).get("corpora") or []] if isinstance(settings, dict) else []
    return {folder_of(name) for name in names}

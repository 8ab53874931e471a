"""Corpora as every protocol deals with them: who may read and change them."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from dataclasses import asdict
from itertools import takewhile
from pathlib import PurePath

from fathom.client.shapes import Corpus, CorpusLimits, CorpusList, CorpusSummary
from fathom.config.settings import ResearchSettings
from fathom.errors import InvalidInput
from fathom.service.caller import AccessRole, Caller, check_owner
from fathom.storage.corpora import CorpusStore
from fathom.storage.editions import (
    Edition,
    Upload,
    check_name,
    name_for_question,
    name_taken,
    no_corpus,
    own_name,
)
from fathom.tools.documents.corpus import CorpusReading
from fathom.tools.documents.readers import ENDINGS
from fathom.tools.documents.uploads import examine, examined, sorted_out

PATIENCE_SECONDS = 20.0
_STEM_CHARS = 40
_FEWEST_SHARED = 4  # characters that the names of several files begin with, to be named after them
_NOT_IN_NAMES = re.compile(r"[^\w.-]+|^[\W_]+")
_PARTS = re.compile(r"[^\W_]+|[\W_]+")

Names = list[str]  # which means something else inside the class


class CorpusService:
    """The corpora of one store. One that a caller may not read does not exist for them: `NotThere`."""

    def __init__(self, corpora: CorpusStore) -> None:
        self.corpora = corpora
        self._one = asyncio.Semaphore()  # readers are other processes, and each reading has several
        self._reading: dict[str, asyncio.Task[CorpusReading]] = {}

    async def list(self, caller: Caller) -> CorpusList:
        """Return the corpora that the caller may read."""
        caller.check(AccessRole.reader)
        found = [edition for edition in await self.corpora.all() if edition.ownership.readable_by(caller)]
        readings = await asyncio.gather(*(examined(self.corpora.store, edition) for edition in found))
        limits, used = self.corpora.limits, await self.corpora.used()
        return CorpusList(
            corpora=[_summary(edition, reading) for edition, reading in zip(found, readings, strict=True)],
            used=used,
            limits=CorpusLimits(**asdict(limits), endings=sorted(ENDINGS)),
        )

    async def read(self, caller: Caller, name: str) -> Corpus:
        """Return a corpus with its files and what of them cannot be read.

        That is found out at the first call. If it takes long, `documents` is null until it is done.
        """
        edition = await self._readable(caller, name)
        key = f"{edition.name}/{edition.digest}"
        if key not in self._reading:
            self._reading[key] = task = asyncio.create_task(self._examine(edition))
            task.add_done_callback(lambda done: self._read(key, done))
        task = self._reading[key]
        done, _ = await asyncio.wait([task], timeout=PATIENCE_SECONDS)
        return _corpus(edition, task.result() if done else None)

    async def create(self, caller: Caller, name: str, uploads: Sequence[Upload], *, shared: bool = False) -> Corpus:
        """Make a corpus of files. A file of a kind that is not read is left out and listed as unread.

        Nobody hears that the name is taken by a corpus that they may not read: all but administrators have names of
        their own.

        Raises:
            NotAllowed: the caller may not.
            InvalidInput: a name cannot be used, or all files are of a kind that is not read.
            Conflict: the name is taken.
            TooLarge: a limit is exceeded.
        """
        caller.check(AccessRole.asker)
        check_name(name)
        for one in (own_name(name, caller.name), name):
            if (there := await self.corpora.find(one)) and there.owner == caller.name:
                raise name_taken(name, there)
        good, left_out = await asyncio.to_thread(sorted_out, uploads)
        kept = name if caller.is_admin else own_name(name, caller.name)
        return _corpus(await self.corpora.create(kept, good, left_out, owner=caller.name, shared=shared), None)

    async def create_for_run(self, caller: Caller, uploads: Sequence[Upload], *, temporary: bool) -> str:
        """Make a corpus of the files that came with a question, named after them, and return its name.

        Raises:
            NotAllowed: the caller may not.
            InvalidInput: the name of a file cannot be used, or all files are of a kind that is not read.
            TooLarge: a limit is exceeded.
        """
        caller.check(AccessRole.asker)
        good, left_out = await asyncio.to_thread(sorted_out, uploads)
        name = name_for_question(_named_after([file.name for file in good]))
        made = await self.corpora.create(name, good, left_out, owner=caller.name, temporary=temporary)
        return made.name

    async def named(self, caller: Caller, names: Sequence[str]) -> tuple[Sequence[CorpusSummary], Sequence[str]]:
        """Return the corpora of some names that the caller may read, and the names of those gone or of others."""
        found = await self._readable_of(caller, names)
        there = [_summary(edition, await examined(self.corpora.store, edition)) for edition in found.values()]
        return there, [name for name in names if name not in found]

    async def add(self, caller: Caller, name: str, uploads: Sequence[Upload]) -> Corpus:
        """Add files to a corpus as `create` does; one replaces the file of the same name.

        Raises:
            NotAllowed: it is somebody else's.
            InvalidInput: a name cannot be used, or all files are of a kind that is not read.
            TooLarge: a limit is exceeded.
        """
        name = await self.check_owner(caller, name)
        good, left_out = await asyncio.to_thread(sorted_out, uploads)
        return _corpus(await self.corpora.add(name, good, left_out, by=caller.name), None)

    async def remove_file(self, caller: Caller, name: str, file: str) -> Corpus:
        """Remove a file of a corpus.

        Raises:
            NotThere: it has no such file.
            NotAllowed: it is somebody else's.
        """
        name = await self.check_owner(caller, name)
        return _corpus(await self.corpora.drop(name, file, by=caller.name), None)

    async def remove(self, caller: Caller, name: str) -> None:
        """Remove a corpus. Runs that have begun to read it go on.

        Raises:
            NotAllowed: it is somebody else's.
        """
        name = await self.check_owner(caller, name)
        await self.corpora.remove(name, by=caller.name)

    async def share(self, caller: Caller, name: str, *, shared: bool) -> Corpus:
        """Let everybody who may read read a corpus, or no longer.

        Raises:
            NotAllowed: it is somebody else's.
        """
        name = await self.check_owner(caller, name)
        return _corpus(await self.corpora.share(name, shared=shared, by=caller.name), None)

    async def readable(self, caller: Caller, names: Sequence[str]) -> Names:
        """Return the names, in the store, of the corpora that exist and that the caller may read."""
        return [edition.name for edition in (await self._readable_of(caller, names)).values()]

    async def _readable_of(self, caller: Caller, names: Sequence[str]) -> dict[str, Edition]:
        found = {name: await self.corpora.meant(name, caller) for name in names}
        return {name: one for name, one in found.items() if one}

    async def check_readable(self, caller: Caller, names: Sequence[str]) -> Names:
        """Check that the caller may read some corpora, and return their names in the store.

        Raises:
            InvalidInput: there is no such corpus, or the caller may not read it.
        """
        found = await self._readable_of(caller, names)
        if unknown := [name for name in names if name not in found]:
            raise no_corpus(unknown[0], InvalidInput)
        return [edition.name for edition in found.values()]

    async def named_in(self, caller: Caller, settings: ResearchSettings) -> ResearchSettings:
        """Return settings with the names that their corpora have in the store, which mean the same to everybody.

        Raises:
            InvalidInput: there is no such corpus, or the caller may not read it.
        """
        names = await self.check_readable(caller, settings.corpora or [])
        return settings.model_copy(update={"corpora": names}) if names else settings

    async def check_owner(self, caller: Caller, name: str) -> str:
        """Check that the caller may change a corpus, and return its name in the store.

        Raises:
            NotAllowed: it is somebody else's.
        """
        edition = await self._readable(caller, name)
        check_owner(edition.ownership, caller, "corpus")
        return edition.name

    def _read(self, key: str, done: asyncio.Task[CorpusReading]) -> None:
        self._reading.pop(key, None)
        if not done.cancelled():
            done.exception()  # nobody may be waiting for it any more

    async def _examine(self, edition: Edition) -> CorpusReading:
        async with self._one:
            return await examine(self.corpora, edition)

    async def _readable(self, caller: Caller, name: str) -> Edition:
        caller.check(AccessRole.reader)
        if edition := await self.corpora.meant(name, caller):
            return edition
        raise no_corpus(name)


def _named_after(files: Sequence[str]) -> str:
    """Return what people recognise files by: the name of one, or what several begin with and how many there are."""
    first, *others = (_NOT_IN_NAMES.sub(" ", PurePath(file).stem).strip()[:_STEM_CHARS].strip() for file in files)
    if not others:
        return first or "files"
    alike = takewhile(lambda parts: len(set(parts)) == 1, zip(*map(_PARTS.findall, (first, *others)), strict=False))
    shared = "".join(part for part, *_ in alike).rstrip(" ._-")
    if len(shared) >= _FEWEST_SHARED:
        return f"{shared} {len(files)} files"
    return f"{first} and {len(others)} more" if first else f"{len(files)} files"


def _summary(edition: Edition, reading: CorpusReading | None) -> CorpusSummary:
    return CorpusSummary(
        **edition.model_dump(include={"name", "owner", "shared", "temporary", "created", "changed"}),
        files=len(edition.files),
        bytes=edition.bytes,
        unread=[*edition.left_out, *(reading.unread if reading else [])],
        documents=reading.documents if reading else None,
        words=reading.words if reading else None,
    )


def _corpus(edition: Edition, reading: CorpusReading | None) -> Corpus:
    return Corpus(
        **_summary(edition, reading).model_dump(),
        contents=edition.files,
    )

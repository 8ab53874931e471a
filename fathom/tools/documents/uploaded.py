"""Uploaded corpora as a run reads them: the editions that were fixed when it began, copied to this machine's cache.

The copies are named by their bytes, so that no name that somebody gave a file becomes a path, and an edition that
shares files with another shares the copies. Sources are cited as `corpus:{corpus}/{file}`, wherever they are read.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path, PurePath

from pydantic import JsonValue

from fathom.errors import StoreError
from fathom.models import Model, UnreadFile
from fathom.storage.atomic import AtomicFiles
from fathom.storage.corpora import Corpora
from fathom.storage.editions import CorpusFile, UsedCorpus
from fathom.tools.documents.corpus import UPLOADED
from fathom.tools.documents.files import File, portable, unused
from fathom.tools.documents.readers import ENDINGS

FOLDER = "corpora"
_AT_ONCE = 4  # files that are copied, and so in memory


class Reading(Model):
    """What can be read of an edition: how many documents and words; and what cannot, by the names of the files."""

    reader: str = ""  # the version of what read it
    documents: int = 0
    words: int = 0
    unread: list[UnreadFile] = []


class UploadedCorpora:
    """The uploaded corpora of a run."""

    def __init__(self, corpora: Corpora, used: Sequence[UsedCorpus]) -> None:
        self._corpora = corpora
        self._used = tuple(used)
        self._copying = asyncio.Lock()
        self._copies: dict[str, list[File]] = {}

    @property
    def names(self) -> list[str]:
        """Their names."""
        return [used.name for used in self._used]

    @property
    def digests(self) -> dict[str, JsonValue]:
        """The digest of each, on which what is found in it depends."""
        return {used.name: used.digest for used in self._used}

    async def files(self, cache: Path) -> list[File]:
        """Return the local copies of the files, made now where they are missing.

        Raises:
            StoreError: an edition or a file of one is gone or damaged, or the copies cannot be written.
        """
        async with self._copying:
            for used in self._used:
                if used.name not in self._copies:
                    self._copies[used.name] = await self._copy(used, cache / FOLDER)
            return [file for used in self._used for file in self._copies[used.name]]

    async def _copy(self, used: UsedCorpus, folder: Path) -> list[File]:
        edition = await self._corpora.edition(used)
        limit = asyncio.Semaphore(_AT_ONCE)

        async def copied(file: CorpusFile, url: str) -> File:
            async with limit:
                return await self._copied(used.name, file, url, folder)

        urls = urls_of(used.name, [file.name for file in edition.files])
        return list(await asyncio.gather(*map(copied, edition.files, urls)))

    async def _copied(self, name: str, file: CorpusFile, url: str, folder: Path) -> File:
        title = file.name.replace("\\", "/").rstrip("/").rpartition("/")[2]
        ending = PurePath(title).suffix.lower()
        own = f"{file.sha256}{ending if ending in ENDINGS else ''}"
        path = folder / own
        # A file in its place is whole. Another size, or a time that is no time of the copy, would be another file.
        if not (path.is_file() and path.stat().st_size == file.bytes):
            data = await self._corpora.load(name, file)
            try:
                await asyncio.to_thread(AtomicFiles(str(folder)).write, own, data)
            except OSError as error:
                raise StoreError(
                    f"The file {file.name!r} of the corpus {name!r} cannot be copied to {folder}: {error.strerror}.",
                    next_step="free some space, or set FATHOM_CACHE to a writable folder",
                ) from error
        with suppress(OSError):
            os.utime(path)  # `fathom prune` removes what was not used for a while
        return File(url, path, file.bytes, int(file.sha256[:15], 16), title, file.sha256)


def urls_of(corpus: str, names: Sequence[str]) -> list[str]:
    """Return the addresses under which the files of a corpus are cited, each another one."""
    taken: set[str] = set()
    return [UPLOADED + unused(f"{corpus}/{portable(name)}", taken) for name in names]

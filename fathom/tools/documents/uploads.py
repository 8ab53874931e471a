"""Files uploaded to a corpus: which may be readable, and what an edition of them holds for a run."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from fathom.config.environment import Environment
from fathom.errors import InvalidInput
from fathom.models import UnreadFile
from fathom.storage.corpora import CorpusStore
from fathom.storage.editions import Edition, Upload, folder_of
from fathom.storage.store import ArtifactStore, json_bytes
from fathom.tools.documents.corpus import UPLOADED, CorpusReading, UploadedCorpora, open_corpus, reader_version, urls_of
from fathom.tools.documents.files import KINDS, File, find_files
from fathom.tools.documents.pool import read_files
from fathom.tools.documents.readers import HEAD, UnreadableFile, refusal


@dataclass(frozen=True)
class LocalFile:
    """A file of this machine that is to be uploaded."""

    name: str
    path: Path
    size: int

    def read(self, most: int = -1) -> bytes:
        """Return its first bytes, by default all."""
        with self.path.open("rb") as stream:
            return stream.read(most)


def local_files(paths: Sequence[str]) -> list[LocalFile]:
    """Return the files below some paths; each is named by its folder and its place in it.

    Raises:
        InvalidInput: a path does not exist, or there is no file.
    """
    files = [LocalFile(f.url.removeprefix("docs:"), f.path, f.size) for f in find_files(paths)]
    if not files:
        raise InvalidInput(
            f"There is nothing to read in {', '.join(paths)}.", next_step=f"give files of these kinds: {KINDS}"
        )
    return files


def sorted_out(uploads: Sequence[Upload]) -> tuple[list[Upload], list[UnreadFile]]:
    """Return the files of an upload that may be readable, and the others with the reasons. The call blocks.

    Raises:
        InvalidInput: there is no file, or none that may be readable.
    """
    if not uploads:
        raise InvalidInput("No file was given.", next_step=f"give files of these kinds: {KINDS}")
    reasons = {upload.name: _refusal(upload) for upload in uploads}
    left_out = [UnreadFile(path=name, reason=reason) for name, reason in reasons.items() if reason]
    if len(left_out) == len(reasons):
        why = "; ".join(f"{file.path[:80]!r}: {file.reason}" for file in left_out[:3])
        raise InvalidInput(f"None of the files can be read ({why}).", next_step=f"give files of these kinds: {KINDS}")
    return [upload for upload in uploads if not reasons[upload.name]], left_out


def _refusal(upload: Upload) -> str:
    """Return why a file is not uploaded; empty if it is."""
    try:
        return refusal(upload.name, upload.read(HEAD))
    except OSError as error:  # it may not be opened
        return error.strerror or str(error)


async def examined(store: ArtifactStore, edition: Edition) -> CorpusReading | None:
    """Return the known readable content of an edition; None if it has not been examined yet."""
    try:
        reading = CorpusReading.model_validate_json(await store.read(_place(edition)))
    except (FileNotFoundError, ValidationError):
        return None
    return reading if reading.reader == reader_version() else None


async def examine(corpora: CorpusStore, edition: Edition) -> CorpusReading:
    """Read an edition like a run, unless that was done before, and return its readable content.

    Raises:
        StoreError: a file is missing or damaged.
    """
    if not edition.files:
        return CorpusReading(reader=reader_version())
    if known := await examined(corpora.store, edition):
        return known
    cache = Environment.read().cache
    files = await UploadedCorpora(corpora, [edition.used()]).files(cache)
    reading = await asyncio.to_thread(_read, edition, files, cache)
    await corpora.store.write(_place(edition), json_bytes(reading))
    return reading


def _read(edition: Edition, files: Sequence[File], cache: Path) -> CorpusReading:
    names = [file.name for file in edition.files]
    named = dict(zip(urls_of(edition.name, names), names, strict=True))
    documents = words = 0
    try:
        index = open_corpus([], cache, files, [f"{UPLOADED}{edition.name}"])
        documents, words, reasons = index.size, index.words, index.skipped
    except InvalidInput:  # none can be read
        reasons = {file.url: str(read) for file, read in read_files(files) if isinstance(read, UnreadableFile)}
    unread = [UnreadFile(path=named[url], reason=reason) for url, reason in reasons.items()]
    return CorpusReading(reader=reader_version(), documents=documents, words=words, unread=unread)


def _place(edition: Edition) -> str:
    return f"{folder_of(edition.name)}/readings/{edition.digest}.json"

"""The documents a run may search: the user's own, uploaded ones, or else the Python reference.

The index of a folder is kept in the cache. Opening the folder updates it: only files whose bytes changed are read
again. The update is made on a copy that then replaces the index: runs that search the index are not disturbed, and an
interrupted update leaves nothing half done.

A run reads uploaded corpora in the editions that were fixed when it began, copied to this machine's cache. The copies
are named by their bytes, so that no user's file name becomes a path, and editions that share files share the copies.
Sources are cited as `corpus:{corpus}/{file}`, wherever they are read.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import hashlib
import os
import re
import shutil
import sqlite3
import tempfile
import threading
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path, PurePath

from pydantic import JsonValue

from fathom.errors import InvalidInput, StoreError
from fathom.models import CorpusFile, Model, UnreadFile
from fathom.storage.atomic import AtomicFiles, side_by_side
from fathom.storage.corpora import CorpusStore
from fathom.storage.editions import UsedCorpus
from fathom.telemetry.progress import Event, publish
from fathom.text.plain import clean_text
from fathom.tools.documents.files import KINDS, File, digest, find_files, portable, unused
from fathom.tools.documents.index import Index, StoredFile
from fathom.tools.documents.normal import DocumentSection, ReadDocument, underlined_sections
from fathom.tools.documents.pool import read_files
from fathom.tools.documents.readers import ENDINGS, UnreadableFile, is_quick, refused
from fathom.tools.documents.recognition import missing_commands
from fathom.tools.documents.worker import Unfinished

KEPT_INDEXES = 8
UPLOADED = "corpus:"
_FORMAT = "20"  # increases when readers, layout or index treat the same files differently
_opening = threading.Lock()


def reader_version() -> str:
    """Return the version of the readers; with the commands that recognise text, they read more."""
    return _FORMAT + ("" if missing_commands() else "+recognition")


def check_documents(paths: Sequence[str]) -> None:
    """Check that there is something to read; no paths mean the built-in corpus.

    Raises:
        InvalidInput: a path does not exist, or no file below the paths can be read.
    """
    if not paths:
        return
    files = list(find_files(paths))  # all paths are looked at, though one file is enough
    reasons = {file.url: refused(file.path) for file in files}
    for file in sorted(files, key=lambda file: not is_quick(file.path)):
        for _, read in read_files([file] if not reasons[file.url] else []):
            if not isinstance(read, UnreadableFile):
                return
            reasons[file.url] = str(read)
    raise _nothing_to_read(paths, reasons)


def open_corpus(paths: Sequence[str], cache: Path, uploaded: Sequence[File] = (), uploads: Sequence[str] = ()) -> Index:
    """Open the corpus; it is read and indexed only once in a process, and once in a cache folder.

    `uploaded` are the local copies of the files in uploaded corpora, whose names, with `corpus:`, are `uploads`.

    Raises:
        InvalidInput: as in `check_documents`.
    """
    with _opening:
        return _opened((*find_files(paths), *uploaded), (*paths, *uploads), cache)


@functools.lru_cache(maxsize=4)
def _opened(files: tuple[File, ...], paths: tuple[str, ...], cache: Path) -> Index:
    """Open an index; a changed folder has other sizes or times and so misses the cache of this function."""
    if not paths:
        return Index.build(python_reference())
    index = _cached(files, paths, cache / "documents")
    if skipped := index.skipped:
        named = ", ".join(f"{name} ({reason})" for name, reason in list(skipped.items())[:5])
        more = f" and {len(skipped) - 5} more" if len(skipped) > 5 else ""
        publish(Event("warning", f"Not read, or only in part: {named}{more}"))
    return index


def _cached(files: tuple[File, ...], paths: tuple[str, ...], folder: Path) -> Index:
    roots = "\0".join(
        [reader_version(), *(p if p.startswith(UPLOADED) else str(Path(p).expanduser().resolve()) for p in paths)]
    )
    place = folder / f"{hashlib.sha256(os.fsencode(roots)).hexdigest()[:32]}.sqlite"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if _is_current(place, files):
            with contextlib.suppress(PermissionError):  # a cache that others fill
                os.utime(place)
        else:
            _update(place, files, paths)
            _prune(folder)
        return Index(str(place))
    except (OSError, sqlite3.DatabaseError):  # nowhere to store it: every process builds it again
        index = Index.create(":memory:")
        _synchronize(index, files, paths)
        return index


def _is_current(place: Path, files: Sequence[File]) -> bool:
    if not place.exists():
        return False
    try:
        with contextlib.closing(Index(str(place))) as index:
            stored = [file[:3] for file in index.files()]
    except sqlite3.DatabaseError:  # damaged, by a full disk for instance
        place.unlink()
        return False
    return stored == [(file.url, file.size, file.modified) for file in files]


def _update(place: Path, files: Sequence[File], paths: Sequence[str]) -> None:
    """Change a copy and rename it, so that no process opens an incomplete index."""
    handle, name = tempfile.mkstemp(dir=place.parent, prefix="building-")
    os.close(handle)
    try:
        if place.exists():
            shutil.copyfile(place, name)
        with contextlib.closing(Index(name) if place.exists() else Index.create(name)) as index:
            _synchronize(index, files, paths)
        Path(name).replace(place)
    finally:
        Path(name).unlink(missing_ok=True)


def _prune(folder: Path) -> None:
    """Remove all but the indexes used last."""
    used = sorted(folder.glob("*.sqlite"), key=lambda place: place.stat().st_mtime, reverse=True)
    for place in used[KEPT_INDEXES:]:
        place.unlink(missing_ok=True)


def _synchronize(index: Index, files: Sequence[File], paths: Sequence[str]) -> None:
    """Make an index hold these files: unchanged ones stay, others are read, the rest is removed."""
    stored = {file.url: file for file in index.files()}
    reasons = {file.url: refused(file.path, file.name) for file in files}
    digests = {file.url: "" if reasons[file.url] else _digest(file, stored.get(file.url)) for file in files}
    first_with = {of_bytes or url: url for url, of_bytes in reversed(digests.items())}
    readable = [file for file in files if not reasons[file.url]]
    unique = [file for file in readable if first_with[digests[file.url] or file.url] == file.url]

    index.forget_unsettled()
    known = index.keep({(file.url, digests[file.url]) for file in unique})
    for url, reason in reasons.items():
        if reason:
            index.skip(url, "", reason)
    for file, read in read_files([file for file in unique if file.url not in known]):
        if isinstance(read, UnreadableFile):
            index.skip(file.url, "" if isinstance(read, Unfinished) else digests[file.url], str(read))
        else:
            index.add(file.url, digests[file.url], read)
            if read.unread:
                index.skip(file.url, digests[file.url], read.unread)
    # The same file twice would look like two sources that agree. It is missing only if the first one is.
    skipped = index.skipped
    for url, of_bytes in digests.items():
        if (first := first_with[of_bytes or url]) != url and first in skipped:
            index.skip(url, "", skipped[first])
    if index.is_empty:
        raise _nothing_to_read(paths, index.skipped)
    index.finish(
        [StoredFile(f.url, f.size, f.modified, digests[f.url]) for f in files], optimize=len(known) * 2 < len(unique)
    )


def _digest(file: File, stored: StoredFile | None) -> str:
    """Return the digest of a file's bytes, the stored one if size and time are unchanged."""
    unchanged = stored and (stored.size, stored.modified) == (file.size, file.modified)
    return stored.digest if stored and unchanged else digest(file)


def _nothing_to_read(paths: Sequence[str], reasons: dict[str, str]) -> InvalidInput:
    why = "; ".join(f"{name}: {reason}" for name, reason in list(reasons.items())[:3]) or "no file"
    return InvalidInput(
        f"Nothing to read in {', '.join(paths)} ({why}).", next_step=f"give files of these kinds: {KINDS}"
    )


FOLDER = "corpora"
_AT_ONCE = 4  # files that are copied, and so in memory


class CorpusReading(Model):
    """The readable documents and words of an edition, and the unreadable files by name."""

    reader: str = ""  # version of the reader
    documents: int = 0
    words: int = 0
    unread: list[UnreadFile] = []


class UploadedCorpora:
    """The uploaded corpora of a run."""

    def __init__(self, corpora: CorpusStore, used: Sequence[UsedCorpus]) -> None:
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
        """The digest of each, on which search results depend."""
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
        named = zip(edition.files, urls_of(used.name, [file.name for file in edition.files]), strict=True)
        return await side_by_side(named, lambda one: self._copied(used.name, *one, folder), _AT_ONCE)

    async def _copied(self, name: str, file: CorpusFile, url: str, folder: Path) -> File:
        title = file.name.replace("\\", "/").rstrip("/").rpartition("/")[2]
        ending = PurePath(title).suffix.lower()
        own = f"{file.sha256}{ending if ending in ENDINGS else ''}"
        path = folder / own
        # A file in its place is complete. Another size, or another time than the copy's, would be another file.
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
    """Return the addresses under which the files of a corpus are cited, all distinct."""
    taken: set[str] = set()
    return [UPLOADED + unused(f"{corpus}/{portable(name)}", taken) for name in names]


REPEATED = 0.8  # share of a section's words that other topics already hold


def python_reference() -> dict[str, ReadDocument]:
    """Return the topics by URL, `python:TOPIC`.

    Topics are cut from one manual and overlap: `else` is `if`, `specialnames` repeats `attribute-access`. The shortest
    topic keeps a section and longer ones lose it, so that one statement does not look like two sources.
    """
    from pydoc_data.topics import topics

    documents: dict[str, ReadDocument] = {}
    seen: set[str] = set()
    for name in sorted(topics, key=lambda name: (len(topics[name]), len(name), name)):
        sections = underlined_sections(clean_text(topics[name]))
        kept = [section for section in sections if section.text and not _is_repeated(section, seen)]
        seen.update(paragraph for section in sections for paragraph in _paragraphs(section))
        if kept:
            documents[f"python:{name}"] = ReadDocument(sections[0].heading or name, kept)
    return dict(sorted(documents.items()))


def _is_repeated(section: DocumentSection, seen: set[str]) -> bool:
    paragraphs = _paragraphs(section)
    known = sum(len(p) for p in paragraphs if p in seen)
    return known >= REPEATED * sum(len(p) for p in paragraphs)


def _paragraphs(section: DocumentSection) -> list[str]:
    return [" ".join(paragraph.split()) for paragraph in re.split(r"\n\s*\n", section.text)]

"""The documents a run may search: the user's own, or else the Python reference.

The index of a folder is kept in the cache. Opening the folder updates it: only files whose bytes changed are read
again. The update is made on a copy that then replaces the index: runs that search the index are not disturbed, and an
interrupted update leaves nothing half done.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import shutil
import sqlite3
import tempfile
import threading
from collections.abc import Sequence
from pathlib import Path

from fathom.errors import InvalidInput
from fathom.telemetry.progress import Event, publish
from fathom.tools.documents.embedding import check_installed
from fathom.tools.documents.files import KINDS, File, digest, find_files
from fathom.tools.documents.index import Index, StoredFile
from fathom.tools.documents.pool import read_files
from fathom.tools.documents.python_reference import python_reference
from fathom.tools.documents.readers import Unreadable
from fathom.tools.documents.worker import Unfinished

KEPT_INDEXES = 8
UPLOADED = "corpus:"
FORMAT = "9"  # changes when readers, layout or index treat the same files differently
_opening = threading.Lock()


def check_documents(paths: Sequence[str], embed_model: str | None = None) -> None:
    """Check that there is something to read, and a library for the model; no paths mean the built-in corpus.

    Raises:
        InvalidInput: a path does not exist or is a file of another kind, no file below the paths can be read, or the
            `embed` extra is not installed.
    """
    if embed_model:
        check_installed()
    if not paths:
        return
    reasons: dict[str, str] = {}
    for file in list(find_files(paths)):  # all paths are looked at, though one file is enough
        for _, read in read_files([file]):
            if not isinstance(read, Unreadable):
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
    """Open an index; a changed folder has other sizes or times and so is not found in the cache of this function."""
    if not paths:
        return Index.build(python_reference())
    index = _cached(files, paths, cache / "documents")
    if skipped := index.skipped:
        named = ", ".join(f"{name} ({reason})" for name, reason in list(skipped.items())[:5])
        more = f" and {len(skipped) - 5} more" if len(skipped) > 5 else ""
        publish(Event("warning", f"Not read, or only in part: {named}{more}"))
    return index


def _cached(files: tuple[File, ...], paths: tuple[str, ...], folder: Path) -> Index:
    roots = "\0".join([FORMAT, *(p if p.startswith(UPLOADED) else str(Path(p).expanduser().resolve()) for p in paths)])
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
    except (OSError, sqlite3.DatabaseError):  # no place to keep it: every process builds it again
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
    digests = {file.url: _digest(file, stored.get(file.url)) for file in files}
    first_with = {of_bytes or url: url for url, of_bytes in reversed(digests.items())}
    unique = [file for file in files if first_with[digests[file.url] or file.url] == file.url]

    index.forget_unsettled()
    known = index.keep({(file.url, digests[file.url]) for file in unique})
    for file, read in read_files([file for file in unique if file.url not in known]):
        if isinstance(read, Unreadable):
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
    why = "; ".join(f"{name}: {reason}" for name, reason in list(reasons.items())[:3]) or f"no {KINDS} file"
    return InvalidInput(f"Nothing to read in {', '.join(paths)} ({why}).", next_step="give other files or folders")

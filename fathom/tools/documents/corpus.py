"""The documents a run may search: those the user points at, or else the Python reference."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import sqlite3
import tempfile
import threading
import unicodedata
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from fathom.errors import InvalidInput
from fathom.progress import Event, publish
from fathom.tools.clean import clean_line
from fathom.tools.documents.index import Index
from fathom.tools.documents.python_reference import python_reference
from fathom.tools.documents.readers import ENDINGS, Unreadable, read_document
from fathom.tools.documents.sections import ReadDocument

__all__ = ["check_documents", "open_corpus"]

MAX_BYTES = 100_000_000
KEPT_INDEXES = 8
FORMAT = "1"  # changes when readers or index would make something else of the same files
_FORMATS = "txt, md, rst, html, pdf, docx"
_opening = threading.Lock()


class _File(NamedTuple):
    """A file of the corpus. `url` is the same on every machine that has the same folder."""

    url: str
    path: Path
    size: int
    modified: int


def check_documents(paths: Sequence[str]) -> None:
    """See to it that there is something to read; no paths mean the built-in corpus.

    Raises:
        InvalidInput: a path does not exist, or no file below the paths can be read.
    """
    if not paths:
        return
    reasons: dict[str, str] = {}
    for file in list(_files(paths)):  # all paths are looked at, though one file is enough
        try:
            _read(file)
            return
        except Unreadable as error:
            reasons[file.url] = str(error)
    raise _nothing_to_read(paths, reasons)


def open_corpus(paths: Sequence[str], cache: Path) -> Index:
    """Open the corpus, which is read and indexed only if it was not before: once a process, and once a cache folder.

    Raises:
        InvalidInput: as in `check_documents`.
    """
    with _opening:
        return _opened(tuple(_files(paths)), tuple(paths), cache)


@functools.lru_cache(maxsize=4)
def _opened(files: tuple[_File, ...], paths: tuple[str, ...], cache: Path) -> Index:
    """Open an index; sizes and times in the arguments see to it that a changed folder is another one."""
    if not paths:
        return Index.build(":memory:", python_reference(), {})
    index = _cached(files, paths, cache / "documents")
    if skipped := index.skipped:
        named = ", ".join(f"{name} ({reason})" for name, reason in list(skipped.items())[:5])
        more = f" and {len(skipped) - 5} more" if len(skipped) > 5 else ""
        publish(Event("warning", f"Documents left out: {named}{more}"))
    return index


def _cached(files: tuple[_File, ...], paths: tuple[str, ...], folder: Path) -> Index:
    """Open the index of these files' contents from the cache folder, made first if it is not there."""
    key = hashlib.sha256(FORMAT.encode())
    for file in files:
        key.update(f"\0{file.url}\0{file.size}\0".encode())
        key.update(_digest(file))
    place = folder / f"{key.hexdigest()[:32]}.sqlite"
    try:
        if place.exists():
            with contextlib.suppress(PermissionError):  # a cache that others fill
                os.utime(place)
        else:
            folder.mkdir(parents=True, exist_ok=True)
            _build_in(place, files, paths)
            _prune(folder)
    except (OSError, sqlite3.OperationalError):  # no place to keep it: it is made anew in every process
        return _build(":memory:", files, paths)
    return Index(str(place))


def _build_in(place: Path, files: tuple[_File, ...], paths: tuple[str, ...]) -> None:
    """Build under another name and rename, so that no process ever opens half an index."""
    handle, name = tempfile.mkstemp(dir=place.parent, prefix="building-")
    os.close(handle)
    try:
        _build(name, files, paths).close()
        Path(name).replace(place)
    finally:
        Path(name).unlink(missing_ok=True)


def _prune(folder: Path) -> None:
    """Remove all but the indexes used last: a folder that changes daily would leave one a day."""
    used = sorted(folder.glob("*.sqlite"), key=lambda place: place.stat().st_mtime, reverse=True)
    for place in used[KEPT_INDEXES:]:
        place.unlink(missing_ok=True)


def _build(place: str, files: tuple[_File, ...], paths: tuple[str, ...]) -> Index:
    documents: dict[str, ReadDocument] = {}
    skipped: dict[str, str] = {}
    first_with: dict[bytes, str] = {}
    for file in files:
        try:
            document = _read(file)
        except Unreadable as error:
            skipped[file.url] = str(error)
            continue
        # The same file twice would look like two sources that agree.
        first = first_with.setdefault(_digest(file), file.url)
        if first == file.url:
            documents[file.url] = ReadDocument(document.title or file.path.name, document.sections)
        else:
            skipped[file.url] = f"the same as {first}"
    if not documents:
        raise _nothing_to_read(paths, skipped)
    return Index.build(place, documents, skipped)


def _read(file: _File) -> ReadDocument:
    if file.size > MAX_BYTES:
        raise Unreadable(f"it is larger than {MAX_BYTES // 1_000_000} MB")
    try:
        return read_document(file.path.name, file.path.read_bytes())
    except OSError as error:
        raise Unreadable(error.strerror or type(error).__name__) from error


def _digest(file: _File) -> bytes:
    try:
        with file.path.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").digest()
    except OSError:
        return b""


def _nothing_to_read(paths: Sequence[str], reasons: dict[str, str]) -> InvalidInput:
    why = "; ".join(f"{name}: {reason}" for name, reason in list(reasons.items())[:3]) or f"no {_FORMATS} file"
    return InvalidInput(f"Nothing to read in {', '.join(paths)} ({why}).", next_step="give other files or folders")


def _files(paths: Sequence[str]) -> Iterator[_File]:
    """Yield the files below the paths in a fixed order, each once.

    Hidden ones and those of unknown endings are passed over, unless they are given themselves.
    """
    seen: set[Path] = set()
    names: set[str] = set()
    for path in paths:
        root = Path(path).expanduser()
        if not root.exists():
            raise InvalidInput(f"There is no file or folder {path!r}.", next_step="check --docs")
        name = _unused(_portable(root.resolve().name), names)
        for file in [root] if root.is_file() else _walk(root):
            if not file.is_file() or (resolved := file.resolve()) in seen:
                continue
            seen.add(resolved)
            status = file.stat()
            below = "" if file == root else "/" + _portable(file.relative_to(root).as_posix())
            yield _File(f"docs:{name}{below}", file, status.st_size, status.st_mtime_ns)


def _walk(root: Path) -> Iterator[Path]:
    for folder, folders, files in os.walk(root):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(files):
            if not name.startswith(".") and Path(name).suffix.lower() in ENDINGS:
                yield Path(folder, name)


def _portable(name: str) -> str:
    """Return a file name as text that can be encoded, accents composed as on most systems."""
    return clean_line(unicodedata.normalize("NFC", os.fsencode(name).decode("utf-8", "replace")))


def _unused(name: str, names: set[str]) -> str:
    """Tell folders of the same name apart by their order."""
    unused = next(n for n in [name, *(f"{name}~{i}" for i in range(2, 1000))] if n not in names)
    names.add(unused)
    return unused

"""The files of a corpus, and the names under which they are cited."""

from __future__ import annotations

import hashlib
import os
import unicodedata
from collections.abc import Iterator, Sequence
from pathlib import Path
from stat import S_ISDIR, S_ISREG
from typing import NamedTuple

from fathom.errors import InvalidInput
from fathom.storage.editions import CORPORA
from fathom.storage.lease import RESULTS
from fathom.storage.store import BATCHES, RUNS
from fathom.text.plain import clean_line

_STORED = (RUNS, BATCHES, CORPORA)
KINDS = "any text, html, pdf, docx, xlsx, pptx, ods, odt, odp, epub, csv, eml, mbox, ipynb, vtt, srt, yaml, json, toml"


class File(NamedTuple):
    """A file of the corpus. `url` is the same on every machine that has the same folder.

    The copy of an uploaded file has a `name` of its own, and the SHA-256 of its bytes is known.
    """

    url: str
    path: Path
    size: int
    modified: int
    name: str = ""
    sha256: str = ""


def find_files(paths: Sequence[str]) -> Iterator[File]:
    """Yield the files below the paths in a fixed order, each once.

    In folders, hidden files and folders are skipped, and what a store of Fathom has: its runs repeat the question and
    would answer it. Whether a file can be read is seen when it is read; so is a folder that may not be opened.

    Raises:
        InvalidInput: a path does not exist.
    """
    seen: set[Path] = set()
    names: set[str] = set()
    for path in paths:
        root = Path(path).expanduser()
        if (there := _look(root)) is None:
            raise InvalidInput(f"The file or folder {path!r} does not exist.", next_step="check the path")
        name = unused(portable(root.resolve().name), names)
        for file in _walk(root) if there.is_folder else [root]:
            found = _look(file)
            if found is None or (resolved := file.resolve()) in seen:
                continue
            seen.add(resolved)
            below = "" if file == root else "/" + portable(file.relative_to(root).as_posix())
            yield File(f"docs:{name}{below}", file.absolute(), found.size, found.modified)


def digest(file: File) -> str:
    """Return the SHA-256 of a file's bytes, empty if it cannot be opened."""
    if file.sha256:
        return file.sha256
    try:
        with file.path.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError:
        return ""


class _Look(NamedTuple):
    is_folder: bool = False
    size: int = 0
    modified: int = 0


def _look(path: Path) -> _Look | None:
    """Return what is at a path, as far as it may be looked at; None if that is neither a file nor a folder."""
    try:
        status = path.stat()
    except PermissionError:
        return _Look()
    except OSError:
        return None
    if not (S_ISREG(status.st_mode) or S_ISDIR(status.st_mode)):
        return None
    return _Look(S_ISDIR(status.st_mode), status.st_size, status.st_mtime_ns)


def _walk(root: Path) -> Iterator[Path]:
    """Yield the files below a folder, and the folders that may not be opened."""
    closed: list[OSError] = []
    for folder, folders, files in os.walk(root, onerror=closed.append):
        stored = _STORED if RESULTS in folders else ()
        folders[:] = sorted(name for name in folders if not name.startswith(".") and name not in stored)
        for name in sorted(files):
            if not name.startswith("."):
                yield Path(folder, name)
    yield from (Path(error.filename) for error in closed)


def portable(name: str) -> str:
    """Return a file name as text that can be encoded, accents composed as on most systems."""
    return clean_line(unicodedata.normalize("NFC", os.fsencode(name).decode("utf-8", "replace")))


def unused(name: str, names: set[str]) -> str:
    """Return a name that is not in a set of names, and add it to the set: the second `docs` is `docs~2`."""
    unused = next(n for n in [name, *(f"{name}~{i}" for i in range(2, 10_000))] if n not in names)
    names.add(unused)
    return unused

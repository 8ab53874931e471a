"""Answers from the web, cached on this machine's disk for a limited time and shared by all runs.

Only a convenience: a run depends on its own stored results. A cache that cannot be read or written is skipped, and
failures are never cached. An entry is not flushed to the disk; it begins with its own hash, so an entry that a power
cut has cut short counts as absent.
"""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from fathom.storage.atomic import AtomicFiles, Flush

_FOLDERS = ("searches", "pages", "documents", "corpora", "library")
_ENTRY = re.compile(
    r"[0-9a-f]{64}(?:\.[a-z]{2,8})?|[0-9a-f]{32}\.sqlite|\.[0-9a-f]{32}\.tmp"
)  # the last pattern: files of a process that was killed

ModelT = TypeVar("ModelT", bound=BaseModel)


class TimedCache:
    """Texts by key, for a number of seconds; without a folder none. `clean` removes what must not be stored."""

    def __init__(self, folder: Path | None, seconds: float, clean: Callable[[str], str] = str) -> None:
        self._folder = folder
        self._seconds = seconds
        self._clean = clean
        self._swept = False

    def get(self, key: str) -> str | None:
        """Return a text that is still valid, else None."""
        if self._folder is None:
            return None
        path = self._folder / _name(key)
        try:
            digest, _, data = path.read_bytes().partition(b"\n") if self._is_fresh(path) else (b"", b"", b"")
            return data.decode() if digest == _digest(data) else None
        except (OSError, UnicodeError):
            return None

    def load(self, key: str, kind: type[ModelT]) -> ModelT | None:
        """Return a model that was stored as JSON; None if it has another version's shape."""
        text = self.get(key)
        try:
            return kind.model_validate_json(text) if text is not None else None
        except ValidationError:
            return None

    def since(self, key: str) -> str:
        """Return the time at which a text was stored, ISO 8601 in UTC; empty if it is gone."""
        try:
            written = (self._folder / _name(key)).stat().st_mtime if self._folder else 0
        except OSError:
            written = 0
        return datetime.fromtimestamp(written, UTC).isoformat(timespec="seconds") if written else ""

    def put(self, key: str, text: str) -> None:
        """Store a text; the first call also removes expired entries."""
        if self._folder is None:
            return
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            data = self._clean(text).encode("utf-8", "replace")
            AtomicFiles(str(self._folder)).write(_name(key), b"%b\n%b" % (_digest(data), data), flush=Flush.nothing)
            if not self._swept:
                self._swept = True
                for old in self._folder.iterdir():
                    if _ENTRY.fullmatch(old.name) and not self._is_fresh(old):
                        old.unlink(missing_ok=True)
        except OSError:
            return

    def _is_fresh(self, path: Path) -> bool:
        return 0 <= time.time() - path.stat().st_mtime < self._seconds


def sweep(folder: Path, before: float, *, dry_run: bool) -> tuple[int, int]:
    """Remove the entries of all caches in a folder that were stored before a time; return how many, and their bytes."""
    old: list[int] = []
    for path in (path for name in _FOLDERS for path in folder.glob(f"{name}/*") if _ENTRY.fullmatch(path.name)):
        with suppress(OSError):  # another process was quicker
            found = path.stat()
            if path.is_file() and found.st_mtime < before:
                if not dry_run:
                    path.unlink()
                old.append(found.st_size)
    return len(old), sum(old)


def _name(key: str) -> str:
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()


def _digest(data: bytes) -> bytes:
    return hashlib.sha256(data).hexdigest().encode()

"""A disk that ends with its process or with its machine: nothing is written after that, and not all of it is kept."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import pytest

from fathom.storage.atomic import AtomicFiles, Flush
from tests.dying_store import Killed

__all__ = ["FailingDisk", "failing", "flushes"]

T = TypeVar("T")

_CHANGES = ("write", "append_local", "_create", "remove", "settle_local", "reveal_local")


class FailingDisk:
    """Counts the changes below a root, dies before or after one of them, and knows what is flushed by then."""

    def __init__(self, root: Path, dies_at: int | None) -> None:
        self.changes = 0
        self._root = root
        self._dies_at = dies_at
        self._dead = False
        self._flushed = dict[str, bytes]()
        self._whole = dict[str, bytes]()  # whose contents are flushed, but not their names

    def moment(self) -> None:
        """Die, if it is time; a dead process changes nothing."""
        self.changes += 1
        self._dead |= self.changes - 1 == self._dies_at
        if self._dead:
            raise Killed

    def flushed(self, path: str, how: Flush) -> None:
        """Remember the bytes of a file, which no power cut takes away, or of which it takes away all."""
        kept = {Flush.everything: self._flushed, Flush.contents: self._whole, Flush.nothing: dict[str, bytes]()}[how]
        kept[path] = Path(self._root, path).read_bytes()

    def settled(self) -> None:
        """Remember what there is, and what not."""
        self._flushed = {str(path.relative_to(self._root)): path.read_bytes() for path in _files(self._root)}

    def lose_power(self, dice: random.Random) -> None:
        """Take away what was not flushed: all of it, or a part, or nothing, file by file."""
        there = {str(path.relative_to(self._root)) for path in _files(self._root)}
        for path in sorted(there | self._flushed.keys()):
            kept, file = self._flushed.get(path), Path(self._root, path)
            now = file.read_bytes() if path in there else None
            if now == kept or dice.random() < 0.3:
                continue
            if kept is not None:
                file.write_bytes(kept)
            elif now is not None and now != self._whole.get(path) and dice.random() < 0.5:
                file.write_bytes(now[: dice.randrange(len(now) + 1)])
            else:
                file.unlink()


@contextmanager
def failing(root: Path, dies_at: int | None = None) -> Iterator[FailingDisk]:
    """Let this process write on such a disk inside the block."""
    disk = FailingDisk(root, dies_at)
    with pytest.MonkeyPatch.context() as patched:
        for name in _CHANGES:
            patched.setattr(AtomicFiles, name, _watched(disk, root, name, getattr(AtomicFiles, name)))
        yield disk


def _watched(disk: FailingDisk, root: Path, name: str, change: Any) -> Any:
    def call(files: AtomicFiles, first: Any, *more: Any, **options: Any) -> Any:
        if files.root != str(root):
            return change(files, first, *more, **options)
        disk.moment()
        result = change(files, first, *more, **options)
        if name == "settle_local":
            disk.settled()
        elif name != "remove":
            asked = options.get("flush", True)
            for path in first if name == "reveal_local" else [first]:
                disk.flushed(path, {True: Flush.everything, False: Flush.nothing}.get(asked, asked))
        return result

    return call


def _files(root: Path) -> list[Path]:
    return [path for path in root.rglob("*") if path.is_file()]


def flushes(monkeypatch: pytest.MonkeyPatch, seen: Callable[[int], T]) -> list[T]:
    """Return a list that grows by each flush from now on: what `seen` says of its file, by the descriptor."""
    seen_so_far, flush = list[T](), os.fsync

    def flushing(number: int) -> None:
        seen_so_far.append(seen(number))
        flush(number)

    monkeypatch.setattr(os, "fsync", flushing)
    return seen_so_far

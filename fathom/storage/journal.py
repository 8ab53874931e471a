"""The journal of an attempt at a run: what the attempt writes reaches the disk together, and in order.

Each change of the run's files is an entry of `.results/{run key}/journal/{number}`, which is appended and flushed.
Only then are the files themselves changed, without a flush. So changes that come at about the same time, such as a
result, the lines of the audit log and the account, share one flush, and a change is certain only with all before it.

The journal is there only while an attempt is in progress or has been interrupted: at its end the files are flushed and
the journal is removed. The next attempt restores from it what a kill or a power cut has kept from the files.
"""

from __future__ import annotations

import asyncio
import json
import math
import zlib
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from typing import NamedTuple

from fathom.errors import RunBusy, StoreError
from fathom.storage.atomic import AtomicFiles, Flush

GATHER_SECONDS, SOON_SECONDS = 0.5, 0.05
"""For which the flush of a change waits for others, unless somebody waits for it; the second, if it is to come soon."""


class FileChange(NamedTuple):
    """A change of a file: all of its bytes, or those that are appended at `at`; without bytes it is removed."""

    path: str
    data: bytes | None
    at: int | None = None


class Journal:
    """The journal that this process writes, on a local disk.

    `call` runs a function that blocks with a path; `certain` tells whether this process is certain to own the run, and
    so whether a change needs not wait for that. Everything is called in one event loop.
    """

    def __init__(
        self,
        files: AtomicFiles,
        path: str,
        call: Callable[[str, Callable[[str], None]], Awaitable[None]],
        certain: Callable[[], bool],
    ) -> None:
        self._files = files
        self._path = path
        self._call = call
        self._certain = certain
        self._length = 0  # of the journal
        self._waiting: list[FileChange] = []
        self._ahead: list[FileChange] = []  # in the journal, and not in the files yet
        self._added = self._entered = self._done = 0  # changes: known, in the journal, on the disk and in the files
        self._changed = dict[str, None]()  # the paths of the files
        self._writing: asyncio.Task[None] | None = None
        self._due = math.inf  # the time of the event loop at which all is to be flushed
        self._sooner = asyncio.Event()
        self._gathering: asyncio.Task[None] | None = None

    def add(self, change: FileChange) -> None:
        """Add a change. It is in the journal at once, for a kill, and soon on the disk; `commit` waits for that."""
        self._waiting.append(change)
        self._changed[change.path] = None
        self._added += 1
        self._enter()
        self.flush_in(GATHER_SECONDS)

    def flush_in(self, seconds: float) -> None:
        """Let all changes so far be on the disk after some seconds, if not before."""
        self._due = min(self._due, asyncio.get_running_loop().time() + seconds)
        self._sooner.set()
        if self._gathering is None or self._gathering.done():
            self._gathering = asyncio.create_task(self._gather())

    def written(self, path: str) -> bytes | None:
        """Return all bytes of a file that is about to be written; None if none is."""
        changes = [change for change in (*self._ahead, *self._waiting) if change.path == path]
        return changes[-1].data if changes and changes[-1].at is None else None

    def concerns(self, path: str) -> bool:
        """Whether a file is about to change, or one in a folder."""
        paths = {change.path for change in (*self._ahead, *self._waiting)}
        return path in paths or any(not path or changed.startswith(f"{path}/") for changed in paths)

    async def commit(self) -> None:
        """Return once all changes so far are on the disk, and to be seen in their files.

        Raises:
            StoreError: the disk is full or broken; the next call tries again.
            RunBusy: another process has the run.
        """
        number = self._added
        while self._done < number:
            await self._next()

    async def close(self, last: Mapping[str, bytes]) -> None:
        """Flush the files, remove the journal, and write the last files: flushed with the others, named after them."""
        await self.commit()
        await self._call(self._path, lambda path: self._end(path, last))

    async def _gather(self) -> None:
        loop = asyncio.get_running_loop()
        with suppress(StoreError, RunBusy):  # the next one who must be certain tries again, and is told
            while self._done < self._added:
                while loop.time() < self._due:
                    self._sooner.clear()
                    with suppress(TimeoutError):
                        async with asyncio.timeout_at(self._due):
                            await self._sooner.wait()
                self._due = math.inf
                await self.commit()

    def _end(self, path: str, last: Mapping[str, bytes]) -> None:
        with self._files.hidden_local(last) as hidden:
            self._files.settle_local([*self._changed, *hidden.values()])
            self._files.remove(path)
            self._files.reveal_local(hidden)

    def _enter(self) -> None:
        """Append what waits to the journal, unless it is being flushed: in this thread, for others may be long busy."""
        if self._waiting and self._certain() and (self._writing is None or self._writing.done()):
            data = _entries(self._waiting)
            with suppress(RunBusy, *self._files.failures):  # as above
                self._append(self._path, data, self._length, flush=False)
                self._take(len(self._waiting), len(data))

    def _take(self, number: int, size: int) -> None:
        """Note that the first changes that waited are in the journal, with so many bytes."""
        self._length += size
        self._entered += number
        self._ahead = [*_outcome([*self._ahead, *self._waiting[:number]]).values()]
        del self._waiting[:number]

    async def _next(self) -> None:
        """Flush what waits, or wait for who is flushing."""
        if self._writing is None or self._writing.done():
            self._writing = asyncio.create_task(self._write())
            self._writing.add_done_callback(lambda _: self._enter())
        await asyncio.shield(self._writing)  # who is cancelled leaves no half of it

    async def _write(self) -> None:
        number = size = 0

        def flush(path: str) -> None:
            nonlocal number, size
            waiting = [*self._waiting]  # only now: what has come while the thread was about to begin shares the flush
            data = _entries(waiting)
            number, size = len(waiting), len(data)
            self._append(path, data, self._length, flush=True)

        await self._call(self._path, flush)
        self._take(number, size)
        entered = self._entered
        await self._call(self._path, lambda _path: self._apply())
        self._done = entered

    def _append(self, path: str, data: bytes, at: int, *, flush: bool) -> None:
        if (length := self._files.append_local(path, data, at, flush=flush)) != at:
            raise RunBusy(
                f"{self._files.address(path)} has {length:,} bytes instead of {at:,}: another process writes it.",
                next_step="see fathom runs",
            )

    def _apply(self) -> None:
        """Change the files; one that cannot be changed does not hold up the others."""
        failed: list[tuple[FileChange, Exception]] = []
        for change in self._ahead:
            try:
                self._change(change)
            except self._files.failures as error:
                failed.append((change, error))
        self._ahead = [change for change, _ in failed]
        if failed:
            raise failed[0][1]

    def _change(self, change: FileChange) -> None:
        if change.data is None:
            self._files.remove(change.path)
        elif change.at is None:
            self._files.write(change.path, change.data, flush=Flush.nothing)
        else:
            self._append(change.path, change.data, change.at, flush=False)


def restore(files: AtomicFiles, folder: str) -> str:
    """Make the files what the journals in a folder say; return the path of the next journal, which is empty.

    Raises:
        OSError: the disk is full or broken.
        StoreError: a file is shorter than a line that was appended to it says.
    """
    names = _names(files, folder)
    following = f"{folder}/{int(names[-1]) + 1 if names else 1:04}"
    outcome = left_in(files, folder)
    for path, data in outcome.items():
        if data is None:
            files.remove(path)
        elif not files.exists(path) or files.read(path) != data:
            files.write(path, data, flush=Flush.nothing)
    files.append_local(following, b"", 0, flush=False)
    files.settle_local([*outcome, following])
    for name in names:
        files.remove(f"{folder}/{name}")
    return following


def left_in(files: AtomicFiles, folder: str) -> dict[str, bytes | None]:
    """Return what the journals in a folder make of the files, by path: all bytes of a file, or None if it is removed.

    Raises:
        OSError: the disk is broken, or another process has restored the files and removed the journals meanwhile.
        StoreError: a file is shorter than a line that was appended to it says.
    """
    names = _names(files, folder)
    outcome = _outcome(change for name in names for change in changes_in(files.read(f"{folder}/{name}")))
    return {path: _whole(files, change) for path, change in outcome.items()}


def _names(files: AtomicFiles, folder: str) -> list[str]:
    return files.list(folder) if files.exists(folder) else []


class RestoredFiles(AtomicFiles):
    """Files read as the next attempt will restore them. Nothing is restored; what is written is written as ever."""

    def __init__(self, address: str, left: dict[str, bytes | None]) -> None:
        super().__init__(address)
        self._left = left

    def read(self, path: str) -> bytes:
        """Return the bytes of a file."""
        if path not in self._left:
            return super().read(path)
        if (data := self._left[path]) is None:
            raise FileNotFoundError(self.address(path))
        return data

    def read_from(self, path: str, offset: int) -> bytes:
        """Return the bytes of a file from an offset on, which is at most its length."""
        return self.read(path)[offset:] if path in self._left else super().read_from(path, offset)

    def exists(self, path: str) -> bool:
        """Return whether there is a file or folder at that path."""
        return self._left[path] is not None if path in self._left else bool(self._below(path)) or super().exists(path)

    def list(self, path: str) -> list[str]:
        """Return the names of the files and folders in a folder, sorted."""
        restored = {name.partition("/")[0] for name in self._below(path)}
        there = super().list(path) if super().exists(path) or not restored else []
        return sorted(restored | {name for name in there if self._left.get(f"{path}/{name}", b"") is not None})

    def sizes(self, path: str) -> dict[str, int]:
        """Return the bytes of each file below a folder, hidden ones too, by its path."""
        restored = {f"{path}/{name}": len(data) for name, data in self._below(path).items()}
        there = super().sizes(path)
        return {name: size for name, size in there.items() if name not in self._left} | restored

    def _below(self, path: str) -> dict[str, bytes]:
        """Return the restored files below a folder, by their names there."""
        begin = f"{path}/"
        restored = {name.removeprefix(begin): data for name, data in self._left.items() if name.startswith(begin)}
        return {name: data for name, data in restored.items() if data is not None}


def changes_in(data: bytes) -> Iterator[FileChange]:
    """Yield the changes of a journal, up to one that a killed process had not written whole."""
    begin = 0
    while (end := data.find(b"\n", begin)) >= 0:
        try:
            path, length, at, check = json.loads(data[begin:end])
            begin = end + 1 + (length or 0)
        except (ValueError, TypeError):
            return
        change = FileChange(path, None if length is None else data[end + 1 : begin], at)
        if begin > len(data) or _check(change) != check:
            return
        yield change


def _entries(changes: Iterable[FileChange]) -> bytes:
    """Return the entries of changes: of each a line, and its bytes."""
    parts: list[bytes] = []
    for change in changes:
        length = None if change.data is None else len(change.data)
        line = json.dumps([change.path, length, change.at, _check(change)])
        parts += (f"{line}\n".encode(), change.data or b"")
    return b"".join(parts)  # the only copy: files may be of many megabytes


def _check(change: FileChange) -> int:
    return zlib.crc32(change.data or b"", zlib.crc32(json.dumps([change.path, change.at]).encode()))


def _whole(files: AtomicFiles, change: FileChange) -> bytes | None:
    """Return all bytes of a file after a change; None if it is removed."""
    path, data, at = change
    if data is None or not at:
        return data
    before = files.read(path) if files.exists(path) else b""
    if len(before) < at:
        raise StoreError(
            f"{files.address(path)} is damaged: the disk has lost what it had confirmed, and the file has "
            f"{len(before):,} bytes instead of {at:,} or more.",
            next_step="restore the file from a copy, or run again",
        )
    return before[:at] + data


def _outcome(changes: Iterable[FileChange]) -> dict[str, FileChange]:
    """Return one change for each file, which does what all of them do one after the other."""
    outcome = dict[str, FileChange]()
    for change in changes:
        before = outcome.get(change.path)
        if before and change.at is not None and change.data is not None:
            begin, data = before.at or 0, before.data or b""
            at = None if before.data is None else before.at
            outcome[change.path] = FileChange(change.path, data[: change.at - begin] + change.data, at)
        else:
            outcome[change.path] = change
    return outcome

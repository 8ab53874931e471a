"""Whole files on a local disk or an object store, through fsspec, with retries during outages.

Everything here blocks; `fathom.storage.store` calls it in threads.
"""

from __future__ import annotations

import asyncio
import ctypes
import os
import stat
import sys
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from enum import Enum, auto
from functools import partial
from glob import has_magic
from pathlib import Path
from typing import Any, BinaryIO, TypeVar
from uuid import uuid4

from fsspec.core import url_to_fs
from fsspec.implementations.local import LocalFileSystem

from fathom.clock import monotonic
from fathom.config.environment import Environment

READERS = 16
"""Files that are read at once."""
T = TypeVar("T")
U = TypeVar("U")


async def side_by_side(items: Iterable[T], act: Callable[[T], Awaitable[U]], at_once: int = READERS) -> list[U]:
    """Return what an action makes of each item, in their order; at most so many are worked on at once.

    Raises:
        BaseException: the first error of an action.
    """
    places = asyncio.Semaphore(at_once)

    async def one(item: T) -> U:
        async with places:
            return await act(item)

    return await asyncio.gather(*map(one, items))


# botocore tries up to three times, and s3fs five times on top when it was throttled or cut off. However many tries that
# makes, no call takes longer than the limit, and a silent server is asked again before it.
_S3_OPTIONS = {"config_kwargs": {"connect_timeout": 3, "read_timeout": 6, "retries": {"max_attempts": 2}}}
_S3_SECONDS = 20.0
_BYTES_A_SECOND = 200_000  # slowest upload, by which its time limit grows
_ANYBODYS, _PRIVATE = 0o666, 0o600  # permissions of a file; the user's mask takes from the first
_TRIES = 5  # to create a file in a folder that others remove


class Flush(Enum):
    """How much of a file is flushed to the disk when it is written, and so what a power cut leaves of it."""

    nothing = auto()  # perhaps a part: its reader must notice
    contents = auto()  # all of it, or what was there before
    everything = auto()  # with its name: all of it


class AtomicFiles:
    """Files below a root; paths are relative to it and have been checked. `failures`: what the file system raises.

    `confirm` is called immediately before each change that others can see, and prevents it by raising an error.

    Raises:
        ImportError, ValueError: the address belongs to no file system that is known and installed.
    """

    def __init__(self, address: str) -> None:
        s3 = address.startswith(("s3://", "s3a://"))
        encryption = Environment.read().s3_encryption if s3 else {}
        options = {**_S3_OPTIONS, "s3_additional_kwargs": encryption} if s3 else {}
        # A cached listing would hide what other processes write.
        self._fs, root = url_to_fs(address, use_listings_cache=False, **options)
        self.root: str = root.rstrip("/")
        self.local = isinstance(self._fs, LocalFileSystem)
        self.failures: tuple[type[Exception], ...] = (OSError,)
        self.confirm: Callable[[], object] = lambda: None
        self._unanswered: tuple[type[Exception], ...] = () if self.local else (ConnectionError, TimeoutError)
        self._seconds: float | None = None
        # Of a file that it may read in pieces, s3fs asks the length first: two requests for each.
        self._at_once = {"max_concurrency": 1} if s3 else {}
        if s3:
            from botocore.exceptions import BotoCoreError
            from s3fs.core import S3_RETRYABLE_ERRORS

            # After its last retry it raises the error as it is: also broken transfers and unreadable answers.
            self.failures = (OSError, BotoCoreError, *S3_RETRYABLE_ERRORS)
            self._unanswered += S3_RETRYABLE_ERRORS
            self._seconds = _S3_SECONDS
        self._exclusive: bool | None = None

    def address(self, path: str) -> str:
        """Return the absolute path or URL of a file, or of the root for an empty path."""
        full = f"{self.root}/{path}" if path else self.root
        return full if self.local else str(self._fs.unstrip_protocol(full))

    def is_outage(self, error: Exception) -> bool:
        """Whether the same call may succeed later: nothing answered, or the server is overloaded or broken."""
        status = _response(error).get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
        return isinstance(error, self._unanswered) or status in (429, 500, 502, 503, 504)

    def versions(self, paths: Sequence[str]) -> list[tuple[int, ...]]:
        """Return for each file of a local disk what differs once it was changed; empty for one that is not there."""
        found: list[tuple[int, ...]] = []
        for path in paths:
            try:
                there = Path(self.address(path)).stat()
            except (FileNotFoundError, NotADirectoryError):
                found.append(())
            else:
                found.append((there.st_ino, there.st_mtime_ns, there.st_size))
        return found

    def read(self, path: str) -> bytes:
        """Return the bytes of a file."""
        return bytes(self._call(self._fs.cat_file, path, **self._at_once))

    def read_from(self, path: str, offset: int) -> bytes:
        """Return the bytes of a file from an offset on, which is at most its length."""
        if not offset:
            return self.read(path)
        # A server refuses a range that begins where the file ends, so the byte before it is read too.
        return bytes(self._call(self._fs.cat_file, path, start=offset - 1))[1:]

    def exists(self, path: str) -> bool:
        """Return whether there is a file or folder at that path."""
        return bool(self._call(self._fs.exists, path))

    def list(self, path: str) -> list[str]:
        """Return the names of the files and folders in a folder, sorted."""
        if self.local:
            names = {*os.listdir(self.address(path))}  # noqa: PTH208 - a listing of fsspec asks for each file's size
        else:
            names = {str(one).rstrip("/").rpartition("/")[2] for one in self._call(self._fs.ls, path, detail=False)}
        # Hidden files are still being written, or were left by a killed process.
        return sorted(name for name in names if not (name.startswith(".") and name.endswith(".tmp")))

    def write(self, path: str, data: bytes, *, flush: Flush = Flush.everything) -> None:
        """Write or replace a file."""
        if self.local:
            self._write_local(path, data, replace=True, flush=flush)
        else:
            self._put(path, data)

    def remove(self, path: str) -> None:
        """Remove a file, if there is one."""
        self.confirm()
        with suppress(FileNotFoundError):
            self._call(self._fs.rm_file, path)

    def sizes(self, path: str) -> dict[str, int]:
        """Return the bytes of each file below a folder, hidden ones too, by its path."""
        found = self._call(self._fs.find, path, detail=True)
        return {str(name).removeprefix(f"{self.root}/"): int(entry["size"]) for name, entry in found.items()}

    def remove_all(self, paths: Sequence[str]) -> None:
        """Remove files, on a local disk also the folders that this leaves empty; an object store may leave some."""
        self.confirm()
        if not self.local:
            full = [f"{self.root}/{path}" for path in paths]
            options = {} if self._seconds is None else {"timeout": self._seconds}
            if any(map(has_magic, full)):  # together they would be taken for patterns
                for path in paths:
                    self.remove(path)
            else:
                self._fs.rm(full, **options)
            return
        for target in (Path(self.root, path) for path in paths):
            target.unlink(missing_ok=True)
        folders = {folder for path in paths for folder in Path(path).parents if len(folder.parts) > 1}
        for folder in sorted(folders, key=lambda folder: len(folder.parts), reverse=True):
            with suppress(OSError):  # it is not empty
                Path(self.root, folder).rmdir()

    def append_local(self, path: str, data: bytes, at: int, *, flush: bool = True) -> int:
        """Append bytes to a file of `at` bytes on a local disk, or create it; return the number of bytes before.

        If this is not `at`, nothing is written. When the disk is full, nothing is either; a killed process may leave
        only the first bytes.
        """
        target = Path(self.root, path)
        with _opened(target, lambda: target.open("ab", buffering=0)) as file:
            self.confirm()
            if (end := file.seek(0, os.SEEK_END)) != at:
                return end
            try:
                written = 0
                while written < len(data):  # the second one raises what has cut off the first
                    written += file.write(data[written:])
                if flush:
                    os.fsync(file.fileno())
                    if not end:  # it may be new
                        _flush_folder(target.parent)
            except OSError:
                file.truncate(end)
                raise
        return end

    def settle_local(self, paths: Sequence[str]) -> None:
        """Flush what was written without it: files on a local disk, and their names.

        Linux flushes the whole file system in one call, which is quicker than to flush many files one by one.
        """
        if sys.platform == "linux":
            flush_file_system(self.root)
            return
        there = [target for target in (Path(self.root, path) for path in paths) if target.exists()]
        for target in there:
            with target.open("rb") as file:
                os.fsync(file.fileno())
        for folder in {folder for target in there for folder in target.parents if folder.is_relative_to(self.root)}:
            _flush_folder(folder)

    @contextmanager
    def hidden_local(self, files: Mapping[str, bytes]) -> Iterator[dict[str, str]]:
        """Write files of a local disk under hidden names, without a flush; yield these by path, for `reveal_local`."""
        hidden = {path: str(Path(path).with_name(f".{uuid4().hex}.tmp")) for path in files}
        try:
            for path, data in files.items():
                with _created(Path(self.root, hidden[path]), _ANYBODYS) as file:
                    file.write(data)
            yield hidden
        finally:
            for path in hidden.values():
                Path(self.root, path).unlink(missing_ok=True)

    def reveal_local(self, hidden: Mapping[str, str]) -> None:
        """Give hidden files, which have been flushed, their names one after the other, and flush these together."""
        for path, name in hidden.items():
            self.confirm()
            Path(self.root, name).replace(Path(self.root, path))
        for folder in {Path(self.root, path).parent for path in hidden}:
            _flush_folder(folder)

    def create(self, path: str, data: bytes, *, private: bool = False) -> bool:
        """Write a new file; return False, and write nothing, when it exists.

        On a local disk, only the user whose process has made it can read a `private` one.
        """
        if not self.exclusive() and self.exists(path):
            return False
        return self._create(path, data, private=private)

    def make_private(self, path: str) -> None:
        """Let nobody else read a file of this user on a local disk; only its user can do this."""
        target = Path(self.root, path)
        if self.local and (there := target.stat()).st_uid == os.getuid() and stat.S_IMODE(there.st_mode) != _PRIVATE:
            target.chmod(_PRIVATE)

    def exclusive(self) -> bool:
        """Return whether creating a file has only one winner in a race: some S3 servers ignore the condition.

        Tested once, by creating a probe file twice.
        """
        if self._exclusive is None:
            probe = f".probe_{uuid4().hex}"
            self._create(probe, b"")
            try:
                self._exclusive = not self._create(probe, b"")
            finally:
                self._call(self._fs.rm_file, probe)
        return self._exclusive

    def _create(self, path: str, data: bytes, *, private: bool = False) -> bool:
        if self.local:
            return self._write_local(path, data, replace=False, mode=_PRIVATE if private else _ANYBODYS)
        try:
            self._put(path, data, mode="create")
        except OSError as error:
            if isinstance(error, FileExistsError) or _is_taken(error):
                return False
            raise
        return True

    def _put(self, path: str, data: bytes, **options: str) -> None:
        self.confirm()
        self._call(self._fs.pipe_file, path, data, more_seconds=len(data) / _BYTES_A_SECOND, **options)

    def _call(
        self, method: Callable[..., Any], path: str, *arguments: object, more_seconds: float = 0, **options: object
    ) -> Any:
        """Call a method of the file system with a path, for no longer than the limit, if there is one."""
        if self._seconds is None:
            return method(f"{self.root}/{path}", *arguments, **options)
        seconds = self._seconds + more_seconds
        try:
            return method(f"{self.root}/{path}", *arguments, timeout=seconds, **options)
        except TimeoutError as error:
            raise TimeoutError(f"it did not answer within {seconds:.0f} s") from error

    def _write_local(
        self, path: str, data: bytes, *, replace: bool, flush: Flush = Flush.everything, mode: int = _ANYBODYS
    ) -> bool:
        """Write a hidden file beside the target, then give it the target's name; each is flushed to the disk.

        If only the first is, a power cut can undo the change after others have relied on it.
        """
        target = Path(self.root, path)
        hidden = target.with_name(f".{uuid4().hex}.tmp")
        try:
            with _created(hidden, mode) as file:
                file.write(data)
                if data and flush is not Flush.nothing:  # a probe has nothing to lose
                    file.flush()
                    os.fsync(file.fileno())
            self.confirm()
            if replace:
                hidden.replace(target)
            else:
                try:
                    # fsspec checks first and then writes, so a race could have two winners; a hard link has one.
                    target.hardlink_to(hidden)
                except FileExistsError:
                    return False
            if data and flush is Flush.everything:
                _flush_folder(target.parent)
            return True
        finally:
            hidden.unlink(missing_ok=True)


def _opened(path: Path, open_it: Callable[[], T]) -> T:
    """Open a file, once its folder is made if that is missing: other processes remove folders that are empty."""
    for _ in range(_TRIES):
        with suppress(FileNotFoundError):
            return open_it()
        path.parent.mkdir(parents=True, exist_ok=True)
    return open_it()


def _created(path: Path, mode: int) -> BinaryIO:
    return _opened(path, lambda: open(path, "xb", opener=partial(os.open, mode=mode)))


def _flush_folder(folder: Path) -> None:
    """Flush to the disk which names a folder has, and what they mean."""
    number = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)


def flush_file_system(folder: str) -> None:
    """Flush to the disk all that was written to the file system of a folder, on Linux; Python has no such call."""
    number = os.open(folder, os.O_RDONLY)
    try:
        if ctypes.CDLL(None, use_errno=True).syncfs(number):
            raise OSError(code := ctypes.get_errno(), os.strerror(code), folder)
    finally:
        os.close(number)


def _is_taken(error: OSError) -> bool:
    """Whether an S3 server refused a put because another one came first.

    s3fs recognises only AWS's own wording of this; in a race AWS may also report a conflict.
    """
    return _response(error).get("Error", {}).get("Code") in ("PreconditionFailed", "ConditionalRequestConflict")


def _response(error: Exception) -> dict[str, Any]:
    """Return the answer of an S3 server that s3fs turned into an error, in botocore's form; empty for another error."""
    return getattr(error.__cause__, "response", None) or {}


OUTAGE_SECONDS = 60.0
"""How long a run waits for an object store that does not answer."""
_PAUSES = (0.5, 5.0)  # the first and the longest, in seconds; each is twice the one before


class Outages:
    """Calls to the files of a store, each repeated while the store does not answer, up to `patience` seconds.

    An outage begins with a failure and ends with the next success. `say` is called once per outage; after an outage has
    lasted too long, no call waits for its end any more. Every call must be repeatable.
    """

    def __init__(self, files: AtomicFiles, patience: float, say: Callable[[str], object]) -> None:
        self._files = files
        self._patience = patience
        self._say = say
        self._until: float | None = None  # when the outage will have lasted too long

    async def call(self, path: str, blocking: Callable[[str], T]) -> T:
        """Call a function with a path in a thread and return its result; `AtomicFiles.failures` are raised."""
        until: float | None = None
        pause, longest = _PAUSES
        while True:
            try:
                result = await asyncio.to_thread(blocking, path)
            except self._files.failures as error:
                if not self._files.is_outage(error):
                    self._until = None  # it answered
                    raise
                now = monotonic()
                if (outage := self._until) is None:
                    outage = self._until = now + self._patience
                    if self._patience:
                        self._say(f"the artifact store does not answer; trying again for up to {self._patience:.0f} s")
                until = until or now + self._patience
                left = min(until, outage) - now
                if left <= 0:
                    raise
            else:
                self._until = None
                return result
            await asyncio.sleep(min(pause, left))
            pause = min(2 * pause, longest)

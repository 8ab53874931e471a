"""A disk that remembers what has been flushed: a real folder, with the calls to the system that change it in between.

What a file has is certain after `fsync` of the file; the name that it has, after `fsync` of its folder. When the power
goes, everything else is lost, or a part of it: of a file the beginning, of a folder the first of its changes. The
engine is not told: it calls `os` and `open` as always, which is why any code of its own that writes files is tried.

Each change is a moment at which the process can die, the power can go, the process can be suspended, and the disk can
fail.
"""

from __future__ import annotations

import builtins
import errno
import io
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from fathom.storage import atomic
from simulator.world import Killed, World

Moment = Callable[[str, str], None]


class Disk:
    """The files below a folder. `before` is called with each change; it may raise what the system would."""

    def __init__(self, world: World, root: Path, before: Moment) -> None:
        self.root = str(root)
        self._world = world
        self._before = before
        self.lies = False
        """Whether flushing does nothing."""
        self._flushed: dict[int, bytes] = {}  # by inode
        self._changes: list[tuple[str, str, int | None, int | None]] = []  # not flushed: folder, name, before, after
        self._kept: dict[int, str] = {}  # a second name of each inode that a lost change may bring back
        self._numbers: dict[int, tuple[int, str]] = {}  # inode and path of each open file that is written

    def owns(self, path: object) -> bool:
        """Whether a path is on this disk, and a process of the world asks."""
        return (
            bool(self._world.current) and isinstance(path, str | os.PathLike) and os.fspath(path).startswith(self.root)
        )

    @contextmanager
    def moment(self, what: str, path: str, torn: Callable[[], object] = lambda: None) -> Iterator[None]:
        """Make a change inside the block: before it the process may die, after it others may go on.

        `torn` does a part of the change, in a process that dies in the midst of it. Others go on before a change only
        where nothing was confirmed yet: a process that is suspended between the confirmation and the change cannot be
        stopped by anything.
        """
        current = self._world.current
        assert current
        if not current.process.alive:
            raise Killed
        if what in {"create", "flush"}:
            self._world.sleep(self._world.delay())
        self._before(what, path)
        if not current.process.alive:
            torn()
            raise Killed
        yield
        self._world.sleep(self._world.delay())

    # changes of folders

    def changed(self, path: str, before: int | None, after: int | None) -> None:
        """Note that a name means another file now."""
        folder, name = os.path.split(path)
        self._changes.append((folder, name, before, after))

    def keep(self, path: str) -> int | None:
        """Return the inode of a file that is about to lose a name, and keep it, as the change may be lost."""
        try:
            inode = os.stat(path).st_ino
        except FileNotFoundError:
            return None
        if inode not in self._kept:
            hidden = f"{self.root}-kept-{inode}"
            real.link(path, hidden)
            self._kept[inode] = hidden
        return inode

    def flush_folder(self, folder: str) -> None:
        """Make certain what names mean in a folder."""
        if not self.lies:
            self._changes = [change for change in self._changes if change[0] != folder]

    def flush_file(self, inode: int, path: str) -> None:
        """Make certain what a file has."""
        if not self.lies:
            with real.open(path, "rb") as file:
                self._flushed[inode] = file.read()

    def flush_all(self) -> None:
        """Make certain all that files have and that names mean."""
        for path in Path(self.root).rglob("*"):
            if path.is_file():
                self.flush_file(path.stat().st_ino, str(path))
        if not self.lies:
            self._changes = []

    def opened(self, number: int, path: str) -> None:
        """Remember a file that is open for writing."""
        self._numbers[number] = os.fstat(number).st_ino, path

    def at(self, number: int) -> tuple[int, str] | None:
        """Return the inode and the path of an open file."""
        found = self._numbers.get(number)
        return found if found and os.fstat(number).st_ino == found[0] else None

    def share(self) -> float:
        """Return the part of a write that is done when its process dies in the midst of it."""
        return self._world.random.choice((0.0, self._world.random.random(), 1.0))

    def lose_power(self) -> None:
        """Lose what was not flushed, or a part of it."""
        random = self._world.random
        folders = {change[0] for change in self._changes}
        for folder in sorted(folders):
            own = [change for change in self._changes if change[0] == folder]
            lost = own[random.randint(0, len(own)) :] if random.random() < 0.5 else own
            for _, name, before, _after in reversed(lost):
                path = f"{folder}/{name}"
                if os.path.lexists(path):
                    real.unlink(path)
                if before is not None:
                    Path(folder).mkdir(parents=True, exist_ok=True)
                    real.link(self._kept[before], path)
        self._changes = []
        for file in sorted(Path(self.root).rglob("*")):
            if file.is_file():
                self._tear(file, random.random())
        self._numbers = {}

    def _tear(self, path: Path, share: float) -> None:
        """Take from a file what may not have reached the disk."""
        inode, now = path.stat().st_ino, path.read_bytes()
        flushed = self._flushed.get(inode, b"")
        if now != flushed:
            added = now[len(flushed) :] if now.startswith(flushed) else b""
            kept = flushed + added[: int(len(added) * share)]
            with real.open(path, "wb") as file:
                file.write(kept)
            self._flushed[inode] = kept


class Written:
    """A file of a simulated disk that is open for writing, without a buffer of its own."""

    def __init__(self, disk: Disk, path: str, mode: str, **options: Any) -> None:
        self._disk = disk
        self._path = path
        new = not os.path.lexists(path)
        with disk.moment("create", path):
            self._file = real.open(path, mode, buffering=0)
            disk.opened(self._file.fileno(), path)
            if new:
                disk.changed(path, None, disk.keep(path))

    def write(self, data: bytes) -> int:
        part = data[: int(len(data) * self._disk.share())]
        with self._disk.moment("write", self._path, lambda: self._file.write(part)):
            return int(self._file.write(data))

    def truncate(self, size: int | None = None) -> int:
        with self._disk.moment("truncate", self._path):
            return int(self._file.truncate(size))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)

    def __enter__(self) -> Written:
        return self

    def __exit__(self, *error: object) -> None:
        self._file.close()


class Real:
    """The calls of the system, as they are outside."""

    open: Any = staticmethod(io.open)
    replace = staticmethod(os.replace)
    rename = staticmethod(os.rename)
    link = staticmethod(os.link)
    unlink = staticmethod(os.unlink)
    remove = staticmethod(os.remove)
    fsync = staticmethod(os.fsync)
    flush_file_system = staticmethod(atomic.flush_file_system)
    fdatasync = staticmethod(os.fdatasync)
    os_open = staticmethod(os.open)
    os_write = staticmethod(os.write)


real = Real()


def full(path: str) -> OSError:
    """Return the error of a full disk."""
    return OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)


def broken(path: str) -> OSError:
    """Return the error of a broken disk."""
    return OSError(errno.EIO, os.strerror(errno.EIO), path)


@contextmanager
def mounted(disk: Disk) -> Iterator[None]:  # noqa: PLR0915 - one system, whose calls stand together
    """Let the calls of the system that concern a simulated disk go through it, for the threads of its world."""

    def opening(file: Any, mode: str = "r", *args: Any, **options: Any) -> Any:
        if disk.owns(file) and not {*mode}.isdisjoint("wax+"):
            return Written(disk, os.fspath(file), mode)
        return real.open(file, mode, *args, **options)

    def renaming(what: Callable[..., None]) -> Callable[..., None]:
        def call(source: Any, target: Any, **options: Any) -> None:
            if not disk.owns(target):
                return what(source, target, **options)
            source, target = os.fspath(source), os.fspath(target)
            with disk.moment("rename", target):
                moved, replaced = disk.keep(source), disk.keep(target)
                what(source, target, **options)
                disk.changed(source, moved, None)
                disk.changed(target, replaced, moved)
            return None

        return call

    def linking(source: Any, target: Any, **options: Any) -> None:
        if not disk.owns(target):
            return real.link(source, target, **options)
        source, target = os.fspath(source), os.fspath(target)
        with disk.moment("link", target):
            real.link(source, target, **options)
            disk.changed(target, None, disk.keep(target))
        return None

    def removing(path: Any, **options: Any) -> None:
        if not disk.owns(path):
            return real.unlink(path, **options)
        path = os.fspath(path)
        if not os.path.lexists(path):
            return real.unlink(path, **options)
        with disk.moment("unlink", path):
            kept = disk.keep(path)
            real.unlink(path, **options)
            disk.changed(path, kept, None)
        return None

    def os_opening(path: Any, flags: int, *args: Any, **options: Any) -> int:
        if not disk.owns(path):
            return real.os_open(path, flags, *args, **options)
        path = os.fspath(path)
        new = flags & os.O_CREAT and not os.path.lexists(path)
        if not new:
            number = real.os_open(path, flags, *args, **options)
            disk.opened(number, path)
            return number
        with disk.moment("create", path):
            number = real.os_open(path, flags, *args, **options)
            disk.opened(number, path)
            disk.changed(path, None, disk.keep(path))
        return number

    def os_writing(number: int, data: Any) -> int:
        if disk._world.current and (found := disk.at(number)):
            part = bytes(data)[: int(len(data) * disk.share())]
            with disk.moment("write", found[1], lambda: real.os_write(number, part)):
                return real.os_write(number, data)
        return real.os_write(number, data)

    def flushing(number: int) -> None:
        if not (disk._world.current and (found := disk.at(number))):
            return real.fsync(number)
        inode, path = found
        with disk.moment("flush", path):
            if os.path.isdir(path):
                disk.flush_folder(path)
            else:
                disk.flush_file(inode, f"/proc/self/fd/{number}")
        return None

    def flushing_all(folder: str) -> None:
        if not disk.owns(folder):
            return real.flush_file_system(folder)
        with disk.moment("flush", folder):
            disk.flush_all()
        return None

    patches = [
        (atomic, "flush_file_system", flushing_all),
        *((where, "open", opening) for where in (builtins, io)),
        (os, "replace", renaming(real.replace)),
        (os, "rename", renaming(real.rename)),
        (os, "link", linking),
        (os, "unlink", removing),
        (os, "remove", removing),
        (os, "open", os_opening),
        (os, "write", os_writing),
        (os, "fsync", flushing),
        (os, "fdatasync", flushing),
    ]
    with patched(patches):
        yield


@contextmanager
def patched(patches: list[tuple[Any, str, Any]]) -> Iterator[None]:
    """Put other values in the place of attributes inside the block."""
    before = [(where, name, getattr(where, name)) for where, name, _ in patches]
    try:
        for where, name, value in patches:
            setattr(where, name, value)
        yield
    finally:
        for where, name, value in before:
            setattr(where, name, value)

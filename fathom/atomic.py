"""Whole files on a local disk or an object store, through fsspec: a file is there with all of its bytes, or not at all.

Everything here blocks; `fathom.store` calls it in threads.
"""

from __future__ import annotations

import os
from pathlib import Path
from uuid import uuid4

from fsspec.core import url_to_fs
from fsspec.implementations.local import LocalFileSystem

__all__ = ["AtomicFiles"]

# A dead endpoint shall be named within seconds; s3fs retries throttling and broken connections on top of this.
_S3_OPTIONS = {"config_kwargs": {"connect_timeout": 3, "retries": {"max_attempts": 2}}}


class AtomicFiles:
    """Files below a root; paths are relative to it and have been checked.

    Attributes:
        root: the root as the file system names it; absolute when it is local.
        local: whether it is a folder of this machine.
        failures: what the file system raises when it fails.

    Raises:
        ImportError, ValueError: no file system of that address is known or installed.
    """

    def __init__(self, address: str) -> None:
        s3 = address.startswith(("s3://", "s3a://"))
        # A cached listing would hide what other processes write.
        self._fs, root = url_to_fs(address, use_listings_cache=False, **(_S3_OPTIONS if s3 else {}))
        self.root: str = root.rstrip("/")
        self.local = isinstance(self._fs, LocalFileSystem)
        self.failures: tuple[type[Exception], ...] = (OSError,)
        if s3:
            from botocore.exceptions import BotoCoreError

            self.failures = (OSError, BotoCoreError)
        self._exclusive: bool | None = None

    def address(self, path: str) -> str:
        """Return the absolute path or URL of a file, or of the root for an empty path."""
        full = f"{self.root}/{path}" if path else self.root
        return full if self.local else str(self._fs.unstrip_protocol(full))

    def read(self, path: str) -> bytes:
        """Return the bytes of a file."""
        return bytes(self._fs.cat_file(f"{self.root}/{path}"))

    def exists(self, path: str) -> bool:
        """Return whether there is a file or folder of that path."""
        return bool(self._fs.exists(f"{self.root}/{path}"))

    def list(self, path: str) -> list[str]:
        """Return the names of the files and folders in a folder, sorted."""
        entries = self._fs.ls(f"{self.root}/{path}", detail=False)
        names = {str(entry).rstrip("/").rpartition("/")[2] for entry in entries}
        return sorted(name for name in names if not _is_hidden(name))

    def write(self, path: str, data: bytes) -> None:
        """Write or replace a file."""
        if self.local:
            self._write_local(path, data, replace=True)
        else:
            self._fs.pipe_file(f"{self.root}/{path}", data)  # one put is all or nothing

    def create(self, path: str, data: bytes) -> bool:
        """Write a file that must not exist yet; return False, and write nothing, when it does."""
        if not self.exclusive() and self.exists(path):
            return False
        return self._create(path, data)

    def exclusive(self) -> bool:
        """Return whether creating a file has one winner among racers: some S3 servers ignore the condition.

        Found out once, by creating a probe file twice.
        """
        if self._exclusive is None:
            probe = f".probe_{uuid4().hex}"
            self._create(probe, b"")
            try:
                self._exclusive = not self._create(probe, b"")
            finally:
                self._fs.rm_file(f"{self.root}/{probe}")
        return self._exclusive

    def _create(self, path: str, data: bytes) -> bool:
        if self.local:
            return self._write_local(path, data, replace=False)
        try:
            self._fs.pipe_file(f"{self.root}/{path}", data, mode="create")
        except FileExistsError:
            return False
        return True

    def _write_local(self, path: str, data: bytes, *, replace: bool) -> bool:
        """Write a hidden file beside the target; once it is whole and on the disk, give it the target's name."""
        target = Path(self.root, path)
        target.parent.mkdir(parents=True, exist_ok=True)
        hidden = target.with_name(f".{uuid4().hex}.tmp")
        try:
            with hidden.open("xb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            if replace:
                hidden.replace(target)
                return True
            try:
                # fsspec looks first and writes then, so that two racers can win; a hard link has one winner.
                target.hardlink_to(hidden)
            except FileExistsError:
                return False
            return True
        finally:
            hidden.unlink(missing_ok=True)


def _is_hidden(name: str) -> bool:
    """Whether a name is that of a file still being written, or left over by a process that was killed."""
    return name.startswith(".") and name.endswith(".tmp")

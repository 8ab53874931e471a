"""The process of a worker: its name, by which others know it, its signals, and the server that may hold it."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from threading import Thread
from typing import Any, Protocol

from fathom.storage.lease import is_gone

_OWN = "fathom"


class _Worker(Protocol):
    def serve(self) -> Coroutine[Any, Any, None]: ...
    def stop(self) -> None: ...
    def wake(self) -> None: ...
    def release(self) -> None: ...


def own_name() -> str:
    """Return the name of a worker in this process."""
    return f"{_OWN} {socket.gethostname()} {os.getpid()}"


def process_of(name: str) -> tuple[str, int] | None:
    """Return the host and the process id of a worker that named itself; None of another one."""
    own, _, where = name.partition(" ")
    host, _, pid = where.rpartition(" ")
    return (host, int(pid)) if own == _OWN and pid.isdecimal() else None


def is_dead(name: str) -> bool:
    """Whether a worker of this machine that named itself was killed, which the server notices only after a while."""
    process = process_of(name)
    return process is not None and is_gone(*process)


def serve_until_stopped(worker: _Worker) -> None:
    """Serve until SIGTERM or Ctrl-C. The runs are in a thread: in the main one, Prefect would handle these signals."""
    with ThreadPoolExecutor(1, "worker") as thread:
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: worker.stop())
        thread.submit(asyncio.run, worker.serve()).result()


def attach(worker: _Worker, source: int) -> None:
    """Let a server wake the worker by a line in a pipe. Once that is closed, the worker ends when it has nothing to do.

    So a server that is killed leaves no worker for ever, and the runs in progress go on.
    """

    def read() -> None:
        while os.read(source, 4096):  # not a file object, whose lock a daemon thread would hold at exit
            worker.wake()
        worker.release()

    Thread(target=read, name="server", daemon=True).start()

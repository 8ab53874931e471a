"""The boundaries of a run: named places in the engine at which a process is killed, exactly there.

A child of `tests.forking` that has the name of one as DIES_AT in its environment sends SIGKILL to itself when it comes
to it, whatever its other threads are doing.
"""

from __future__ import annotations

import inspect
import os
import pkgutil
import signal
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import wraps
from typing import Any, NamedTuple

__all__ = ["BOUNDARIES", "DIES_AT", "arm"]

DIES_AT = "DIES_AT"


class Boundary(NamedTuple):
    """A call of a function, the first that has a text in an argument, and when the process is killed: before or after.

    `since`: a function that must have been called before.
    `torn`: bytes are to be appended, and are up to a little after the text.
    `loses`: the answer that came last must be asked for again.
    """

    function: str
    after: bool = False
    text: str = ""
    since: str = ""
    torn: bool = False
    lost: int | None = None


_STORE, _FILES = "fathom.storage.store:ArtifactStore", "fathom.storage.atomic:AtomicFiles"
_JOURNAL, _LEDGER = "fathom.storage.journal:Journal", "fathom.budget.ledger"
_MODEL = "/model_call-"

BOUNDARIES = {
    # An attempt begins.
    "the lease is taken, the journal is not open": Boundary(f"{_STORE}.open_journal"),
    "the clock is read, its time is not stored": Boundary(f"{_STORE}.write", text="/begin-"),
    # A request, from its reservation to its result.
    "a reservation is about to be written": Boundary(f"{_STORE}.write", text="/ledger/"),
    "a reservation is written, and not flushed": Boundary(f"{_STORE}.write", after=True, text="/ledger/"),
    "a reservation is flushed, its request is not sent": Boundary(f"{_STORE}.confirm"),
    "a request is sent, and not answered": Boundary("socket:socket.send", after=True, text='"messages"'),
    "an answer has come, and is not settled": Boundary(f"{_LEDGER}:Attempt.took", lost=1),
    "an answer is settled, and not stored": Boundary(f"{_STORE}.write", text=_MODEL, lost=1),
    "half of an answer is in the journal": Boundary(f"{_FILES}.append_local", text=_MODEL, torn=True, lost=1),
    "an answer is in the journal, and not flushed": Boundary(f"{_STORE}.write", after=True, text=_MODEL, lost=0),
    "the journal is flushed, no file is changed": Boundary(f"{_JOURNAL}._apply"),
    # What a run makes of the answers, and what an attempt makes of what the one before has left.
    "a folder is taken, and no result names it": Boundary(f"{_STORE}.create", after=True, text="/run.json"),
    "a file is written, and has not got its name": Boundary("os:replace", text=_MODEL),
    "one file of several is changed": Boundary("os:replace", after=True, text=_MODEL),
    "what a tool found is stored, its result is not": Boundary(f"{_STORE}.write", text="/tool-"),
    "the files are restored, and not flushed": Boundary(f"{_FILES}.settle_local"),
    "the restored files are flushed, two journals are there": Boundary(f"{_FILES}.remove", text="/journal/"),
    "a tool's result is stored, nothing is made of it": Boundary(f"{_STORE}.write", after=True, text="/tool-"),
    "a round has ended, the next has not begun": Boundary("fathom.flows.rounds:decide", after=True),
    "the report is written, its page is not": Boundary(f"{_STORE}.write", text="/report.html"),
    # The end.
    "the files are about to be flushed": Boundary(f"{_FILES}.settle_local", since=f"{_JOURNAL}.close"),
    "the files are flushed, the journal is there": Boundary(
        f"{_FILES}.remove", text="/journal/", since=f"{_JOURNAL}.close"
    ),
    "the journal is gone, the result is not written": Boundary(f"{_FILES}.reveal_local", text="/result.json"),
    "the result is written, its evidence is not": Boundary("os:replace", after=True, text="/result.json"),
    "all is written, the run is not given up": Boundary("fathom.storage.lease:LeaseKeeper.release"),
}
"""In the order in which attempts at one run come to them, each killed at the next."""


def arm(boundary: Boundary) -> None:
    """Let this process be killed at a boundary."""
    if boundary.since:
        _put(boundary.since, lambda function: _arming(function, boundary._replace(since="")))
    else:
        _put(boundary.function, lambda function: _dying(function, boundary))


def _put(name: str, change: Callable[[Callable[..., Any]], Callable[..., Any]]) -> None:
    place, _, attribute = name.replace(":", ".").rpartition(".")
    owner = pkgutil.resolve_name(place)
    setattr(owner, attribute, change(getattr(owner, attribute)))


def _arming(function: Callable[..., Any], boundary: Boundary) -> Callable[..., Any]:
    def called(*arguments: Any, **options: Any) -> Any:
        arm(boundary)
        return function(*arguments, **options)

    return called


def _dying(function: Callable[..., Any], boundary: Boundary) -> Callable[..., Any]:
    @contextmanager
    def passing(arguments: tuple[Any, ...]) -> Iterator[None]:
        there = boundary.text in " ".join(map(_shown, arguments))
        if there and boundary.torn:
            files, path, data, at = arguments
            function(files, path, data[: data.index(boundary.text.encode()) + 200], at, flush=False)
        if there and not boundary.after:
            _die()
        yield
        if there:
            _die()

    @wraps(function)
    async def awaited(*arguments: Any, **options: Any) -> Any:
        with passing(arguments):
            return await function(*arguments, **options)

    @wraps(function)
    def called(*arguments: Any, **options: Any) -> Any:
        with passing(arguments):
            return function(*arguments, **options)

    return awaited if inspect.iscoroutinefunction(function) else called


def _shown(argument: Any) -> str:
    if isinstance(argument, bytes | bytearray | memoryview):
        return bytes(argument).decode(errors="replace")
    if isinstance(argument, Mapping):
        return " ".join(map(_shown, argument))
    return f"/{argument}" if isinstance(argument, str | os.PathLike) else ""


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)

"""Leases: the process that works on a run keeps a lease beside its results alive for as long as it works.

Each attempt at a run owns a numbered file, `.results/{run key}/lease/0001.json`. The process that creates the next
number owns the run: a race has one winner, and a process that only seemed dead learns that it was replaced. A lease
holds the run's parameters, so a run can be restarted from the store alone.

A process may be suspended at any line, alone or with its machine. So the store of a run asks for each change whether
the lease is still valid, and makes none while that is not certain.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import re
import socket
from collections.abc import Callable
from concurrent.futures import Future
from datetime import datetime, timedelta
from threading import Condition, Thread
from typing import Annotated, Any
from uuid import uuid4

from pydantic import AfterValidator

from fathom.clock import monotonic, now, uptime
from fathom.errors import FathomError, OtherLayout, RunBusy, StoreError
from fathom.models import Model
from fathom.models.run import LAYOUT
from fathom.storage.atomic import OUTAGE_SECONDS, Flush
from fathom.storage.names import numbers_in, slug
from fathom.storage.store import ArtifactStore, note_change

RESULTS = ".results"
LEASE_SECONDS = 45.0
"""How long a lease is valid after it was renewed."""
_OWN_SHARE = 0.9
"""Part of this for which its process relies on it: the clocks of others may be ahead by the rest."""
_AHEAD_SECONDS = (1 - _OWN_SHARE) * LEASE_SECONDS
_LOOKS = 45  # while a lease of a clock that is further ahead is watched


def _in_utc(text: str) -> str:
    if datetime.fromisoformat(text).tzinfo is None:
        raise ValueError("a time without a time zone")
    return text


class Lease(Model):
    """One attempt at a run: its process, and when that last reported. Times are ISO 8601 in UTC."""

    run_id: str
    run_key: str  # the name of the folder of the stored results
    layout: int = 1  # layout of these results; not written before layout 2
    parameters: dict[str, Any]  # parameters of the flow, as they were given
    host: str
    pid: int
    token: str  # different for every attempt
    started: str
    renewed: Annotated[str, AfterValidator(_in_utc)]
    seconds: float = LEASE_SECONDS  # seconds for which it is valid after that
    results: int | None = None  # stored under the key when the attempt began; None in an older lease
    released: bool = False  # the attempt has ended, with or without success
    held: bool = False  # it is not an attempt: the results under the key are being removed or imported
    waiting: bool = False  # the attempt has ended because the run waits for a person, and goes on after the answer

    @property
    def age(self) -> float:
        """Seconds since it was renewed."""
        return (now() - datetime.fromisoformat(self.renewed)).total_seconds()

    @property
    def alive(self) -> bool:
        """Whether its process still works on the run, as far as this machine can tell."""
        return not self.released and self.age < self.seconds and not is_gone(self.host, self.pid)

    @property
    def doubtful(self) -> bool:
        """Whether its time says nothing, so that only a renewal shows whether its process still works on the run.

        The clock of its machine is ahead, or, as it has expired and its process is there, this machine's has jumped.
        """
        there = self.host == socket.gethostname() and not is_gone(self.host, self.pid)
        return not self.released and (self.age < -_AHEAD_SECONDS if self.alive else there)

    def check_free(self) -> None:
        """Check that this process may continue the run.

        Raises:
            RunBusy: another process works on it.
            OtherLayout: its results were stored in another layout.
        """
        if self.alive:
            raise self.busy()
        check_layout(self.run_id, self.layout)

    def busy(self) -> RunBusy:
        """Return the error for a process that wants a run which another process holds."""
        doing = "is being removed or imported" if self.held else "is still running"
        return RunBusy(
            f"The run {self.run_id[:8]} {doing}, in process {self.pid} on {self.host}, "
            f"last heard from {max(0, round(self.age))} s ago.",
            next_step="wait for it, cancel it, or stop that process",
        )


class LeaseFile:
    """A lease that this process holds."""

    def __init__(self, store: ArtifactStore, lease: Lease, number: int, began: float) -> None:
        self._store = store
        self._lease = lease
        self._number = number
        self._valid_from(began)

    @classmethod
    async def take(
        cls,
        store: ArtifactStore,
        run_id: str,
        run_key: str,
        parameters: dict[str, Any],
        seconds: float = LEASE_SECONDS,
    ) -> LeaseFile:
        """Take a run that no process works on, for some seconds after each renewal.

        Raises:
            RunBusy: another process does, perhaps one that was quicker.
            OtherLayout: what is stored under the run key has another layout.
        """
        number, last = await _observed(store, run_key)
        if last:
            last.check_free()
        await note_change(store, f"{RESULTS}/{run_key}")
        results, began = await _results(store, run_key), uptime()
        lease = _own(run_id, run_key, parameters, seconds).model_copy(update={"results": results})
        return await cls._create(store, number + 1, lease, began)

    @classmethod
    async def hold(cls, store: ArtifactStore, run_id: str, run_key: str) -> tuple[LeaseFile, Lease | None]:
        """Prevent processes from starting to work on a run of any layout; return also the lease before this one.

        Raises:
            RunBusy: a process works on the run.
        """
        number, last = await _latest(store, run_key)
        if last and last.alive:
            raise last.busy()
        began = uptime()
        lease = _own(last.run_id if last else run_id, run_key, last.parameters if last else {}, LEASE_SECONDS)
        kept = {"held": True, "layout": last.layout if last else LAYOUT}
        return await cls._create(store, number + 1, lease.model_copy(update=kept), began), last

    @classmethod
    async def _create(cls, store: ArtifactStore, number: int, lease: Lease, began: float) -> LeaseFile:
        if not await store.create(_path(lease.run_key, number), _bytes(lease)):
            raise (await _read(store, lease.run_key, number) or lease).busy()
        return cls(store, lease, number, began)

    async def renew(self) -> bool:
        """Record that this process is alive; return whether it still owns the run.

        While the lease is valid, nobody else takes the run. Once it is not, this process competes for the next number
        as everybody does: a file that it only overwrote would not tell who has read the one before. A power cut that
        takes a renewal back has ended the process too: the lease only expires earlier.
        """
        began, lease, following = uptime(), self._renewed(), _path(self._lease.run_key, self._number + 1)
        if self.valid:
            await self._store.write(self.path, _bytes(lease), flush=Flush.contents)
            if await self._store.exists(following):
                return False
        if not self.valid:
            began, lease = uptime(), self._renewed()
            if not await self._store.create(following, _bytes(lease)):
                return False
            self._number += 1
        self._valid_from(began)
        return True

    async def release(self, *, waiting: bool = False) -> None:
        """Give the run up, so that another process may take it; `waiting`: once a person has answered it."""
        lease = self._renewed().model_copy(update={"released": True, "waiting": waiting})
        await self._store.write(self.path, _bytes(lease))

    async def withdraw(self) -> None:
        """Leave the run as if it had not been taken."""
        await self._store.remove_all([self.path])

    @property
    def valid(self) -> bool:
        """Whether it is certain that no other process has taken the run."""
        return uptime() < self._until

    def _valid_from(self, began: float) -> None:
        self._until = began + _OWN_SHARE * self._lease.seconds

    def _renewed(self) -> Lease:
        return self._lease.model_copy(update={"renewed": _now()})

    @property
    def path(self) -> str:
        """The path of its file."""
        return _path(self._lease.run_key, self._number)

    @property
    def seconds(self) -> float:
        """Seconds for which it is valid after a renewal."""
        return self._lease.seconds


def journals_of(run_key: str) -> str:
    """Return the folder of the journals of the attempts at a run."""
    return f"{RESULTS}/{run_key}/journal"


async def read_lease(store: ArtifactStore, run_key: str) -> Lease | None:
    """Return the latest lease of a run; None for a run that never started, or for an invalid key."""
    if not re.fullmatch(r"[a-z0-9_-]{1,100}", run_key):
        return None
    return (await _latest(store, run_key))[1]


async def as_restored(store: ArtifactStore, run_key: str) -> ArtifactStore:
    """Return the store in which a run that was interrupted is read as its next attempt will restore it.

    After a power cut, its files may be torn until then. Nothing is written: only an attempt may do that.

    Raises:
        StoreError: what was flushed is lost or damaged, so that no attempt can restore it.
    """
    lease = await read_lease(store, run_key) if store.local else None
    return store if lease is None or lease.alive else await store.as_restored(journals_of(run_key))


async def observe_lease(store: ArtifactStore, run_key: str) -> Lease | None:
    """Return the latest lease of a run, after watching it for as long as it is valid if its time says nothing."""
    return (await _observed(store, run_key))[1]


async def last_attempt(store: ArtifactStore, run_key: str) -> Lease | None:
    """Return the latest lease of a process that worked on a run: a removal that was killed hides none."""
    for number in range(await _last(store, run_key), 0, -1):
        lease = await _read(store, run_key, number)
        if lease and not lease.held:
            return lease
    return None


async def died(store: ArtifactStore, run_key: str) -> int:
    """Return the number of attempts since the last new result that never gave the run up.

    Their process was killed, or still works. One that stored a result was not killed by the run, but by a power cut,
    perhaps, and the next one comes further.
    """
    last, results = await _last(store, run_key), await _results(store, run_key)
    found = [await _read(store, run_key, number) for number in range(1, last + 1)]
    attempts = {lease.token: lease for lease in found if lease and not lease.held}  # one that was suspended has several
    return sum(not lease.released and lease.results == results for lease in attempts.values())


async def note_progress(store: ArtifactStore, run_key: str, what: str) -> None:
    """Count something that a run has finished and that is not stored among its results, as the questions of a batch."""
    digest = hashlib.sha256(what.encode()).hexdigest()[:24]
    await store.create(f"{RESULTS}/{run_key}/done-{digest}", b"")


def result_key(run_id: str, run_key: str | None) -> str:
    """Return the folder name of a run's results: the key it was given, else its id. A key may be any text."""
    if not run_key or re.fullmatch(r"[a-z0-9_-]{1,80}", run_key):
        return run_key or run_id
    return f"{slug(run_key)[:80]}_{hashlib.sha256(run_key.encode()).hexdigest()[:8]}"


def check_layout(run_id: str, layout: int) -> None:
    """Check that this version can read a run's stored results.

    Raises:
        OtherLayout: they were stored by a version with another layout.
    """
    if layout != LAYOUT:
        raise OtherLayout(
            f"The run {run_id[:8]} was stored in layout {layout}; this version of Fathom replays and resumes layout "
            f"{LAYOUT} only.",
            next_step="`fathom verify` and `fathom export` still work; run the question again, without that --run-key",
        )


def is_gone(host: str, pid: int) -> bool:
    """Whether a process is known to have ended; always False for other machines."""
    if host != socket.gethostname():
        return False
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, PermissionError) as error:
        return isinstance(error, ProcessLookupError)  # else it is another user's
    return False


async def _last(store: ArtifactStore, run_key: str) -> int:
    return max(numbers_in(await store.list(f"{RESULTS}/{run_key}/lease")), default=0)


async def _results(store: ArtifactStore, run_key: str) -> int:
    """Return the number of results that are stored under a key."""
    return sum(re.search(r"-[0-9a-f]{24}$", name) is not None for name in await store.list(f"{RESULTS}/{run_key}"))


async def _latest(store: ArtifactStore, run_key: str) -> tuple[int, Lease | None]:
    number = await _last(store, run_key)
    return number, await _read(store, run_key, number)


async def _observed(store: ArtifactStore, run_key: str) -> tuple[int, Lease | None]:
    first = number, lease = await _latest(store, run_key)
    if not (lease and lease.doubtful):
        return first
    until = uptime() + lease.seconds
    while uptime() < until:
        await asyncio.sleep(lease.seconds / _LOOKS)
        if (latest := await _latest(store, run_key)) != first:
            return latest
    expired = now() - timedelta(seconds=lease.seconds)
    return number, lease.model_copy(update={"renewed": expired.isoformat()})


async def _read(store: ArtifactStore, run_key: str, number: int) -> Lease | None:
    return await store.stored(Lease, _path(run_key, number), "remove that file") if number else None


def _path(run_key: str, number: int) -> str:
    return f"{RESULTS}/{run_key}/lease/{number:04}.json"


def _own(run_id: str, run_key: str, parameters: dict[str, Any], seconds: float) -> Lease:
    now = _now()
    return Lease(
        run_id=run_id,
        run_key=run_key,
        layout=LAYOUT,
        parameters=parameters,
        host=socket.gethostname(),
        token=uuid4().hex,
        pid=os.getpid(),
        started=now,
        renewed=now,
        seconds=seconds,
    )


def _bytes(lease: Lease) -> bytes:
    # Older versions, which know no such fields, may read the leases of runs.
    unset = {name for name in ("held", "waiting") if not getattr(lease, name)}
    return lease.model_dump_json(indent=1, exclude=unset).encode()


def _now() -> str:
    return now().isoformat(timespec="milliseconds")


_RENEWALS = 4.5  # while a lease is valid
_FAILURES = (StoreError, OSError, RuntimeError)  # the last two where no file or thread can be opened any more


class LeaseKeeper:
    """Renews a lease from a thread of its own, so that work which blocks the event loop does not lose the run.

    `lost` is called in that thread, when another process has taken the run over (RunBusy) and when the lease could not
    be renewed for longer than an outage may last (StoreError).
    """

    def __init__(self, lease: LeaseFile, lost: Callable[[FathomError], object]) -> None:
        self._lease = lease
        self._lost = lost
        self._changed = Condition()
        self._ending = self._waiting = self._asked = False
        self._end: FathomError | None = None  # why nothing may be written any more
        self._ended: Future[None] = Future()
        self._ended.set_running_or_notify_cancel()  # whoever waits for the thread cannot cancel it
        Thread(target=self._run, name="lease", daemon=True).start()

    @property
    def certain(self) -> bool:
        """Whether it is certain at this moment that this process owns the run."""
        return self._end is None and self._lease.valid

    def confirm(self) -> None:
        """Check that this process owns the run; while that is not certain, wait until it is. Blocks.

        Raises:
            RunBusy: it does not own it any more.
            StoreError: the lease could not be renewed for too long.
        """
        with self._changed:
            while not (self._end or self._lease.valid):
                if not self._asked:  # else threads that wait here would wake each other without end
                    self._asked = True
                    self._changed.notify_all()
                self._changed.wait()
            if self._end:
                raise self._end

    async def release(self, *, waiting: bool = False) -> None:
        """Give the run up, unless it was taken over; `waiting`: because it waits for a person.

        The thread does it last, so no late renewal undoes it. Nothing may be written afterwards.

        Raises:
            StoreError: it could not be written; the lease expires by itself.
        """
        with self._changed:
            self._ending, self._waiting = True, waiting
            self._changed.notify_all()
        await asyncio.wrap_future(self._ended)

    def _run(self) -> None:
        try:
            self._keep()
        except _FAILURES as error:
            self._ended.set_exception(error)
        finally:
            self._stop(RunBusy("This process has given the run up.", next_step="see fathom runs"))
            if not self._ended.done():
                self._ended.set_result(None)

    def _stop(self, reason: FathomError) -> None:
        """Let nothing be written any more."""
        with self._changed:
            self._end = self._end or reason
            self._changed.notify_all()

    def _due(self) -> bool:
        """Wait until the lease is to be renewed; False when it is to be given up."""
        with self._changed:
            self._changed.wait_for(lambda: self._ending or self._asked, self._lease.seconds / _RENEWALS)
            self._asked = False
            return not self._ending

    def _keep(self) -> None:
        renewed = monotonic()
        while self._due():
            try:
                owned = asyncio.run(self._lease.renew())
            except _FAILURES as error:
                if self._ending:
                    raise
                if monotonic() - renewed > OUTAGE_SECONDS:
                    self._lose(StoreError(f"The lease cannot be renewed: {error}", next_step="fathom resume RUN"))
                continue
            renewed = monotonic()
            if not owned:
                self._lose(RunBusy("Another process has taken over the run.", next_step="see fathom runs"))
                return
            with self._changed:
                self._changed.notify_all()
        asyncio.run(self._lease.release(waiting=self._waiting))

    def _lose(self, reason: FathomError) -> None:
        if not self._ending:
            self._lost(reason)  # first, so that the run knows why its writes fail
        self._stop(reason)

"""Keeping a lease alive for as long as its process works, whatever the event loop is busy with."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Future
from threading import Event, Thread
from time import monotonic

from fathom.errors import FathomError, RunBusy, StoreError
from fathom.storage.lease import LeaseFile
from fathom.storage.outages import OUTAGE_SECONDS

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
        self._ending = Event()
        self._waiting = False
        self._ended: Future[None] = Future()
        self._ended.set_running_or_notify_cancel()  # whoever waits for the thread cannot cancel it
        Thread(target=self._run, name="lease", daemon=True).start()

    async def release(self, *, waiting: bool = False) -> None:
        """Give the run up, unless it was taken over; `waiting`: because it waits for a person.

        The thread does it last, so no late renewal undoes it.

        Raises:
            StoreError: it could not be written; the lease expires by itself.
        """
        self._waiting = waiting
        self._ending.set()
        await asyncio.wrap_future(self._ended)

    def _run(self) -> None:
        try:
            self._keep()
        except _FAILURES as error:
            self._ended.set_exception(error)
        finally:
            if not self._ended.done():
                self._ended.set_result(None)

    def _keep(self) -> None:
        renewed = monotonic()
        while not self._ending.wait(self._lease.seconds / _RENEWALS):
            try:
                owned = asyncio.run(self._lease.renew())
            except _FAILURES as error:
                if self._ending.is_set():
                    raise
                if monotonic() - renewed > OUTAGE_SECONDS:
                    self._lost(StoreError(f"The lease cannot be renewed: {error}", next_step="fathom resume RUN"))
                continue
            renewed = monotonic()
            if not owned:
                if not self._ending.is_set():
                    self._lost(RunBusy("Another process has taken over the run.", next_step="see fathom runs"))
                return
        asyncio.run(self._lease.release(waiting=self._waiting))

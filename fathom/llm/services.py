"""The state of the services behind the models: which rest, how many calls are in progress, when the next may start.

All roles and runs of the process share it: what one call learns about a service saves the others the same wait.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import cache
from weakref import WeakKeyDictionary

from fathom.errors import CircuitOpen, ModelUnavailable, RateLimited

FAILURES = 5  # in a row, after which a service rests
REST_SECONDS = 30.0
MAX_RETRY_AFTER = 60.0  # seconds that a call waits when a service asks for it; for longer the service counts as resting


class Circuit:
    """A circuit breaker: lets requests to one service pass, or refuses them while it rests.

    After `FAILURES` failures in a row the service rests for `REST_SECONDS`. Then one request passes as a probe; until
    it is answered the others are refused. If it succeeds all pass again, else the service rests once more.

    A rate limit is not a failure, since the service answered. Requests wait for as long as it asks, or are refused
    during that time if it is more than `MAX_RETRY_AFTER`.
    """

    def __init__(self, service: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._service = service
        self._clock = clock
        self._failures = 0
        self._failed_at = float("-inf")
        self._pause_until = self._rest_until = float("-inf")
        self._probing = False

    @asynccontextmanager
    async def attempt(self) -> AsyncIterator[None]:
        """Make one request inside the block, when the service is ready for it.

        Raises:
            CircuitOpen: the service rests; no request was made.
        """
        await asyncio.sleep(max(0.0, self._pause_until - self._clock()))
        started = self._clock()
        if started < self._rest_until:
            raise CircuitOpen(f"{self._service} is not called for another {self._rest_until - started:.0f} s.")
        if self._probing:
            raise CircuitOpen(f"{self._service} is being tested with one request.")
        probe = self._probing = self._failures >= FAILURES
        alive = True
        try:
            yield
        except RateLimited as error:
            self._wait(error.retry_after or 0.0)
            raise
        except ModelUnavailable:
            alive = False
            self._fail(started)
            raise
        except asyncio.CancelledError:
            alive = False
            raise
        finally:
            if alive:
                self._failures = 0
            if probe:
                self._probing = False

    def _wait(self, seconds: float) -> None:
        until = self._clock() + seconds
        if seconds > MAX_RETRY_AFTER:
            self._rest_until = max(self._rest_until, until)
        else:
            self._pause_until = max(self._pause_until, until)

    def _fail(self, started: float) -> None:
        """Count a failure, unless the request was already running when the last one failed: that is one outage."""
        if started < self._failed_at:
            return
        self._failures += 1
        self._failed_at = self._clock()
        if self._failures >= FAILURES:
            self._rest_until = self._failed_at + REST_SECONDS


class Pace:
    """Spaces out the starts of requests to one service."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._free_at = float("-inf")

    async def turn(self, per_minute: int | None) -> None:
        """Wait until a request may start: 60 / `per_minute` seconds after the previous one, at once when None."""
        if per_minute is None:
            return
        now = self._clock()
        start = max(now, self._free_at)
        self._free_at = start + 60 / per_minute  # before the wait, so that the next request waits longer
        await asyncio.sleep(start - now)


_slots: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[int, asyncio.Semaphore]] = WeakKeyDictionary()


@cache
def circuit_of(service: str) -> Circuit:
    """Return the circuit of a service, the same for the whole process."""
    return Circuit(service)


@cache
def pace_of(service: str) -> Pace:
    """Return the pace of a service, the same for the whole process."""
    return Pace()


def slots(at_once: int) -> asyncio.Semaphore:
    """Return the semaphore that limits the calls in progress, one for each event loop and limit."""
    return _slots.setdefault(asyncio.get_running_loop(), {}).setdefault(at_once, asyncio.Semaphore(at_once))

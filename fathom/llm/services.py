"""The state of the services behind the models: their rests, the calls in progress, the start of the next call.

All roles and runs of the process share it: what one call learns about a service saves the others the same wait.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from weakref import WeakKeyDictionary

from fathom.errors import (
    BudgetExceeded,
    CircuitOpen,
    ModelError,
    ModelTimeout,
    ModelUnavailable,
    ModelUnreachable,
    RateLimited,
)

FAILURES = 5  # in a row, after which a service rests
REST_SECONDS = 30.0  # the first time; doubled each time that it fails again
LONGEST_REST = 300.0
MAX_WAIT = 60.0  # seconds for which a request waits when the service rests or asks for a pause
POLL_SECONDS = 0.05  # the requests that wait are in the event loops of several runs, so none can wake the others


class Circuit:
    """A circuit breaker: lets requests to one service pass, or has them wait or refuses them while it rests.

    After `FAILURES` failures in a row, of at least two different requests, the service rests for `REST_SECONDS`: one
    request that always fails says nothing about the others. Then one request passes as a probe, and the others wait for
    its outcome. If it succeeds, all pass again. If it fails, the waiting requests are refused, and the service rests
    twice as long as before, at most `LONGEST_REST`.

    After a silence it rests for at least twice as long as the silent request took: else a test of a service that takes
    requests and never answers would follow upon the other.

    A rate limit is not a failure, since the service answered: nothing is sent for as long as it asks.

    Requests wait for a rest or a pause of at most `MAX_WAIT`; during a longer one they are refused at once. So a
    service that stays down holds a run for two rests, 90 seconds, and for the time that its two probes take.
    """

    def __init__(self, service: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._service = service
        self._clock = clock
        self._failures = 0
        self._failed = set[int]()  # requests, since the last success
        self._failed_at = self._closed_until = float("-inf")
        self._closed_for = 0.0
        self._probing = False
        self.rests = 0
        """Rests since the last success."""

    async def ready(self, request: int, rests: int, seconds: float) -> None:
        """Wait until a request may be tried, at most for some seconds.

        Args:
            request: what tells it from other requests; the same when it is tried again.
            rests: that the service may have had since its last success; during a later one the request is refused.
            seconds: that it may wait.

        Raises:
            CircuitOpen: it would have to wait longer, or the probe that it waited for failed.
        """
        deadline = self._clock() + seconds
        # Where others wait, one that has failed lets them be the probe: the fault may be its own.
        turn = 2 * POLL_SECONDS if request in self._failed and self._closed_for <= MAX_WAIT else 0.0
        while (left := self._closed_until + turn - self._clock()) > 0 or self._probing:
            too_long = self._closed_for > MAX_WAIT or self._clock() + max(left, 0.0) > deadline
            if too_long or self.rests > rests:
                raise self._refusal()
            await asyncio.sleep(min(left, POLL_SECONDS) if left > 0 else POLL_SECONDS)

    @contextmanager
    def attempt(self, request: int) -> Iterator[None]:
        """Make one request inside the block.

        Raises:
            CircuitOpen: the service is not ready for it; no request was made.
        """
        started = self._clock()
        if started < self._closed_until or self._probing:
            raise self._refusal()
        probe = self._probing = self.rests > 0
        try:
            yield
        except RateLimited as error:
            self._recovered()
            self._close(error.retry_after or 0.0)
            raise
        except ModelUnreachable:  # it ends a run; a rest would only hold up the next one
            raise
        except ModelUnavailable as error:
            self._fail(request, started, silent=isinstance(error, ModelTimeout))
            raise
        except (BudgetExceeded, asyncio.CancelledError):  # it was not sent, or not answered
            raise
        except ModelError:
            self._recovered()
            raise
        else:
            self._recovered()
        finally:
            if probe:
                self._probing = False

    def _refusal(self) -> CircuitOpen:
        if (seconds := self._closed_until - self._clock()) > 0:
            return CircuitOpen(f"{self._service} is not called for another {seconds:.0f} s.")
        return CircuitOpen(f"{self._service} is being tested with one request.")

    def _close(self, seconds: float) -> None:
        if (until := self._clock() + seconds) > self._closed_until:
            self._closed_until, self._closed_for = until, seconds

    def _recovered(self) -> None:
        if self.rests:
            self._closed_until = float("-inf")
        self._failures = self.rests = 0
        self._failed.clear()

    def _fail(self, request: int, started: float, *, silent: bool) -> None:
        """Count a failure, unless the request was already running when the last one failed: that is one outage."""
        self._failed.add(request)
        if started < self._failed_at:
            return
        self._failures += 1
        self._failed_at = self._clock()
        if self._failures >= FAILURES and len(self._failed) > 1:
            rest = min(REST_SECONDS * 2**self.rests, LONGEST_REST)
            if silent:  # another attempt would take as long as this one
                rest = max(rest, 2 * (self._failed_at - started))
            self._close(rest)
            self.rests += 1


class Pulse:
    """When a service last sent a token to anyone in this process, in seconds of the event loop's clock."""

    def __init__(self) -> None:
        self.last = float("-inf")


class Spacing:
    """Spaces out the starts of requests to one service."""

    _free_at = float("-inf")

    async def turn(self, per_minute: int | None) -> None:
        """Wait until a request may start: 60 / `per_minute` seconds after the previous one, at once when None."""
        if per_minute is None:
            return
        now = time.monotonic()
        start = max(now, self._free_at)
        self._free_at = start + 60 / per_minute  # before the wait, so that the next request waits longer
        await asyncio.sleep(start - now)


_slots: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[int, asyncio.Semaphore]] = WeakKeyDictionary()


@cache
def circuit_of(service: str) -> Circuit:
    """Return the circuit of a service, the same for the whole process."""
    return Circuit(service)


@cache
def pulse_of(service: str) -> Pulse:
    """Return the pulse of a service, the same for the whole process."""
    return Pulse()


@cache
def spacing_of(service: str) -> Spacing:
    """Return the spacing of requests to a service, the same for the whole process."""
    return Spacing()


def slots(at_once: int) -> asyncio.Semaphore:
    """Return the semaphore that limits the calls in progress, one for each event loop and limit."""
    return _slots.setdefault(asyncio.get_running_loop(), {}).setdefault(at_once, asyncio.Semaphore(at_once))

"""How often and how much at once somebody may ask of this server. Kept in memory, so each server counts for itself."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Hashable

from fathom.errors import TooManyRequests

MOST_KNOWN = 10_000
STREAMS = 50
"""Event streams that a caller may have open at once on one server."""


class Rates:
    """A bucket of requests for each caller: a minute's worth at once, refilled evenly."""

    def __init__(self) -> None:
        self._buckets: dict[Hashable, tuple[float, float]] = {}  # what is left, and when it was counted
        self._streams: Counter[str] = Counter()  # open ones, by the name of the caller

    def take(self, key: Hashable, per_minute: int) -> None:
        """Count a request.

        Raises:
            TooManyRequests: there were too many.
        """
        now = time.monotonic()
        left, at = self._buckets.pop(key, (float(per_minute), now))
        left = min(float(per_minute), left + (now - at) * per_minute / 60)
        self._buckets[key] = (max(0.0, left - 1 if left >= 1 else left), now)
        if len(self._buckets) > MOST_KNOWN:  # the one that was used longest ago is the first
            del self._buckets[next(iter(self._buckets))]
        if left < 1:
            raise TooManyRequests(
                f"There were more than {per_minute} requests in a minute.", retry_after=(1 - left) * 60 / per_minute
            )

    def left(self, key: Hashable, per_minute: int) -> int:
        """Return how many requests can be made at once now."""
        left, at = self._buckets.get(key, (float(per_minute), time.monotonic()))
        return int(min(float(per_minute), left + (time.monotonic() - at) * per_minute / 60))

    def check_stream(self, name: str) -> None:
        """Check that a caller may open another event stream.

        Raises:
            TooManyRequests: enough are open.
        """
        if self._streams[name] >= STREAMS:
            raise TooManyRequests(f"{STREAMS} event streams are open already.", retry_after=10)

    def opened(self, name: str) -> None:
        """Count an event stream of a caller."""
        self._streams[name] += 1

    def closed(self, name: str) -> None:
        """Count it no longer."""
        self._streams[name] -= 1
        if not self._streams[name]:
            del self._streams[name]

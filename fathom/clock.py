"""The clocks that the engine reads: the time of day, seconds since some moment, and the same while a machine sleeps.

They are in one place so that the simulator of this repository can put its own in their place.
"""

from __future__ import annotations

import sys
import time
from datetime import UTC, datetime


class Clock:
    """The clocks of the machine."""

    def now(self) -> datetime:
        """Return the time of day, in UTC; it may jump."""
        return datetime.now(UTC)

    def monotonic(self) -> float:
        """Return seconds that only go forward, and may stop while the machine sleeps."""
        return time.monotonic()

    def uptime(self) -> float:
        """Return seconds that go on while the process or the machine is suspended."""
        return time.clock_gettime(time.CLOCK_BOOTTIME) if sys.platform == "linux" else time.monotonic()


_machine = _clock = Clock()


def use(clock: Clock | None) -> None:
    """Read other clocks from now on; None: the machine's."""
    global _clock  # noqa: PLW0603 - one for the process, as the machine's is
    _clock = clock or _machine


def now() -> datetime:
    """Return the time of day, in UTC."""
    return _clock.now()


def monotonic() -> float:
    """Return seconds that only go forward, and may stop while the machine sleeps."""
    return _clock.monotonic()


def uptime() -> float:
    """Return seconds that go on while the process or the machine is suspended."""
    return _clock.uptime()

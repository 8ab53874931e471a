"""Second and third attempts at a vendor that may only be having a bad moment."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TypeVar

from fathom.errors import ToolError, ToolTimeout

ATTEMPTS = 3
ATTEMPT_SECONDS = 30.0
FIRST_PAUSE = 1.0
LONGEST_PAUSE = 30.0

T = TypeVar("T")


async def retrying(attempt: Callable[[], Awaitable[T]]) -> T:
    """Make up to three attempts of 30 seconds each, 1 and 2 seconds or the vendor's Retry-After apart.

    Raises:
        ToolError: it cannot be tried again, the attempts are used up, or the vendor asks for more than 30 seconds.
    """
    pause = FIRST_PAUSE
    for _ in range(ATTEMPTS - 1):
        try:
            return await _in_time(attempt)
        except ToolError as error:
            wait = pause if error.retry_after is None else error.retry_after
            if not error.retryable or wait > LONGEST_PAUSE:
                raise
        await asyncio.sleep(wait)
        pause *= 2
    return await _in_time(attempt)


async def _in_time(attempt: Callable[[], Awaitable[T]]) -> T:
    try:
        async with asyncio.timeout(ATTEMPT_SECONDS):
            return await attempt()
    except TimeoutError as error:
        raise ToolTimeout(f"No answer within {ATTEMPT_SECONDS:g} seconds.") from error


def seconds_to_wait(retry_after: str | None) -> float | None:
    """Read a Retry-After header, which is a number of seconds or a date; None when it is neither."""
    if not retry_after:
        return None
    try:
        return max(0.0, float(retry_after))
    except ValueError:
        pass
    try:
        return max(0.0, (parsedate_to_datetime(retry_after) - datetime.now(UTC)).total_seconds())
    except (ValueError, TypeError):  # no date, or one without a time zone
        return None

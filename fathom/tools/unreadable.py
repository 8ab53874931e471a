"""The pages that could not be read in a run: none is asked for again and again.

One that can never be read, because it is gone or is no text, is asked for by one call only; one that failed for a
passing reason, such as a server that was busy, by two.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import AsyncExitStack, asynccontextmanager

from fathom.errors import FathomError, ToolError
from fathom.text.urls import canonical_url

MOST_CALLS = 2  # that ask for a page which fails for a passing reason


class Unreadable:
    """The pages that calls of one run could not read, by address, and why."""

    def __init__(self) -> None:
        self._errors: dict[str, list[FathomError]] = {}
        self._locks: dict[str, asyncio.Lock] = {}

    @asynccontextmanager
    async def turn(self, urls: Iterable[str]) -> AsyncIterator[None]:
        """Let calls that read the same pages do so one after the other, so that each knows what failed before."""
        pages = sorted({canonical_url(url) for url in urls})  # in one order, so that no two wait for each other
        async with AsyncExitStack() as held:
            for page in pages:
                await held.enter_async_context(self._locks.setdefault(page, asyncio.Lock()))
            yield

    def why(self, url: str) -> FathomError | None:
        """Return why a page is not asked for any more; None if it may be."""
        errors = self._errors.get(canonical_url(url), [])
        given_up = errors and (not errors[-1].retryable or len(errors) >= MOST_CALLS)
        return errors[-1] if given_up else None

    def add(self, url: str, error: FathomError) -> None:
        """Keep that a page could not be read, unless only the money for it was lacking."""
        if isinstance(error, ToolError):
            self._errors.setdefault(canonical_url(url), []).append(error)

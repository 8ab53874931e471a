"""Politeness: robots.txt is obeyed, and no host gets requests too often or several at once."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from fathom.errors import ToolRejected, ToolUnavailable
from fathom.network import user_agent
from fathom.storage.cache import TimedCache
from fathom.tools.fetch.allow import AllowList
from fathom.tools.fetch.client import Client, follow

if TYPE_CHECKING:
    import httpx
    from protego import Protego

MAX_ROBOTS_BYTES = 500 * 1024  # which RFC 9309 asks crawlers to read
APART_SECONDS = 1.0


class Turns:
    """Lets requests to a host run one after another, and starts them at least a second apart."""

    def __init__(self) -> None:
        self._doors: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._free_at: dict[str, float] = {}

    @asynccontextmanager
    async def turn(self, host: str) -> AsyncIterator[None]:
        """Wait for a turn with a host; it lasts as long as the block."""
        async with self._doors[host]:
            clock = asyncio.get_running_loop().time
            await asyncio.sleep(max(0.0, self._free_at.get(host, 0.0) - clock()))
            self._free_at[host] = clock() + APART_SECONDS
            yield


class Robots:
    """What the robots.txt of hosts allows; each is requested once an hour."""

    def __init__(self, client: Client, allowed: AllowList, cache: TimedCache) -> None:
        self._client = client
        self._allowed = allowed
        self._cache = cache
        self._rules: dict[str, Protego] = {}
        self._asking: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    async def check(self, url: httpx.URL) -> None:
        """Check that a URL may be read.

        Raises:
            ToolRejected: its host forbids it.
            ToolUnavailable: robots.txt cannot be read, which RFC 9309 treats as a refusal.
        """
        from protego import Protego

        origin = f"{url.scheme}://{url.netloc.decode('ascii')}"
        async with self._asking[origin]:
            if origin not in self._rules:
                self._rules[origin] = Protego.parse(await self._text(f"{origin}/robots.txt"))
        if not self._rules[origin].can_fetch(str(url), user_agent()):
            raise ToolRejected(f"The robots.txt of {url.host[:100]} does not allow reading this page.")

    async def _text(self, address: str) -> str:
        if (stored := self._cache.get(address)) is not None:
            return stored
        answer = await follow(address, self._allowed, lambda url: self._client.get(url, cut_at=MAX_ROBOTS_BYTES))
        if answer and (answer.status >= 500 or answer.status == 429):
            raise ToolUnavailable(f"{address[:200]} answered {answer.status}.")
        # Any other failure means that there are no rules (RFC 9309, 2.3.1.3).
        text = answer.data.decode("utf-8", "replace") if answer and answer.status == 200 else ""
        self._cache.put(address, text)
        return text

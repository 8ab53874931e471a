"""The way to pages: permission, turn, request, redirect, and the same again; and the pages kept for a while."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from fathom.errors import ToolError, ToolRejected
from fathom.storage.cache import TimedCache
from fathom.tools.fetch.allow import AllowList, check_url
from fathom.tools.http import raise_status, retrying
from fathom.tools.pages import WebPage

if TYPE_CHECKING:
    import httpcore

    from fathom.tools.fetch.client import Answer, Client, TimeAllowance
    from fathom.tools.fetch.page import Page
    from fathom.tools.fetch.politeness import Robots, Turns

MAX_REDIRECTS = 5
AT_ONCE = 4  # pages of one call; a large one takes a process and its memory


class WebReader:
    """Reads pages by itself, from hosts that may be read.

    Args:
        allowed: private hosts that may be read.
        cache: where pages and robots.txt are kept for a while.
        network: opens the connections; by default one that reaches permitted addresses only.
    """

    name = "fetch"

    def __init__(
        self, allowed: AllowList, cache: TimedCache, network: httpcore.AsyncNetworkBackend | None = None
    ) -> None:
        self._allowed = allowed
        self._cache = cache
        self._network = network

    async def page(self, url: str) -> WebPage:
        """Read one page.

        Raises:
            ToolRejected: it cannot be read however often it is asked for.
            ToolError: it failed to arrive.
        """
        from fathom.tools.fetch.page import Page

        key = f"page {url} {self._allowed}"  # what one run may read, another may not
        kept = self._cache.load(key, Page)
        page = kept or await self._read(url)
        since = self._cache.since(key) if kept else ""
        if not kept:
            self._cache.put(key, page.model_dump_json())
        return WebPage(url=url, title=page.title, published=page.published, whole=page.text, kept_since=since)

    async def read(self, urls: Sequence[str]) -> tuple[list[WebPage], dict[str, ToolError]]:
        """Read several pages, and say why others cannot be read."""
        places = asyncio.Semaphore(AT_ONCE)

        async def attempt(url: str) -> WebPage | ToolError:
            async with places:
                try:
                    return await self.page(url)
                except ToolError as error:
                    return type(error)(f"{url}: {error.message}", next_step=error.next_step)

        answers = dict(zip(urls, await asyncio.gather(*map(attempt, urls)), strict=True))
        failed = {url: answer for url, answer in answers.items() if isinstance(answer, ToolError)}
        return [answer for answer in answers.values() if isinstance(answer, WebPage)], failed

    @cached_property
    def _client(self) -> Client:
        from fathom.tools.fetch.client import Client
        from fathom.tools.fetch.network import GuardedBackend

        return Client(self._network or GuardedBackend(self._allowed))

    @cached_property
    def _robots(self) -> Robots:
        from fathom.tools.fetch.politeness import Robots

        return Robots(self._client, self._allowed, self._cache)

    @cached_property
    def _turns(self) -> Turns:
        from fathom.tools.fetch.politeness import Turns

        return Turns()

    async def _read(self, url: str) -> Page:
        from fathom.tools.fetch.client import TimeAllowance
        from fathom.tools.fetch.isolation import read_apart

        time = TimeAllowance()
        answer = await retrying(lambda: self._arrive(url, time))
        return await read_apart(answer)

    async def _arrive(self, address: str, time: TimeAllowance) -> Answer:
        """Follow at most five redirects to an answer with a page."""
        url = check_url(address, self._allowed)
        for _ in range(MAX_REDIRECTS + 1):
            async with time.spend():
                await self._robots.check(url)
            async with self._turns.turn(url.host), time.spend():
                answer = await self._client.get(url)
            if (target := answer.redirect) is None:
                raise_status(answer.url.host[:100], answer.status, answer.headers)
                return answer
            url = check_url(target, self._allowed)
        raise ToolRejected(f"The page redirects more than {MAX_REDIRECTS} times.")

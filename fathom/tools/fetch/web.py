"""Reading pages: permission, turn, request and redirect for each; and the pages kept for a while."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

import httpcore
import httpx

from fathom.errors import FathomError, ToolRejected
from fathom.storage.cache import TimedCache
from fathom.tools.fetch.allow import AllowList
from fathom.tools.fetch.client import MAX_REDIRECTS, Answer, Client, TimeAllowance, follow
from fathom.tools.fetch.network import GuardedBackend
from fathom.tools.fetch.page import Page, read_page
from fathom.tools.fetch.politeness import Robots, Turns
from fathom.tools.http import raise_status, retrying
from fathom.tools.pages import WebPage, read_each

AT_ONCE = 4  # pages of one call; a large one takes a process and its memory


class WebReader:
    """Reads pages without a vendor, by default from permitted addresses only; they are kept for a while."""

    name = "fetch"

    def __init__(
        self, allowed: AllowList, cache: TimedCache, network: httpcore.AsyncNetworkBackend | None = None
    ) -> None:
        self._allowed = allowed
        self._cache = cache
        self._client = Client(network or GuardedBackend(allowed))
        self._robots = Robots(self._client, allowed, cache)
        self._turns = Turns()

    async def page(self, url: str) -> WebPage:
        """Read one page.

        Raises:
            ToolRejected: it can never be read.
            ToolError: reading it failed this time.
        """
        key = f"page {url} {self._allowed}"  # what one run may read, another may not
        page = self._cache.load(key, Page)
        since = self._cache.since(key) if page else ""
        if not page:
            time = TimeAllowance()
            answer = await retrying(lambda: self._request(url, time))
            page = await asyncio.to_thread(read_page, answer)
            self._cache.put(key, page.model_dump_json())
        return WebPage(url=url, title=page.title, published=page.published, whole=page.text, kept_since=since)

    async def read(self, urls: Sequence[str]) -> tuple[list[WebPage], Mapping[str, FathomError]]:
        """Read several pages; also return, by URL, why others cannot be read."""
        return await read_each(urls, self.page, AT_ONCE)

    async def _request(self, address: str, time: TimeAllowance) -> Answer:

        async def ask(url: httpx.URL) -> Answer:
            async with time.spend():
                await self._robots.check(url)
            async with self._turns.turn(url.host), time.spend():
                return await self._client.get(url)

        if (answer := await follow(address, self._allowed, ask)) is None:
            raise ToolRejected(f"The page redirects more than {MAX_REDIRECTS} times.")
        raise_status(answer.url.host[:100], answer.status, answer.headers)
        return answer

"""Reading pages: permission, turn, request and redirect for each; and the pages kept for a while.

Of a page that is gone, the archived copy is read, and its reference says so.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import httpcore
import httpx

from fathom.errors import ToolError, ToolRejected
from fathom.models import Bibliographic
from fathom.storage.cache import TimedCache
from fathom.tools.fetch.allow import AllowList, check_url
from fathom.tools.fetch.archive import Archive, PageGone
from fathom.tools.fetch.client import MAX_REDIRECTS, Answer, Client, TimeAllowance, follow
from fathom.tools.fetch.network import GuardedBackend, UnknownHost
from fathom.tools.fetch.page import Page, read_page
from fathom.tools.fetch.politeness import Robots, Turns
from fathom.tools.http import raise_status, retrying
from fathom.tools.pages import WebPage

AT_ONCE = 4  # pages of one call; a large one takes a process and its memory


class WebReader:
    """Reads pages without a vendor, by default from permitted addresses only; they are kept for a while."""

    name = "fetch"

    def __init__(
        self,
        allowed: AllowList,
        cache: TimedCache,
        network: httpcore.AsyncNetworkBackend | None = None,
        *,
        archive: str = "",
        contact: str = "",
    ) -> None:
        self._allowed = allowed
        self._cache = cache
        self._client = Client(network or GuardedBackend(allowed), contact)
        self._robots = Robots(self._client, allowed, cache)
        self._turns = Turns()
        self._archive = Archive(self._client, allowed, archive) if archive else None

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
            page = await self._read(url)
            self._cache.put(key, page.model_dump_json())
        copy = Bibliographic(full_text=page.archived, archived=page.archived_on) if page.archived else None
        return WebPage(
            url=url, title=page.title, published=page.published, whole=page.text, reference=copy, kept_since=since
        )

    async def read(self, urls: Sequence[str]) -> tuple[list[WebPage], dict[str, ToolError]]:
        """Read several pages; also return, by URL, why others cannot be read."""
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

    async def _read(self, url: str) -> Page:
        time = TimeAllowance()
        try:
            return await asyncio.to_thread(read_page, await retrying(lambda: self._request(url, time)))
        except (PageGone, UnknownHost):
            if not self._archive or not (copy := await self._copy(self._archive, url)):
                raise
            return copy

    async def _copy(self, archive: Archive, url: str) -> Page | None:
        """Return the archived copy of a page, if there is one that can be read.

        The archive gives its address to be read, so no robots.txt is asked. It may lead on to the copy of another day.
        """
        if not (address := await archive.copy_of(check_url(url, self._allowed))):
            return None
        time = TimeAllowance()

        async def ask(url: httpx.URL) -> Answer:
            async with self._turns.turn(url.host), time.spend():
                return await self._client.get(url)

        try:
            answer = await follow(address, self._allowed, ask)
            if answer and answer.status == 200 and (day := archive.day_of(str(answer.url))):
                page = await asyncio.to_thread(read_page, answer)
                return page.model_copy(update={"archived": str(answer.url), "archived_on": day})
        except ToolError:
            pass
        return None

    async def _request(self, address: str, time: TimeAllowance) -> Answer:

        async def ask(url: httpx.URL) -> Answer:
            async with time.spend():
                await self._robots.check(url)
            async with self._turns.turn(url.host), time.spend():
                return await self._client.get(url)

        if (answer := await follow(address, self._allowed, ask)) is None:
            raise ToolRejected(f"The page redirects more than {MAX_REDIRECTS} times.")
        if answer.status in (404, 410):
            raise PageGone(f"{answer.url.host[:100]} answered {answer.status}.")
        raise_status(answer.url.host[:100], answer.status, answer.headers)
        return answer

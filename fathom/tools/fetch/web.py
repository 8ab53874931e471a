"""Reading pages: permission, turn, request and redirect for each; and the pages kept for a while.

Of a page that is gone, the archived copy is read, and its reference says so.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

import httpcore
import httpx

from fathom.errors import FathomError, ToolError, ToolRejected
from fathom.models import Bibliographic
from fathom.storage.cache import TimedCache
from fathom.tools.fetch.allow import AllowList, check_url
from fathom.tools.fetch.archive import Archive, PageGone
from fathom.tools.fetch.client import MAX_REDIRECTS, Answer, Client, TimeAllowance, follow
from fathom.tools.fetch.network import GuardedBackend, UnknownHost
from fathom.tools.fetch.page import FEW_WORDS, Page, made_by_script, read_page
from fathom.tools.fetch.politeness import Robots, Turns
from fathom.tools.fetch.render import Renderer
from fathom.tools.http import raise_status, retrying
from fathom.tools.pages import WebPage, read_each

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
        renderer: Renderer | str = "",
    ) -> None:
        self._allowed = allowed
        self._cache = cache
        self._client = Client(network or GuardedBackend(allowed), contact)
        self._robots = Robots(self._client, allowed, cache)
        self._turns = Turns()
        self._archive = Archive(self._client, allowed, archive) if archive else None
        self._renderer = renderer  # or why there is none

    async def page(self, url: str) -> WebPage:
        """Read one page.

        Raises:
            ToolRejected: it can never be read.
            ToolError: reading it failed this time.
        """
        # What one run may read, another may not; and one that has a browser reads more.
        key = f"page {url} {self._allowed}" + " rendered" * isinstance(self._renderer, Renderer)
        page = self._cache.load(key, Page)
        since = self._cache.since(key) if page else ""
        if not page:
            page = await self._read(url)
            self._cache.put(key, page.model_dump_json())
        copy = Bibliographic(full_text=page.archived, archived=page.archived_on) if page.archived else None
        return WebPage(
            url=url,
            title=page.title,
            published=page.published,
            whole=page.text,
            fields=page.fields,
            reference=copy,
            kept_since=since,
        )

    async def read(self, urls: Sequence[str]) -> tuple[list[WebPage], Mapping[str, FathomError]]:
        """Read several pages; also return, by URL, why others cannot be read."""
        return await read_each(urls, self.page, AT_ONCE)

    async def _read(self, url: str) -> Page:
        time = TimeAllowance()
        try:
            return await self._text(await retrying(lambda: self._request(url, time)))
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

    async def _text(self, answer: Answer) -> Page:
        """Read the text of an answer; where scripts are to make it, in the browser."""
        page: Page | ToolRejected
        try:
            page = await asyncio.to_thread(read_page, answer)
        except ToolRejected as error:
            page = error
        said = page.text if isinstance(page, Page) else ""
        if not made_by_script(answer, said):
            return _page(page)
        if isinstance(self._renderer, str):
            if isinstance(page, ToolRejected) and self._renderer:
                raise ToolRejected("The page has no text until its scripts have run.", next_step=self._renderer)
            return _page(page)
        try:
            html = await self._renderer.render(answer, self._resource)
            opened = Answer(answer.url, 200, {"content-type": "text/html; charset=utf-8"}, html)
            rendered = await asyncio.to_thread(read_page, opened)
        except ToolError:
            if isinstance(page, Page) and len(page.text.split()) >= FEW_WORDS:
                return page
            raise
        return rendered if len(rendered.text) > len(said) else _page(page)

    async def _resource(self, address: str) -> Answer:
        """Request what a page in the browser loads. It may load many things at once: the page has had its turn."""

        async def ask(url: httpx.URL) -> Answer:
            await self._robots.check(url)
            return await self._client.get(url)

        if (answer := await follow(address, self._allowed, ask)) is None:
            raise ToolRejected(f"The page redirects more than {MAX_REDIRECTS} times.")
        return answer

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


def _page(read: Page | ToolRejected) -> Page:
    if isinstance(read, ToolRejected):
        raise read
    return read

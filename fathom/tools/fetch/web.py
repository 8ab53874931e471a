"""Reading pages: permission, turn, request and redirect for each, and the text of the answer.

If a page is gone, its archived copy is read, and the reference says so.

HTML, PDF and plain text are distinguished by the bytes, not by the server's media type. Parsers of HTML and PDF have no
reliable limits: ten megabytes of links take a minute and more than a gigabyte. So PDFs and large pages are read by a
separate process with 20 seconds and 2 GB.
"""

from __future__ import annotations

import asyncio
import codecs
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import httpcore
import httpx
from pydantic import BaseModel, ConfigDict

from fathom.errors import FathomError, ToolError, ToolRejected
from fathom.models import Bibliographic, CheckedLink
from fathom.storage.cache import TimedCache
from fathom.text.plain import clean_title
from fathom.tools.documents.header import published
from fathom.tools.documents.index import lay_out
from fathom.tools.documents.pool import read_apart
from fathom.tools.documents.readers import UnreadableFile, read_document
from fathom.tools.fetch.allow import AllowList, check_url
from fathom.tools.fetch.archive import Archive, PageGone
from fathom.tools.fetch.client import (
    MAX_REDIRECTS,
    Client,
    FetchedAnswer,
    GuardedBackend,
    Robots,
    TimeAllowance,
    Turns,
    UnknownHost,
    follow,
)
from fathom.tools.fetch.render import Renderer
from fathom.tools.http import raise_status, retrying
from fathom.tools.pages import WebPage, read_each
from fathom.tools.warc import keep_cached, kept_with

AT_ONCE = 4  # pages of one call; a large one takes a process and its memory
LINKS_SECONDS = 15.0  # in which the links of a report are checked; the others stay unknown


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
        key = self._key(url)
        page = self._cache.load(key, Page)
        since = self._cache.since(key) if page else ""
        if page:
            keep_cached(self._cache, key)
        else:
            with kept_with(self._cache, key):
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

    def _key(self, url: str) -> str:
        """Return the key of a page: runs differ in the pages that they may read, and one with a browser reads more."""
        return f"page {url} {self._allowed}" + " rendered" * isinstance(self._renderer, Renderer)

    async def link(self, url: str) -> CheckedLink | None:
        """Return whether an address leads to a page; None if its host has no address, or the network does not know it.

        A page that was read within the hour is not requested again; of others, only the beginning is read.
        """
        if self._cache.load(self._key(url), Page):
            return CheckedLink(state="works")

        async def ask(url: httpx.URL) -> FetchedAnswer:
            await self._robots.check(url)
            async with self._turns.turn(url.host):
                return await self._client.get(url, cut_at=1)

        try:
            answer = await follow(url, self._allowed, ask)
        except UnknownHost:
            return None
        except ToolError:
            return CheckedLink(state="unknown")
        if answer and answer.status in (404, 410):
            return await self.gone(url)
        return CheckedLink(state="works" if answer and answer.status < 400 else "unknown")

    async def gone(self, url: str) -> CheckedLink:
        """Return that a page is gone, with its archived copy, if there is one."""
        copy = await self._archive.copy_of(check_url(url, self._allowed)) if self._archive else ""
        return CheckedLink(
            state="gone", copy_url=copy, copied=self._archive.day_of(copy) if self._archive and copy else ""
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
        """Return the archived copy of a page, if there is a readable one.

        The archive itself gives the address, so robots.txt is not checked. It may redirect to the copy of another day.
        """
        if not (address := await archive.copy_of(check_url(url, self._allowed))):
            return None
        time = TimeAllowance()

        async def ask(url: httpx.URL) -> FetchedAnswer:
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

    async def _text(self, answer: FetchedAnswer) -> Page:
        """Read the text of an answer; if scripts make the text, in the browser."""
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
            opened = FetchedAnswer(answer.url, 200, {"content-type": "text/html; charset=utf-8"}, html)
            rendered = await asyncio.to_thread(read_page, opened)
        except ToolError:
            if isinstance(page, Page) and len(page.text.split()) >= FEW_WORDS:
                return page
            raise
        return rendered if len(rendered.text) > len(said) else _page(page)

    async def _resource(self, address: str) -> FetchedAnswer:
        """Request a resource that a page in the browser loads. It may load many at once: the page has had its turn."""

        async def ask(url: httpx.URL) -> FetchedAnswer:
            await self._robots.check(url)
            return await self._client.get(url)

        if (answer := await follow(address, self._allowed, ask)) is None:
            raise ToolRejected(f"The page redirects more than {MAX_REDIRECTS} times.")
        return answer

    async def _request(self, address: str, time: TimeAllowance) -> FetchedAnswer:

        async def ask(url: httpx.URL) -> FetchedAnswer:
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


async def check_links(reader: WebReader, urls: Sequence[str]) -> dict[str, CheckedLink]:
    """Return whether some addresses lead to pages.

    A host without an address is gone if any other link works; else the network may be missing.
    """
    found: dict[str, CheckedLink | None] = {}

    async def check(url: str) -> None:
        found[url] = await reader.link(url)

    with suppress(TimeoutError):
        async with asyncio.timeout(LINKS_SECONDS), asyncio.TaskGroup() as group:
            for url in urls:
                group.create_task(check(url))
    if any(link and link.state == "works" for link in found.values()):
        found |= {url: await reader.gone(url) for url, link in found.items() if link is None}
    return {url: found.get(url) or CheckedLink(state="unknown") for url in urls}


def _page(read: Page | ToolRejected) -> Page:
    if isinstance(read, ToolRejected):
        raise read
    return read


SECONDS = 20.0
SMALL = 256 * 1024  # bytes of HTML that any parser can read quickly
SCRIPTED_WORDS = 60  # words; a page with scripts and fewer words may be made by the scripts
FEW_WORDS = 20  # words from which it is read as it is if no browser can open it
_NO_TEXT = ("image/", "audio/", "video/", "font/")


class Page(BaseModel):
    """A page as text. `published` is an ISO 8601 date or time, empty when the page states none."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    title: str
    published: str
    text: str
    fields: dict[str, str] = {}  # of its header
    archived: str = ""  # the address of the copy that was read instead, because the page is gone
    archived_on: str = ""  # its day, in ISO 8601


def read_page(answer: FetchedAnswer) -> Page:
    """Read the body of an answer.

    Raises:
        ToolRejected: it is not text, holds none, or takes too long to read.
    """
    kind, charset = _content_type(answer.headers.get("content-type", ""))
    data = answer.data
    if data.startswith((b"PK\x03\x04", b"\x1f\x8b", b"BZh", b"\xfd7zXZ", b"7z\xbc\xaf", b"Rar!", b"MZ", b"\x7fELF")):
        raise ToolRejected("The page is an archive or a program.")
    if kind.startswith(_NO_TEXT) and not data.lstrip()[:1] == b"<":
        raise ToolRejected(f"The page is not text but {kind[:40]}.")
    is_pdf = b"%PDF-" in data[:1024]
    data = data if is_pdf else _as_utf8(data, charset)
    name, apart = f"page{_ending(kind, data)}", is_pdf or len(data) > SMALL
    try:
        document = read_apart(Path(name), data, SECONDS) if apart else lay_out(read_document(name, data))
    except UnreadableFile as error:
        raise ToolRejected(f"The page cannot be read: {error}.") from error
    stated = "" if is_pdf else published(data)
    return Page(title=clean_title(document.title), published=stated, text=document.text, fields=document.fields)


def made_by_script(answer: FetchedAnswer, text: str) -> bool:
    """Whether a page is HTML with scripts and next to no text: they may make it."""
    kind, _charset = _content_type(answer.headers.get("content-type", ""))
    few = len(text.split()) < SCRIPTED_WORDS and len(text) < 8 * SCRIPTED_WORDS
    return few and "html" in kind and re.search(rb"<script\b", answer.data, re.IGNORECASE) is not None


def _content_type(header: str) -> tuple[str, str]:
    kind, _, parameters = header.partition(";")
    charset = re.search(r"charset\s*=\s*[\"']?([\w.:-]{1,40})", parameters, re.IGNORECASE)
    return kind.strip().lower(), charset[1] if charset else ""


def _as_utf8(data: bytes, charset: str) -> bytes:
    """Return a text in UTF-8 if its server names another encoding; otherwise its bytes decide."""
    try:
        codec = codecs.lookup(charset).name if charset else "utf-8"
        if codec == "utf-8" or "escape" in codec:  # escapes are Python's own, and no page is written in them
            return data
        return data.decode(codec, "replace").encode("utf-8", "replace")
    except (LookupError, ValueError):  # unknown, or one of Python's own that is not a text encoding
        return data


def _ending(kind: str, data: bytes) -> str:
    if "html" in kind and b"<" in data[:1000]:
        return ".html"
    return ".md" if kind in ("text/markdown", "text/x-markdown") else ".txt"

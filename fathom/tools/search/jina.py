"""Jina: searching the web, and reading pages in full in a browser (https://jina.ai/reader)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Literal, Self

from fathom.errors import FathomError, ToolRejected, ToolUnavailable
from fathom.models import Received
from fathom.text.urls import canonical_url
from fathom.tools.base import ANYWHERE, RunContext, SearchLimits
from fathom.tools.http import retrying
from fathom.tools.pages import WebPage, read_each, remembered
from fathom.tools.search.keyed import KeyedVendor, Plain, Text

READER = "https://r.jina.ai"
_TOKEN = Decimal("0.05") / 1_000_000  # https://jina.ai/reader: $50 for a billion
_PAGE_TOKENS = 100_000  # the reader refuses to read a page that takes more
_AT_ONCE = 4


class _Usage(Received):
    tokens: int = _PAGE_TOKENS


class _Page(Received):
    url: Text = ""
    title: Plain = ""
    description: Plain = ""
    content: Text = ""
    date: Text = ""  # in a search
    publishedTime: Text = ""  # of a page that was read
    usage: _Usage | None = None


class _Search(Received):
    code: Literal[200]
    data: list[_Page]


class _Read(Received):
    code: Literal[200]
    data: _Page


class Jina(KeyedVendor):
    """Searches without scores, and reads pages, which are kept for a while."""

    name = "Jina"
    variables = ("JINA_API_KEY",)
    optional = ("JINA_SEARCH_URL", "JINA_READER_URL")
    setup = "JINA_API_KEY (keys: https://jina.ai)"
    api = "https://s.jina.ai"
    usd = 10_000 * _TOKEN  # what a search without the texts of the pages takes

    def __init__(self, run: RunContext) -> None:
        super().__init__(run.variable("JINA_API_KEY"), run.variable("JINA_SEARCH_URL") or self.api)
        self._reader = (run.variable("JINA_READER_URL") or READER).rstrip("/")
        self._run = run

    @classmethod
    def open(cls, run: RunContext) -> Self:
        """Use the user's key, at the public services unless variables name other addresses."""
        return cls(run)

    async def search(self, query: str, limit: int, within: SearchLimits = ANYWHERE) -> list[WebPage]:
        """Return the pages it finds."""
        try:
            found = await self.ask(
                _Search, "/", params={"q": query, "num": limit}, headers={"X-Respond-With": "no-content"}
            )
        except ToolRejected as error:
            if error.status == 422:  # how it says that there are none
                return []
            raise
        return [
            WebPage(url=page.url, title=page.title, published=page.date, excerpt=page.description)
            for page in found.data[:limit]
        ]

    async def read(self, urls: Sequence[str]) -> tuple[list[WebPage], Mapping[str, FathomError]]:
        """Return the pages it can read, and why it cannot read others."""
        return await read_each(urls, self._page, _AT_ONCE)

    async def _page(self, url: str) -> WebPage:
        search_budget, headers = self._run.search_budget, {"X-Token-Budget": str(_PAGE_TOKENS)}

        async def ask() -> list[WebPage]:
            answer = await retrying(
                lambda: search_budget.pay(
                    "read:jina",
                    search_budget.price("jina", _PAGE_TOKENS * _TOKEN, search=False),
                    lambda: self.ask(_Read, "/", body={"url": url}, address=self._reader, headers=headers),
                    lambda answer: (answer.data.usage or _Usage()).tokens * _TOKEN,
                )
            )
            page = answer.data
            if not page.content.strip():
                raise ToolUnavailable("no text")
            return [WebPage(url=url, title=page.title, published=page.publishedTime, whole=page.content)]

        return (await remembered(self._run.pages, f"jina {self._reader} {canonical_url(url)}", ask))[0]

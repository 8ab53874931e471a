"""Tavily: searching the web, and reading pages in full."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Self

from fathom.errors import ToolError, ToolUnavailable
from fathom.models import Received
from fathom.storage.cache import TimedCache
from fathom.text.plain import clean_line
from fathom.text.urls import canonical_url
from fathom.tools.base import ANYWHERE, RunContext, SearchLimits, SearchVendor
from fathom.tools.http import ATTEMPT_SECONDS, request, retrying
from fathom.tools.pages import Score, WebPage, is_page
from fathom.tools.payment import SearchBudget
from fathom.tools.search.keyed import shortened
from fathom.tools.warc import keep_cached, kept_with

if TYPE_CHECKING:
    import httpx

API = "https://api.tavily.com"
MAX_QUERY_CHARS = 400  # Tavily refuses longer ones
_CREDIT = Decimal("0.008")  # https://docs.tavily.com/documentation/api-credits
_PAGES_A_CREDIT = 5
_REMEDIES = dict.fromkeys(
    (401, 403, 432, 433),  # 432 and 433: the plan's or the key's limit is used up
    "check TAVILY_API_KEY and the limits of its plan",
)


class _Page(Received):
    """A page of a search or of an extraction, which has fewer fields."""

    url: str | None = None
    title: str | None = None
    content: str | None = None
    raw_content: str | None = None
    score: Score = 0.0
    published_date: str | None = None


class _Unread(Received):
    url: str | None = None
    error: str | None = None


class _Answer(Received):
    results: list[_Page]
    failed_results: list[_Unread] = []


class Tavily(SearchVendor):
    """Searches and reads pages, which are kept for a while."""

    name = "Tavily"
    variables = ("TAVILY_API_KEY",)
    optional = ("TAVILY_BASE_URL",)
    setup = "TAVILY_API_KEY (keys: https://tavily.com)"
    usd = _CREDIT
    limits = ("dates",)

    def __init__(self, key: str, address: str, pages: TimedCache, search_budget: SearchBudget | None = None) -> None:
        self._key = key
        self.address = address
        self._pages = pages
        self._search_budget = search_budget or SearchBudget()

    @classmethod
    def open(cls, run: RunContext) -> Self:
        """Use the user's key, at the public service unless TAVILY_BASE_URL names another."""
        return cls(run.variable("TAVILY_API_KEY"), run.variable("TAVILY_BASE_URL") or API, run.pages, run.search_budget)

    async def search(self, query: str, limit: int, within: SearchLimits = ANYWHERE) -> list[WebPage]:
        """Return the pages it finds, with their whole text where it has that; a long query is cut at a word."""
        asked = {"query": shortened(query, MAX_QUERY_CHARS), "max_results": limit, "include_raw_content": "markdown"}
        dates = {"start_date": within.since, "end_date": within.until}
        answer = await self._ask("/search", asked | {name: date for name, date in dates.items() if date})
        return [_web_page(page) for page in answer.results]

    async def read(self, urls: Sequence[str]) -> tuple[list[WebPage], dict[str, ToolError]]:
        """Return the pages it can read, at most 20, and why it cannot read others."""
        kept = {url: page for url in urls if (page := self._pages.load(self._page_key(url), WebPage))}
        pages = [
            page.model_copy(update={"kept_since": self._pages.since(self._page_key(url))}) for url, page in kept.items()
        ]
        for url in kept:
            keep_cached(self._pages, self._page_key(url))
        if not (wanted := [url for url in urls if url not in kept]):
            return pages, {}

        def ask() -> Awaitable[_Answer]:
            return self._ask("/extract", {"urls": wanted, "format": "markdown", "timeout": ATTEMPT_SECONDS})

        price = self._search_budget.price("tavily", _CREDIT / _PAGES_A_CREDIT, search=False) or Decimal(0)
        with kept_with(self._pages, *map(self._page_key, wanted)):
            answer = await retrying(
                lambda: self._search_budget.pay(
                    "read:tavily", price * len(wanted), ask, lambda answer: price * len(answer.results)
                )
            )
        read = {canonical_url(page.url): page for page in map(_web_page, answer.results) if is_page(page.url)}
        reasons = {
            canonical_url(page.url): clean_line(page.error or "")[:200]
            for page in answer.failed_results
            if page.url and is_page(page.url)
        }
        failed: dict[str, ToolError] = {}
        for url in wanted:
            if (page := read.get(canonical_url(url))) and page.whole:
                pages.append(page)
                self._pages.put(self._page_key(url), page.model_dump_json())
            else:
                failed[url] = ToolUnavailable(f"{url}: {reasons.get(canonical_url(url)) or 'no text'}")
        return pages, failed

    def _page_key(self, url: str) -> str:
        return f"extract {self.address} {canonical_url(url)}"

    async def _ask(self, path: str, body: Mapping[str, object]) -> _Answer:
        return await request(
            self.name,
            f"{self.address.rstrip('/')}{path}",
            lambda answer: _Answer.model_validate(answer.json()),
            body=body,
            headers={"Authorization": f"Bearer {self._key}"},
            remedies=_REMEDIES,
            detail=_detail,
        )


def _web_page(page: _Page) -> WebPage:
    """Return a page; an extraction names no title, so its first heading is taken."""
    text = page.raw_content or ""
    heading = next((line.lstrip("# ") for line in text.splitlines() if line.startswith("# ")), "")
    return WebPage(
        url=page.url or "",
        title=page.title or heading,
        published=page.published_date or "",
        score=page.score,
        excerpt=page.content or "",
        whole=text,
    )


def _detail(response: httpx.Response) -> str:
    try:
        detail = response.json()["detail"]
    except (ValueError, KeyError, TypeError):
        return ""
    text = detail.get("error") if isinstance(detail, dict) else detail
    return clean_line(text)[:200] if isinstance(text, str) else ""

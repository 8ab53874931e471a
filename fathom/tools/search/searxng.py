"""SearXNG, a search engine of one's own that asks many others.

Its JSON interface is off until the instance's `settings.yml` lists `json` among `search.formats`; until then it answers
403. It returns excerpts only, as many as it likes, and says which engines did not answer.
"""

from __future__ import annotations

from pydantic import BaseModel

from fathom.errors import ToolUnavailable
from fathom.storage.cache import TimedCache
from fathom.text.cleaning import clean_line
from fathom.tools.http import ATTEMPT_SECONDS, retrying
from fathom.tools.search.vendors import Score, WebPage, raise_status, remembered, tls, vendor_errors

_REFUSED = {403: "add json to search.formats in the settings.yml of the instance that SEARXNG_URL names"}


class _Found(BaseModel):
    url: str | None = None
    title: str | None = None
    content: str | None = None
    publishedDate: str | None = None
    score: Score = 0.0


class _Search(BaseModel):
    results: list[_Found]
    unresponsive_engines: list[list[str]] = []  # name and reason of each


class SearXNG:
    """Searches through an instance.

    Args:
        address: of the instance.
        searches: where answers are kept for a while.
    """

    name = "SearXNG"

    def __init__(self, address: str, searches: TimedCache) -> None:
        self._address = address
        self._searches = searches

    async def search(self, query: str, most: int) -> list[WebPage]:
        """Return the best of the pages it finds."""
        key = f"search {self._address} {query}"
        pages = await remembered(self._searches, key, lambda: retrying(lambda: self._ask(query)))
        return sorted(pages, key=lambda page: -page.score)[:most]

    async def _ask(self, query: str) -> list[WebPage]:
        import httpx

        from fathom.tools.fetch.client import user_agent

        headers = {"User-Agent": user_agent()}
        with vendor_errors(self.name):
            async with httpx.AsyncClient(
                base_url=self._address, headers=headers, verify=tls(), timeout=ATTEMPT_SECONDS
            ) as http:
                response = await http.get("search", params={"q": query, "format": "json"})
            raise_status(self.name, response, "", _REFUSED)
            answer = _Search.model_validate(response.json())
        if answer.unresponsive_engines and not answer.results:
            reasons = ", ".join(": ".join(engine) for engine in answer.unresponsive_engines)
            raise ToolUnavailable(f"No engine of SearXNG answered ({clean_line(reasons)[:200]}).")
        return [
            WebPage(
                url=page.url or "",
                title=page.title or "",
                published=page.publishedDate or "",
                score=page.score,
                excerpt=page.content or "",
            )
            for page in answer.results
        ]

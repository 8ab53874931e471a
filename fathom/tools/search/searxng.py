"""SearXNG, a search engine to run yourself that asks many others.

Its JSON interface is off until the instance's `settings.yml` lists `json` among `search.formats`; until then it answers
403. It returns excerpts only, as many as it likes, and says which engines did not answer.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Self

from fathom.errors import ToolUnavailable
from fathom.models import Received
from fathom.text.plain import clean_line
from fathom.tools.base import ANYWHERE, RunContext, SearchLimits, SearchVendor
from fathom.tools.http import request
from fathom.tools.pages import Score, WebPage

_REMEDIES = {403: "add json to search.formats in the settings.yml of the instance that SEARXNG_URL names"}


class _Found(Received):
    url: str | None = None
    title: str | None = None
    content: str | None = None
    publishedDate: str | None = None
    score: Score = 0.0


class _Search(Received):
    results: list[_Found]
    unresponsive_engines: list[list[str]] = []  # name and reason of each


class SearXNG(SearchVendor):
    """Searches through the instance at an address."""

    name = "SearXNG"
    variables = ("SEARXNG_URL",)
    limits = ("safe",)
    setup = "SEARXNG_URL to the address of your own instance"
    usd = Decimal(0)

    def __init__(self, address: str) -> None:
        self.address = address

    @classmethod
    def open(cls, run: RunContext) -> Self:
        """Search through the user's instance."""
        return cls(run.variable("SEARXNG_URL"))

    async def search(self, query: str, limit: int, within: SearchLimits = ANYWHERE) -> list[WebPage]:
        """Return the best of the pages it finds."""
        answer = await request(
            self.name,
            f"{self.address.rstrip('/')}/search",
            lambda response: _Search.model_validate(response.json()),
            params={"q": query, "format": "json", **({"safesearch": "2"} if within.safe else {})},
            remedies=_REMEDIES,
        )
        if answer.unresponsive_engines and not answer.results:
            reasons = ", ".join(": ".join(engine) for engine in answer.unresponsive_engines)
            raise ToolUnavailable(f"No engine of SearXNG answered ({clean_line(reasons)[:200]}).")
        best = sorted(answer.results, key=lambda page: -page.score)[:limit]
        return [
            WebPage(
                url=page.url or "",
                title=page.title or "",
                published=page.publishedDate or "",
                score=page.score,
                excerpt=page.content or "",
            )
            for page in best
        ]

"""Perplexity: raw results, not its answers (https://docs.perplexity.ai/api-reference/search-post)."""

from __future__ import annotations

from decimal import Decimal

from fathom.models import Received
from fathom.tools.base import ANYWHERE, SearchLimits
from fathom.tools.pages import WebPage
from fathom.tools.search.keyed import KeyedVendor, Text

_MOST = 20  # results of a request


class _Found(Received):
    url: Text = ""
    title: Text = ""
    snippet: Text = ""
    date: Text = ""
    last_updated: Text = ""


class _Answer(Received):
    results: list[_Found]


class Perplexity(KeyedVendor):
    """Searches with long excerpts, where it is named; the answer has no scores."""

    name = "Perplexity"
    variables = ("PERPLEXITY_API_KEY",)
    optional = ("PERPLEXITY_BASE_URL",)
    limits = ("dates", "region")
    setup = "PERPLEXITY_API_KEY (keys: https://www.perplexity.ai/settings/api)"
    only_named = True
    api = "https://api.perplexity.ai"
    usd = Decimal("0.005")  # https://docs.perplexity.ai/getting-started/pricing

    async def search(self, query: str, limit: int, within: SearchLimits = ANYWHERE) -> list[WebPage]:
        """Return the pages it finds, 20 at most."""
        body = {"query": query, "max_results": min(limit, _MOST), **within.named(region="country")}
        if within.period:
            body["search_after_date_filter"], body["search_before_date_filter"] = (
                f"{day:%m/%d/%Y}" for day in within.period
            )
        answer = await self.ask(_Answer, "/search", body=body)
        return [
            WebPage(url=page.url, title=page.title, published=page.date or page.last_updated, excerpt=page.snippet)
            for page in answer.results[:limit]
        ]

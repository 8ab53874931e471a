"""Linkup: passages for language models (https://docs.linkup.so)."""

from __future__ import annotations

from decimal import Decimal

from fathom.models import Received
from fathom.tools.base import ANYWHERE, SearchLimits
from fathom.tools.pages import WebPage
from fathom.tools.search.keyed import KeyedVendor, Text


class _Found(Received):
    type: Text = "text"
    url: Text = ""
    name: Text = ""
    content: Text = ""


class _Answer(Received):
    results: list[_Found]


class Linkup(KeyedVendor):
    """Searches with long excerpts; the answer has no scores and no dates."""

    name = "Linkup"
    variables = ("LINKUP_API_KEY",)
    optional = ("LINKUP_BASE_URL",)
    limits = ("dates",)
    setup = "LINKUP_API_KEY (keys: https://linkup.so)"
    api = "https://api.linkup.so"
    # 0.005 EUR for older accounts, https://docs.linkup.so/pages/documentation/platform/pricing
    usd = Decimal("0.00587")

    async def search(self, query: str, limit: int, within: SearchLimits = ANYWHERE) -> list[WebPage]:
        """Return the pages it finds, without images."""
        body = {"q": query, "depth": "standard", "outputType": "searchResults", "maxResults": limit}
        body |= within.named(since="fromDate", until="toDate")
        answer = await self.ask(_Answer, "/v1/search", body=body)
        pages = [page for page in answer.results if page.type == "text"]
        return [WebPage(url=page.url, title=page.name, excerpt=page.content) for page in pages[:limit]]

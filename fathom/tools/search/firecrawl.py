"""Firecrawl: Google's results, each page read in a browser (https://docs.firecrawl.dev/features/search)."""

from __future__ import annotations

from decimal import Decimal
from typing import Literal

from fathom.models import Received
from fathom.tools.base import ANYWHERE, SearchLimits
from fathom.tools.pages import WebPage
from fathom.tools.payment import Price
from fathom.tools.search.keyed import KeyedVendor, Plain, Text

# https://docs.firecrawl.dev/billing: two credits for each ten results begun, one for a page, one for a page of a PDF.
_CREDIT = Decimal("0.00083")  # of the Standard plan
# Of a PDF only one page is asked for, which is an excerpt: a whole one would cost as many credits as it has pages.
_READING = {"formats": ["markdown"], "onlyMainContent": True, "parsers": [{"type": "pdf", "maxPages": 1}]}


class _Metadata(Received):
    contentType: Text = ""


class _Found(Received):
    url: Text = ""
    title: Plain = ""
    description: Plain = ""
    markdown: Text = ""
    metadata: _Metadata | None = None

    @property
    def is_pdf(self) -> bool:
        return self.url.lower().endswith(".pdf") or bool(self.metadata and "pdf" in self.metadata.contentType)


class _Data(Received):
    web: list[_Found] | None = None  # not there when nothing was found


class _Answer(Received):
    success: Literal[True]
    data: _Data


class Firecrawl(KeyedVendor):
    """Searches with whole texts; the answer has no scores and no dates."""

    name = "Firecrawl"
    variables = ("FIRECRAWL_API_KEY",)
    optional = ("FIRECRAWL_BASE_URL",)
    limits = ("dates", "region")
    setup = "FIRECRAWL_API_KEY (keys: https://firecrawl.dev)"
    api = "https://api.firecrawl.dev"

    @classmethod
    def price(cls, results: int) -> Price:
        """Return the most that a request costs."""
        return _CREDIT * (2 * -(-results // 10) + 2 * results)

    async def search(self, query: str, limit: int, within: SearchLimits = ANYWHERE) -> list[WebPage]:
        """Return the pages it finds, in full where it could read them."""
        limits = within.named(google_period="tbs", region="country")
        body = {"query": query, "limit": limit, "scrapeOptions": _READING, **limits}
        answer = await self.ask(_Answer, "/v2/search", body=body)
        return [
            WebPage(
                url=page.url,
                title=page.title,
                excerpt=page.description or (page.markdown if page.is_pdf else ""),
                whole="" if page.is_pdf else page.markdown,
            )
            for page in (answer.data.web or [])[:limit]
        ]

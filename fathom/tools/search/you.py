"""You.com: an index of its own (https://you.com/docs/guides/search)."""

from __future__ import annotations

from decimal import Decimal

from fathom.models import Received
from fathom.tools.base import ANYWHERE, SearchLimits
from fathom.tools.pages import WebPage
from fathom.tools.search.keyed import KeyedVendor, Plain, Text


class _Found(Received):
    url: Text = ""
    title: Plain = ""
    description: Plain = ""
    snippets: list[Plain] | None = None
    page_age: Text = ""


class _Results(Received):
    web: list[_Found] | None = None  # not there when nothing was found


class _Answer(Received):
    results: _Results


class You(KeyedVendor):
    """Searches with several excerpts of each page; the answer has no scores."""

    name = "You.com"
    variables = ("YDC_API_KEY",)
    optional = ("YDC_BASE_URL",)
    limits = ("dates", "region", "safe")
    setup = "YDC_API_KEY (keys: https://you.com/platform)"
    api = "https://ydc-index.io"
    header = ("X-API-Key", "")
    usd = Decimal("0.005")  # https://docs.you.com/administration/billing

    async def search(self, query: str, limit: int, within: SearchLimits = ANYWHERE) -> list[WebPage]:
        """Return the pages it finds."""
        body = {"query": query, "count": limit, **within.named(iso_period="freshness", region="country")}
        body |= {"safesearch": "strict"} if within.safe else {}
        answer = await self.ask(_Answer, "/v1/search", body=body)
        return [
            WebPage(
                url=page.url,
                title=page.title,
                published=page.page_age,
                excerpt="\n\n".join(filter(None, page.snippets or ())) or page.description,
            )
            for page in (answer.results.web or [])[:limit]
        ]

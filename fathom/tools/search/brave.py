"""Brave: an index of its own (https://api-dashboard.search.brave.com/documentation)."""

from __future__ import annotations

from decimal import Decimal
from typing import Literal

from fathom.models import Received
from fathom.tools.base import ANYWHERE, SearchLimits
from fathom.tools.pages import WebPage
from fathom.tools.search.keyed import KeyedVendor, Plain, Text, shortened

_MOST = 20  # results of a request
_QUERY_CHARS, _QUERY_WORDS = 400, 50  # Brave refuses longer ones


class _Found(Received):
    url: Text = ""
    title: Plain = ""
    description: Plain = ""
    page_age: Text = ""
    extra_snippets: list[Plain] | None = None


class _Results(Received):
    results: list[_Found]


class _Answer(Received):
    type: Literal["search"]
    web: _Results | None = None  # not there when nothing was found


class Brave(KeyedVendor):
    """Searches with up to five more excerpts of each page; the answer has no scores."""

    name = "Brave"
    variables = ("BRAVE_API_KEY",)
    optional = ("BRAVE_BASE_URL",)
    limits = ("dates", "region", "safe")
    setup = "BRAVE_API_KEY (keys: https://brave.com/search/api)"
    api = "https://api.search.brave.com"
    header = ("X-Subscription-Token", "")
    usd = Decimal("0.005")  # https://api-dashboard.search.brave.com/app/plans

    async def search(self, query: str, limit: int, within: SearchLimits = ANYWHERE) -> list[WebPage]:
        """Return the pages it finds, 20 at most; a long query is cut at a word."""
        asked = shortened(" ".join(query.split()[:_QUERY_WORDS]), _QUERY_CHARS)
        wanted = {"count": str(min(limit, _MOST)), "text_decorations": "false", "extra_snippets": "true"}
        wanted |= within.named(iso_period="freshness", region="country")
        wanted |= {"safesearch": "strict"} if within.safe else {}
        answer = await self.ask(_Answer, "/res/v1/web/search", params={"q": asked, **wanted})
        return [
            WebPage(
                url=page.url,
                title=page.title,
                published=page.page_age,
                excerpt="\n\n".join(filter(None, [page.description, *(page.extra_snippets or ())])),
            )
            for page in (answer.web.results if answer.web else [])[:limit]
        ]

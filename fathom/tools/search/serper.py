"""Serper: Google's results as JSON (https://serper.dev)."""

from __future__ import annotations

from decimal import Decimal

from fathom.models import Received
from fathom.tools.base import ANYWHERE, SearchLimits
from fathom.tools.pages import WebPage
from fathom.tools.payment import Price
from fathom.tools.search.keyed import KeyedVendor, Plain, Text

_CREDIT = Decimal("0.001")  # of the smallest package, https://serper.dev
_A_CREDIT = 10  # results; of more, a request takes two


class _Found(Received):
    link: Text = ""
    title: Plain = ""
    snippet: Plain = ""
    date: Text = ""  # "Nov 4, 2025" or "3 days ago"


class _Answer(Received):
    organic: list[_Found]


class Serper(KeyedVendor):
    """Searches Google; the answer has no scores."""

    name = "Serper"
    variables = ("SERPER_API_KEY",)
    optional = ("SERPER_BASE_URL",)
    limits = ("dates", "region")
    setup = "SERPER_API_KEY (keys: https://serper.dev)"
    api = "https://google.serper.dev"
    header = ("X-API-KEY", "")

    @classmethod
    def price(cls, results: int) -> Price:
        """Return the price of a request."""
        return _CREDIT if results <= _A_CREDIT else 2 * _CREDIT

    async def search(self, query: str, limit: int, within: SearchLimits = ANYWHERE) -> list[WebPage]:
        """Return the pages it finds."""
        body: dict[str, str | int] = {"q": query, "num": limit, **within.named(google_period="tbs")}
        body |= {"gl": within.region} if within.region else {}
        answer = await self.ask(_Answer, "/search", body=body)
        return [
            WebPage(url=page.link, title=page.title, published=page.date, excerpt=page.snippet)
            for page in answer.organic[:limit]
        ]

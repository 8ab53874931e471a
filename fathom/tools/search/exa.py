"""Exa: pages by meaning, with their whole text (https://exa.ai/docs/reference/search)."""

from __future__ import annotations

from decimal import Decimal

from fathom.models import Received
from fathom.tools.base import ANYWHERE, SearchLimits
from fathom.tools.pages import Score, WebPage
from fathom.tools.payment import Price
from fathom.tools.search.keyed import KeyedVendor, Text

# https://exa.ai/docs/reference/pricing: ten results with their texts, and each one beyond these.
_TEN, _EACH_MORE = Decimal("0.007"), Decimal("0.001")


class _Found(Received):
    url: Text = ""
    title: Text = ""
    publishedDate: Text = ""
    score: Score = 0.0
    text: Text = ""


class _Answer(Received):
    results: list[_Found]


class Exa(KeyedVendor):
    """Searches with scores and whole texts."""

    name = "Exa"
    variables = ("EXA_API_KEY",)
    optional = ("EXA_BASE_URL",)
    limits = ("dates", "region", "safe")
    setup = "EXA_API_KEY (keys: https://exa.ai)"
    api = "https://api.exa.ai"
    header = ("x-api-key", "")

    @classmethod
    def price(cls, results: int) -> Price:
        """Return the price of a request."""
        return _TEN + _EACH_MORE * max(0, results - 10)

    async def search(self, query: str, limit: int, within: SearchLimits = ANYWHERE) -> list[WebPage]:
        """Return the pages it finds, in full."""
        body = {
            "query": query,
            "numResults": limit,
            "contents": {"text": True},
            **within.named(since="startPublishedDate", until="endPublishedDate", region="userLocation"),
            **({"moderation": True} if within.safe else {}),
        }
        answer = await self.ask(_Answer, "/search", body=body)
        return [
            WebPage(url=page.url, title=page.title, published=page.publishedDate, score=page.score, whole=page.text)
            for page in answer.results[:limit]
        ]

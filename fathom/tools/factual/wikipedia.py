"""Wikipedia: whole articles as text, of the Wikipedia in the language of the question."""

from __future__ import annotations

import re

from fathom.models import Bibliographic, Received
from fathom.tools.factual.mediawiki import MediaWikiTool, WikiAnswer
from fathom.tools.pages import WebPage

_HEADING = re.compile(r"(?m)^(={2,6})\s*(.+?)\s*\1$")


class _Revision(Received):
    timestamp: str = ""


class _Page(Received):
    title: str
    fullurl: str = ""
    extract: str = ""
    revisions: list[_Revision] = []


class _Pages(Received):
    pages: list[_Page] = []


class _Articles(WikiAnswer):
    query: _Pages = _Pages()


class WikipediaTool(MediaWikiTool):
    """Reads articles of Wikipedia, in the language of the question."""

    name = "wikipedia"
    service = "Wikipedia"
    description = (
        "Searches Wikipedia and reads its articles: what something is, its history, people, places, terms. Input: the "
        "name of a subject, or a few words, in the language of the question."
    )
    address = "https://{language}.wikipedia.org/w"
    domains = ("facts", "science", "medicine", "software", "companies", "humanities", "history")
    optional = ("WIKIPEDIA_BASE_URL", "FATHOM_CONTACT")

    async def find(self, query: str, limit: int) -> list[WebPage]:
        """Return the articles of the best titles; a request returns one whole article."""
        return [page for title in await self.titles(query, limit) for page in await self._article(title)]

    async def _article(self, title: str) -> list[WebPage]:
        found = await self.query(
            _Articles,
            action="query",
            prop="extracts|info|revisions",
            explaintext=1,
            exsectionformat="wiki",
            inprop="url",
            rvprop="timestamp",
            redirects=1,
            titles=title,
        )
        return [
            WebPage(
                url=page.fullurl,
                title=page.title,
                published=next((revision.timestamp for revision in page.revisions), ""),
                whole=_HEADING.sub(lambda line: f"{'#' * len(line[1])} {line[2]}", page.extract),
                reference=Bibliographic(venue=f"Wikipedia ({self.language})", licence="CC BY-SA 4.0"),
            )
            for page in found.query.pages
        ]

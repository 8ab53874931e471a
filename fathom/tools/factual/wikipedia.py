"""Wikipedia: whole articles as text, of the Wikipedia in the language of the question.

MediaWiki, its software, runs Wikidata, too. The action API of both needs no key. Clients identify themselves and make
one request at a time. An error has status 200.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, TypeVar

from fathom.errors import ToolRateLimited, ToolUnavailable
from fathom.models import Bibliographic, Received
from fathom.text.languages import language_of_question
from fathom.text.plain import clean_line
from fathom.tools.base import RunContext
from fathom.tools.lookup import LookupTool
from fathom.tools.pages import WebPage

if TYPE_CHECKING:
    import httpx

_BUSY = ("ratelimited", "maxlag", "readonly")
_HEADING = re.compile(r"(?m)^(={2,6})\s*(.+?)\s*\1$")


class _Refusal(Received):
    code: str = ""
    info: str = ""


class WikiAnswer(Received):
    """An answer of the API; the subclass has the requested fields."""

    error: _Refusal | None = None


class _Hit(Received):
    title: str


class _Hits(Received):
    search: list[_Hit] = []


class _Found(WikiAnswer):
    query: _Hits = _Hits()


WikiAnswerT = TypeVar("WikiAnswerT", bound=WikiAnswer)


class MediaWikiTool(LookupTool):
    """A wiki, in the language of the question."""

    group = "facts"
    seconds_between = 0.1
    at_once = 1
    joins = (" ", " OR ")

    def __init__(self, run: RunContext) -> None:
        super().__init__(run)
        self.language = language_of_question(run.query) or "en"
        self._address = self._address.replace("{language}", self.language)

    async def titles(self, query: str, limit: int) -> list[str]:
        """Return the titles of the pages that a full-text search finds."""
        found = await self.query(_Found, action="query", list="search", srsearch=query, srlimit=limit, srprop="")
        return [hit.title for hit in found.query.search]

    async def query(self, model: type[WikiAnswerT], **parameters: str | int) -> WikiAnswerT:
        """Make one request to the API."""

        def read(response: httpx.Response) -> WikiAnswerT:
            answer = model.model_validate(response.json())
            if answer.error:
                kind = ToolRateLimited if answer.error.code in _BUSY else ToolUnavailable
                raise kind(f"{self.service} refused: {clean_line(answer.error.info)[:200]}")
            return answer

        return await self.ask("/api.php", read, format="json", formatversion=2, maxlag=5, **parameters)


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

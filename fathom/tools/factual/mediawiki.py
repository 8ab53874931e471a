"""Requests to the action API of MediaWiki, the software of Wikipedia and Wikidata.

The API needs no key. Clients identify themselves and make one request at a time. An error has status 200.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from fathom.errors import ToolRateLimited, ToolUnavailable
from fathom.models import Received
from fathom.text.languages import language_of_question
from fathom.text.plain import clean_line
from fathom.tools.base import RunContext
from fathom.tools.lookup import LookupTool

if TYPE_CHECKING:
    import httpx

_BUSY = ("ratelimited", "maxlag", "readonly")


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

"""arXiv: preprints in physics, mathematics, computing and related fields.

An Atom feed without a key: at most one request in three seconds, over one connection. It gives no licence. It may
answer an unreadable query with 200 and an entry that is an error.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from fathom.errors import ToolRejected
from fathom.models import Bibliographic
from fathom.text.plain import clean_line
from fathom.tools.http import parse_xml, text_of
from fathom.tools.pages import WebPage
from fathom.tools.scholarly.works import WORDS, ScholarlyTool, work

if TYPE_CHECKING:
    import httpx

_NAMES = {"a": "http://www.w3.org/2005/Atom", "x": "http://arxiv.org/schemas/atom"}
_ID = re.compile(r"/abs/(?P<id>.+?)(?:v\d+)?\Z")


class ArxivTool(ScholarlyTool):
    """Searches arXiv, preprints in physics, mathematics, computing, statistics, economics; `fetch` reads the PDF."""

    name = "arxiv"
    service = "arXiv"
    description = f"Searches arXiv: preprints in physics, mathematics, computing, statistics and economics. {WORDS}"
    address = "https://export.arxiv.org/api"
    domains = ("physics", "mathematics", "computing", "science")
    optional = ("ARXIV_BASE_URL", "FATHOM_CONTACT")
    seconds_between = 3.0
    at_once = 1
    joins = (" AND ", " OR ")

    async def find(self, query: str, limit: int) -> list[WebPage]:
        """Return the preprints it finds, by relevance."""
        return await self.ask(
            "/query", _read, search_query=f"all:({query})", start=0, max_results=limit, sortBy="relevance"
        )


def _read(response: httpx.Response) -> list[WebPage]:
    feed = parse_xml(response.content)
    if feed.tag != f"{{{_NAMES['a']}}}feed":
        raise ValueError("no Atom feed")
    return [_page(entry) for entry in feed.iterfind("a:entry", _NAMES)]


def _page(entry: Any) -> WebPage:
    def said(path: str) -> str:
        return clean_line(text_of(entry, path, _NAMES))

    if not (found := _ID.search(said("a:id"))):
        raise ToolRejected(f"arXiv did not understand the query: {said('a:summary')[:200]}")
    preprint = work(
        said("a:title"),
        said("a:summary"),
        Bibliographic(
            authors=[text_of(author, "a:name", _NAMES) for author in entry.iterfind("a:author", _NAMES)],
            doi=said("x:doi") or f"10.48550/arXiv.{found['id']}",
            venue=said("x:journal_ref") or "arXiv",
            full_text=next((link.get("href") for link in entry.iterfind("a:link[@title='pdf']", _NAMES)), ""),
        ),
        published=said("a:published")[:10],
    )
    # The DOI may belong to the article that it became, but the preprint is read.
    return preprint.model_copy(update={"url": f"https://arxiv.org/abs/{found['id']}"})

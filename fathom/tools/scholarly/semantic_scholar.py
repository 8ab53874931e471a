"""Semantic Scholar: a catalogue of works of all fields by the Allen Institute for AI.

One request a second with a key; without one a share of what all users without one have, so it often answers 429. It
knows no query syntax and finds nothing for words with a hyphen.
"""

from __future__ import annotations

from collections.abc import Mapping

from fathom.models import Bibliographic, Received
from fathom.tools.lookup import Records
from fathom.tools.pages import WebPage
from fathom.tools.scholarly.works import WORDS, ScholarlyTool, within, work

_FIELDS = "title,abstract,authors,externalIds,venue,journal,year,publicationDate,openAccessPdf,url"


class _Author(Received):
    name: str = ""


class _Paper(Received):
    url: str = ""
    title: str = ""
    abstract: str = ""
    authors: list[_Author] = []
    doi: str = within("externalIds", "DOI")
    arxiv: str = within("externalIds", "ArXiv")
    venue: str = ""
    journal: str = within("journal", "name")
    year: int | None = None
    publicationDate: str = ""
    pdf: str = within("openAccessPdf", "url")
    licence: str = within("openAccessPdf", "license")


class _Papers(Received):
    total: int
    data: Records[_Paper] = []  # left out where there are none


class SemanticScholarTool(ScholarlyTool):
    """Searches Semantic Scholar, a catalogue of papers of all fields; `fetch` reads the open PDF."""

    name = "semantic_scholar"
    service = "Semantic Scholar"
    description = f"Searches Semantic Scholar: papers of every field, best in computing and biomedicine. {WORDS}"
    address = "https://api.semanticscholar.org/graph/v1"
    domains = ("computing", "science", "medicine")
    optional = ("SEMANTIC_SCHOLAR_BASE_URL", "S2_API_KEY", "FATHOM_CONTACT")
    setup = "S2_API_KEY gives a share of its own (keys: https://www.semanticscholar.org/product/api)"
    seconds_between = 1.0
    at_once = 1
    joins = (" ",)

    def headers(self) -> Mapping[str, str]:
        """Send the key, if there is one."""
        return {"x-api-key": self.key} if self.key else {}

    async def find(self, query: str, limit: int) -> list[WebPage]:
        """Return the papers it finds, by relevance."""
        words = query.replace("-", " ")
        found = await self.ask_json(_Papers, "/paper/search", query=words, limit=limit, fields=_FIELDS)
        return [_page(paper) for paper in found.data]


def _page(paper: _Paper) -> WebPage:
    return work(
        paper.title,
        paper.abstract,
        Bibliographic(
            authors=[author.name for author in paper.authors],
            doi=paper.doi or (paper.arxiv and f"10.48550/arXiv.{paper.arxiv}"),
            venue=paper.venue or paper.journal,
            licence=paper.licence,
            full_text=paper.pdf or (paper.arxiv and f"https://arxiv.org/pdf/{paper.arxiv}"),
        ),
        address=paper.url,
        published=paper.publicationDate or str(paper.year or ""),
    )

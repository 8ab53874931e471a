"""Europe PMC: the biomedical literature with preprints and patents, and open full texts.

It requires no key and states no rate limit. Open works are read as PDF if there is one.
"""

from __future__ import annotations

from pydantic import AliasPath, Field

from fathom.models import Bibliographic, Received
from fathom.tools.lookup import Records
from fathom.tools.pages import WebPage
from fathom.tools.scholarly.works import WORDS, ScholarlyTool, name_of, within, work


class _Author(Received):
    firstName: str = ""
    lastName: str = ""
    collectiveName: str = ""


class _Copy(Received):
    url: str = ""
    availabilityCode: str = ""  # OA: open access, F: free to read, S: subscription
    documentStyle: str = ""


class _Article(Received):
    id: str
    source: str
    title: str = ""
    doi: str = ""
    abstractText: str = ""
    authors: list[_Author] = Field([], validation_alias=AliasPath("authorList", "author"))
    journal: str = within("journalInfo", "journal", "title")
    server: str = within("bookOrReportDetails", "publisher")  # of a preprint
    firstPublicationDate: str = ""
    license: str = ""
    copies: list[_Copy] = Field([], validation_alias=AliasPath("fullTextUrlList", "fullTextUrl"))
    kinds: list[str] = Field([], validation_alias=AliasPath("pubTypeList", "pubType"))


class _Articles(Received):
    found: Records[_Article] = Field(validation_alias=AliasPath("resultList", "result"))


class EuropePMCTool(ScholarlyTool):
    """Searches Europe PMC, the biomedical literature with preprints; `fetch` reads the open full text."""

    name = "europe_pmc"
    service = "Europe PMC"
    description = f"Searches Europe PMC: biomedicine and the life sciences, preprints too. {WORDS}"
    address = "https://www.ebi.ac.uk/europepmc/webservices/rest"
    domains = ("medicine", "biology")
    optional = ("EUROPE_PMC_BASE_URL", "FATHOM_CONTACT")
    seconds_between = 0.2
    joins = (" ", " OR ")

    async def find(self, query: str, limit: int) -> list[WebPage]:
        """Return the articles it finds, by relevance."""
        sent = {"format": "json", "resultType": "core", "email": self.contact}
        articles = await self.ask_json(_Articles, "/search", query=query, pageSize=limit, **sent)
        return [_page(article) for article in articles.found]


def _page(article: _Article) -> WebPage:
    free = [copy for copy in article.copies if copy.availabilityCode in ("OA", "F") and copy.documentStyle != "doi"]
    free.sort(key=lambda copy: (copy.availabilityCode != "OA", copy.documentStyle != "pdf"))
    return work(
        article.title,
        article.abstractText,
        Bibliographic(
            authors=[name_of(a.lastName, a.firstName) or a.collectiveName for a in article.authors],
            doi=article.doi,
            venue=article.journal or article.server,
            licence=article.license,
            full_text=next((copy.url for copy in free), ""),
            retracted=any("retracted" in kind.lower() for kind in article.kinds),
        ),
        address=f"https://europepmc.org/article/{article.source}/{article.id}",
        published=article.firstPublicationDate,
    )

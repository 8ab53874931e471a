"""PubMed: the biomedical literature, by the E-utilities of the NCBI: one request for the ids, one for the records.

Three requests a second, ten with a key. The open full text of an article in PubMed Central is read at Europe PMC, since
the archive's own pages are not for programs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydantic import AliasPath, Field

from fathom.models import Bibliographic, Received
from fathom.tools.http import parse_xml, text_of
from fathom.tools.pages import WebPage
from fathom.tools.scholarly.works import WORDS, ScholarlyTool, day_of, name_of, work

if TYPE_CHECKING:
    import httpx


class _Search(Received):
    ids: list[str] = Field(validation_alias=AliasPath("esearchresult", "idlist"))


class PubMedTool(ScholarlyTool):
    """Searches PubMed, the biomedical literature; `fetch` reads what Europe PMC has as an open PDF."""

    name = "pubmed"
    service = "PubMed"
    description = f"Searches PubMed: biomedicine, clinical trials, public health. {WORDS}"
    address = "https://eutils.ncbi.nlm.nih.gov/entrez/eutils"
    domains = ("medicine", "biology")
    optional = ("PUBMED_BASE_URL", "NCBI_API_KEY", "FATHOM_CONTACT")
    setup = "NCBI_API_KEY allows more requests (keys: https://account.ncbi.nlm.nih.gov/settings)"
    seconds_between, keyed_seconds_between = 0.34, 0.1
    at_once = 3
    joins = (" ", " OR ")

    async def find(self, query: str, limit: int) -> list[WebPage]:
        """Return the articles it finds, by relevance."""
        who = {"db": "pubmed", "tool": "fathom", "email": self.contact, "api_key": self.key}
        wanted = {"retmode": "json", "sort": "relevance", "term": query}
        found = await self.ask_json(_Search, "/esearch.fcgi", **who, **wanted, retmax=limit)
        if not (ids := ",".join(each for each in found.ids if each.isdigit())):
            return []
        return await self.ask("/efetch.fcgi", _read, **who, retmode="xml", id=ids)


def _read(response: httpx.Response) -> list[WebPage]:
    articles = parse_xml(response.content)
    if articles.tag != "PubmedArticleSet":
        raise ValueError("no articles")
    pages = [_page(article) for article in articles.iterfind("PubmedArticle")]
    if pages and not any(pages):
        raise ValueError("no article with a record")
    return [page for page in pages if page]


def _page(article: Any) -> WebPage | None:
    ids = {each.get("IdType"): each.text or "" for each in article.iterfind("PubmedData/ArticleIdList/ArticleId")}
    number = text_of(article, "MedlineCitation/PMID")
    about = article.find("MedlineCitation/Article")
    if about is None or not number:
        return None
    issue = "Journal/JournalIssue/PubDate"
    printed = [text_of(about, f"{issue}/{part}") for part in ("Year", "Month", "Day")]
    kinds = {"".join(kind.itertext()) for kind in about.iterfind("PublicationTypeList/PublicationType")}
    parts = [(each.get("Label"), "".join(each.itertext())) for each in about.iterfind("Abstract/AbstractText")]
    return work(
        text_of(about, "ArticleTitle"),
        "\n".join(f"{label}: {text}" if label else text for label, text in parts),
        Bibliographic(
            authors=[_name(author) for author in about.iterfind("AuthorList/Author")],
            doi=ids.get("doi", ""),
            venue=text_of(about, "Journal/Title"),
            full_text=f"https://europepmc.org/articles/{ids['pmc']}?pdf=render" if ids.get("pmc") else "",
            retracted="Retracted Publication" in kinds,
        ),
        address=f"https://pubmed.ncbi.nlm.nih.gov/{number}",
        published=day_of(printed) or text_of(about, f"{issue}/MedlineDate"),
    )


def _name(author: Any) -> str:
    return name_of(text_of(author, "LastName"), text_of(author, "ForeName")) or text_of(author, "CollectiveName")

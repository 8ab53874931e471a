"""Crossref: works that publishers register with a DOI.

Abstracts and licences are there only if publishers give them. Requests with a contact address go to the servers for
polite users, which allow three at once.
"""

from __future__ import annotations

from pydantic import AliasPath, Field

from fathom.models import Bibliographic, Received
from fathom.tools.lookup import Records
from fathom.tools.pages import WebPage
from fathom.tools.scholarly.works import ScholarlyTool, day_of, name_of, within, work

_FIELDS = "DOI,title,author,container-title,publisher,issued,abstract,license,link"
_OPEN = "creativecommons.org/"


class _Author(Received):
    given: str = ""
    family: str = ""
    name: str = ""  # of an organisation


class _Link(Received):
    address: str = within("URL")
    use: str = within("intended-application")


class _Work(Received):
    doi: str = Field(alias="DOI")
    title: str = within("title", 0)
    author: list[_Author] = []
    venue: str = within("container-title", 0)
    publisher: str = ""
    issued: list[int] = Field([], validation_alias=AliasPath("issued", "date-parts", 0))
    abstract: str = ""
    license: list[_Link] = []
    link: list[_Link] = []


class _Works(Received):
    items: Records[_Work] = Field(validation_alias=AliasPath("message", "items"))


class CrossrefTool(ScholarlyTool):
    """Searches Crossref, what publishers registered with a DOI; `fetch` reads copies under an open licence."""

    name = "crossref"
    service = "Crossref"
    description = (
        "Searches Crossref: articles, books and reports of every field with their DOI, most without an abstract. Good "
        "for finding a certain work. Input: words of its title, authors or journal."
    )
    address = "https://api.crossref.org"
    domains = ("science", "medicine", "humanities", "social sciences", "engineering")
    optional = ("CROSSREF_BASE_URL", "FATHOM_CONTACT")
    seconds_between = 0.2
    at_once = 2

    async def find(self, query: str, limit: int) -> list[WebPage]:
        """Return the works it finds, by relevance."""
        parameters: dict[str, str | int] = {"query.bibliographic": query, "rows": limit, "mailto": self.contact}
        found = await self.ask_json(_Works, "/works", select=_FIELDS, **parameters)
        return [_page(each) for each in found.items]


def _page(each: _Work) -> WebPage:
    licences = [licence.address for licence in each.license]
    free = next((address for address in licences if _OPEN in address), "")
    copies = [link.address for link in each.link if link.use != "similarity-checking"]
    return work(
        each.title,
        each.abstract,
        Bibliographic(
            authors=[name_of(author.family, author.given) or author.name for author in each.author],
            doi=each.doi,
            venue=each.venue or each.publisher,
            licence=free or next(iter(licences), ""),
            full_text=next(iter(copies), "") if free else "",
        ),
        published=day_of(each.issued),
    )

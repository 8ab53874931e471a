"""OpenAlex: an open catalogue of works of all fields.

With the free key it has a daily allowance, without one a small part of that. Abstracts come as the places of each word.
"""

from __future__ import annotations

from fathom.models import Bibliographic, Received
from fathom.tools.lookup import Records
from fathom.tools.pages import WebPage
from fathom.tools.scholarly.works import WORDS, ScholarlyTool, within, work

_FIELDS = (
    "id,doi,display_name,publication_date,authorships,primary_location,best_oa_location,abstract_inverted_index,"
    "is_retracted"
)


class _Authorship(Received):
    name: str = within("author", "display_name")


class _Work(Received):
    id: str
    doi: str = ""
    display_name: str = ""
    publication_date: str = ""
    authorships: list[_Authorship] = []
    page: str = within("primary_location", "landing_page_url")
    venue: str = within("primary_location", "source", "display_name")
    licence: str = within("best_oa_location", "license")
    pdf: str = within("best_oa_location", "pdf_url")
    copy_page: str = within("best_oa_location", "landing_page_url")
    abstract_inverted_index: dict[str, list[int]] = {}
    is_retracted: bool = False


class _Works(Received):
    results: Records[_Work]


class OpenAlexTool(ScholarlyTool):
    """Searches OpenAlex, a catalogue of scholarly works of all fields; `fetch` reads the open copy."""

    name = "openalex"
    service = "OpenAlex"
    description = f"Searches OpenAlex: scholarly works of every field. {WORDS}"
    address = "https://api.openalex.org"
    domains = ("science", "medicine", "humanities", "social sciences", "engineering")
    optional = ("OPENALEX_BASE_URL", "OPENALEX_API_KEY", "FATHOM_CONTACT")
    setup = "OPENALEX_API_KEY raises the daily allowance (free keys: https://openalex.org/settings/api)"
    seconds_between = 0.1
    joins = (" ", " OR ")

    async def find(self, query: str, limit: int) -> list[WebPage]:
        """Return the works it finds, by relevance."""
        sent = {"select": _FIELDS, "mailto": self.contact, "api_key": self.key}
        found = await self.ask_json(_Works, "/works", search=query, per_page=limit, **sent)
        return [_page(each) for each in found.results]


def _page(each: _Work) -> WebPage:
    return work(
        each.display_name,
        _abstract(each.abstract_inverted_index),
        Bibliographic(
            authors=[authorship.name for authorship in each.authorships],
            doi=each.doi,
            venue=each.venue,
            licence=each.licence,
            full_text=each.pdf or each.copy_page,
            retracted=each.is_retracted,
        ),
        address=each.page or each.id,
        published=each.publication_date,
    )


def _abstract(places: dict[str, list[int]]) -> str:
    """Return a text from the places of its words."""
    return " ".join(word for _place, word in sorted((place, word) for word, at in places.items() for place in at))

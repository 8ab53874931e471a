"""Wikidata: the main facts of an entity, one `label: value` a line, so that each can be quoted.

Its data are in the public domain (CC0). What a statement names by an id, it names in the question's language here.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pydantic import BaseModel

from fathom.models import Bibliographic
from fathom.tools.factual.mediawiki import MediaWikiTool, WikiAnswer
from fathom.tools.factual.statements import Statement, facts_of, ids_in
from fathom.tools.pages import WebPage

MOST_ENTITIES = 3  # whose facts are read in one call: each names up to a hundred others
AT_ONCE = 50  # ids that a request may name


class _Text(BaseModel):
    value: str


class _Entity(BaseModel):
    id: str
    labels: dict[str, _Text] = {}
    descriptions: dict[str, _Text] = {}
    claims: dict[str, list[Statement]] = {}


class _Entities(WikiAnswer):
    entities: dict[str, Any] = {}


class WikidataTool(MediaWikiTool):
    """Reads the facts that Wikidata has of people, places, organisations and things."""

    name = "wikidata"
    service = "Wikidata"
    description = (
        "Reads facts from Wikidata: dates, places, numbers, members, relations of a person, place, organisation or "
        "thing. Input: its name and nothing else."
    )
    address = "https://www.wikidata.org/w"
    domains = ("facts", "companies")
    optional = ("WIKIDATA_BASE_URL", "FATHOM_CONTACT")

    async def find(self, query: str, limit: int) -> list[WebPage]:
        """Return the facts of the best entities."""
        titles = await self.titles(query, min(limit, MOST_ENTITIES))
        entities = await self._entities(titles, "labels|descriptions|claims")
        named = {i: None for entity in entities for i in ids_in(entity.claims)}
        names = {each.id: self._name(each) for each in await self._entities(named, "labels")}
        return [self._page(entity, names) for entity in entities]

    async def _entities(self, ids: Iterable[str], props: str) -> list[_Entity]:
        wanted, found = list(ids), list[_Entity]()
        for start in range(0, len(wanted), AT_ONCE):
            some = wanted[start : start + AT_ONCE]
            answer = await self.query(
                _Entities, action="wbgetentities", ids="|".join(some), props=props, languages=f"{self.language}|en"
            )
            entities = (answer.entities.get(each) for each in some)
            found += [_Entity.model_validate(entity) for entity in entities if entity and "missing" not in entity]
        return found

    def _name(self, entity: _Entity) -> str:
        return self._said(entity.labels) or entity.id

    def _said(self, texts: dict[str, _Text]) -> str:
        return next((texts[language].value for language in (self.language, "en") if language in texts), "")

    def _page(self, entity: _Entity, names: dict[str, str]) -> WebPage:
        name, about = self._name(entity), self._said(entity.descriptions)
        lines = [f"{name}: {about}" if about else name, *facts_of(name, entity.claims, names)]
        return WebPage(
            url=f"https://www.wikidata.org/wiki/{entity.id}",
            title=name,
            whole="\n\n".join(lines),
            reference=Bibliographic(venue="Wikidata", licence="CC0 1.0"),
        )

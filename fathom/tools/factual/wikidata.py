"""Wikidata: the main facts of an entity, one `label: value` per line, so that each can be quoted.

Its data are in the public domain (CC0). Ids in statements are replaced by names in the question's language.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from pydantic import AliasPath, Field

from fathom.models import Bibliographic, Received
from fathom.tools.factual.wikipedia import MediaWikiTool, WikiAnswer
from fathom.tools.pages import WebPage

MOST_ENTITIES = 3  # entities whose facts are read in one call: each names up to a hundred others
AT_ONCE = 50  # ids that a request may name


class _Text(Received):
    value: str


class _Entity(Received):
    id: str
    labels: dict[str, _Text] = {}
    descriptions: dict[str, _Text] = {}
    claims: dict[str, list[WikidataStatement]] = {}


class _Entities(WikiAnswer):
    entities: dict[str, Any] = {}


class WikidataTool(MediaWikiTool):
    """Reads Wikidata's facts about people, places, organisations and things."""

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


MOST_PROPERTIES = 60  # properties of an entity, in the order of Wikidata, which begins with its kind
MOST_VALUES = 6  # of a property
_NAMELESS = frozenset(("external-id", "commonsMedia", "math", "musical-notation", "tabular-data", "geo-shape"))
"""Kinds of values that mean nothing to a reader: keys in other databases, and files."""

_WHEN, _FROM, _UNTIL = "P585", "P580", "P582"
_TIME = re.compile(r"([+-])0*(\d{1,})-(\d\d)-(\d\d)T")


class _Snak(Received):
    datatype: str = ""
    value: Any = Field(None, validation_alias=AliasPath("datavalue", "value"))  # None: it has none, or nobody knows it


class WikidataStatement(Received):
    """A statement: a value, when it holds, and how Wikidata ranks it."""

    mainsnak: _Snak
    rank: str = "normal"
    qualifiers: dict[str, list[_Snak]] = {}


Claims = Mapping[str, Sequence[WikidataStatement]]


def facts_of(subject: str, claims: Claims, names: Mapping[str, str]) -> Iterator[str]:
    """Yield a line for each property of an entity; `names` holds the names of referenced entities, by id."""
    for property_id, statements in _telling(claims):
        values = [_said(statement.mainsnak.value, names) + _when(statement, names) for statement in statements]
        yield f"{subject}, {names.get(property_id, property_id)}: {'; '.join(filter(None, values))}"


def ids_in(claims: Claims) -> Iterator[str]:
    """Yield the ids of the properties, items and units whose names the lines need."""
    for property_id, statements in _telling(claims):
        yield property_id
        for value in (statement.mainsnak.value for statement in statements):
            if isinstance(value, dict) and (found := value.get("id") or _unit(value)):
                yield found


def _telling(claims: Claims) -> list[tuple[str, list[WikidataStatement]]]:
    """Return the statements that inform a reader: the best ones of each property."""
    telling: list[tuple[str, list[WikidataStatement]]] = []
    for property_id, statements in claims.items():
        known = [s for s in statements if s.mainsnak.value and s.mainsnak.datatype not in _NAMELESS]
        best = [s for s in known if s.rank == "preferred"] or [s for s in known if s.rank == "normal"]
        if best:
            telling.append((property_id, best[-MOST_VALUES:]))
    return telling[:MOST_PROPERTIES]


def _said(value: Any, names: Mapping[str, str]) -> str:
    match value:
        case {"id": str(known)}:
            return names.get(known, known)
        case {"time": str(time), "precision": int(precision)}:
            return _date(time, precision)
        case {"amount": str(amount)}:
            return " ".join(filter(None, [amount.removeprefix("+"), names.get(_unit(value), "")]))
        case {"latitude": float() | int() as north, "longitude": float() | int() as east}:
            return f"{north:.4f}, {east:.4f} (latitude, longitude)"
        case {"text": str(text)} | str(text):
            return text
    return ""


def _unit(value: Mapping[str, Any]) -> str:
    return str(value.get("unit", "")).rpartition("/")[2].removeprefix("1")


def _date(time: str, precision: int) -> str:
    """Return a date with its known precision: 9 is a year, 10 a month, 11 a day; less becomes "about" a year."""
    if not (found := _TIME.match(time)):
        return ""
    sign, year, month, day = found.groups()
    exact = [year, month, day][: max(1, precision - 8)]
    return ("about " if precision < 9 else "") + "-".join(exact) + (" BC" if sign == "-" else "")


def _when(statement: WikidataStatement, names: Mapping[str, str]) -> str:
    parts = ((word, statement.qualifiers.get(key)) for word, key in (("", _WHEN), ("from ", _FROM), ("until ", _UNTIL)))
    said = [word + _said(snaks[0].value, names) for word, snaks in parts if snaks and snaks[0].value]
    return f" ({' '.join(said)})" if said else ""

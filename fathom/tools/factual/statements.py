"""What the statements of a Wikidata entity say, as lines of text."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pydantic import AliasPath, BaseModel, Field

MOST_PROPERTIES = 60  # of an entity, in the order of Wikidata, which begins with what it is
MOST_VALUES = 6  # of a property
_NAMELESS = frozenset(("external-id", "commonsMedia", "math", "musical-notation", "tabular-data", "geo-shape"))
"""Kinds of values that say nothing to a reader: keys in other databases, and files."""

_WHEN, _FROM, _UNTIL = "P585", "P580", "P582"
_TIME = re.compile(r"([+-])0*(\d{1,})-(\d\d)-(\d\d)T")


class _Snak(BaseModel):
    datatype: str = ""
    value: Any = Field(None, validation_alias=AliasPath("datavalue", "value"))  # None: it has none, or nobody knows it


class Statement(BaseModel):
    """A statement: a value, when it holds, and how Wikidata ranks it."""

    mainsnak: _Snak
    rank: str = "normal"
    qualifiers: dict[str, list[_Snak]] = {}


Claims = Mapping[str, Sequence[Statement]]


def facts_of(subject: str, claims: Claims, names: Mapping[str, str]) -> Iterator[str]:
    """Yield a line for each property of an entity; `names` are those of the entities that it names, by id."""
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


def _telling(claims: Claims) -> list[tuple[str, list[Statement]]]:
    """Return the statements that tell a reader something, of each property the best ones."""
    telling: list[tuple[str, list[Statement]]] = []
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
    """Return a date as precise as it is known: 9 is a year, 10 a month, 11 a day; less is said to be about a year."""
    if not (found := _TIME.match(time)):
        return ""
    sign, year, month, day = found.groups()
    exact = [year, month, day][: max(1, precision - 8)]
    return ("about " if precision < 9 else "") + "-".join(exact) + (" BC" if sign == "-" else "")


def _when(statement: Statement, names: Mapping[str, str]) -> str:
    parts = ((word, statement.qualifiers.get(key)) for word, key in (("", _WHEN), ("from ", _FROM), ("until ", _UNTIL)))
    said = [word + _said(snaks[0].value, names) for word, snaks in parts if snaks and snaks[0].value]
    return f" ({' '.join(said)})" if said else ""

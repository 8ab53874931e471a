"""Units and currencies as sentences write them, each with what it measures and its size."""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["CURRENCIES", "DIMENSIONS", "UNITS", "unit_of"]

CURRENCIES = {"$": "usd", "us$": "usd", "usd": "usd", "dollar": "usd", "€": "eur", "eur": "eur", "euro": "eur"}
CURRENCIES |= {"£": "gbp", "gbp": "gbp", "¥": "jpy", "yen": "jpy"}


def _units(dimension: str, factors: Mapping[str, float]) -> dict[str, tuple[str, float]]:
    return {unit: (dimension, factor) for units, factor in factors.items() for unit in units.split()}


UNITS = (
    _units("length", {"mm millimetre millimeter": 0.001, "cm centimetre centimeter": 0.01, "m metre meter": 1.0})
    | _units("length", {"km kilometre kilometer": 1_000, "mile mi": 1_609.344, "ft foot feet": 0.3048, "inch": 0.0254})
    | _units("mass", {"mg milligram": 1e-6, "g gram": 0.001, "kg kilogram": 1.0, "tonne ton": 1_000, "lb": 0.4536})
    | _units("time", {"ms millisecond": 0.001, "s sec second": 1.0, "min minute": 60, "h hr hour": 3_600})
    | _units("time", {"day": 86_400, "week": 604_800, "month": 2_629_800, "year": 31_557_600})
    | _units("power", {"w watt": 1, "kw kilowatt": 1e3, "mw megawatt": 1e6, "gw gigawatt": 1e9, "tw": 1e12})
    | _units("energy", {"wh": 1, "kwh": 1e3, "mwh": 1e6, "gwh": 1e9, "twh": 1e12})
    | _units("data", {"kb kilobyte": 1e3, "mb megabyte": 1e6, "gb gigabyte": 1e9, "tb terabyte": 1e12})
    | _units("speed", {"km/h kph": 1.0, "mph": 1.609344, "knot": 1.852})
    | _units("area", {"ha hectare": 1.0, "acre": 0.4047, "km²": 100.0, "m²": 0.0001})
    | _units("percent", {"% percent": 1.0})
    | _units("points", {"percentage": 1.0})
)
"""Of each unit in the singular its dimension and how many of the dimension's own unit it is."""

DIMENSIONS = frozenset(dimension for dimension, _ in UNITS.values()) | frozenset(CURRENCIES.values())


def unit_of(word: str) -> str:
    """Return the name of a unit or currency that a word is, in the singular; empty if it is none."""
    forms = (word, word.removesuffix("s"), word.removesuffix("es"))
    return next((form for form in forms if form in UNITS or form in CURRENCIES), "")

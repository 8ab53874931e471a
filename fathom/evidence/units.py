"""Units and scales that stand beside numbers, each with the ways to write it."""

from __future__ import annotations

import re

__all__ = ["CURRENCIES", "MONTHS", "NUMBER_WORDS", "SCALES", "UNITS", "WEEKDAYS"]

_UNITS = """
%: percent per\u00a0cent prozent pct
°C: celsius
°F: fahrenheit
mm: millimetre millimeter
cm: centimetre centimeter zentimeter
m: metre meter
km: kilometre kilometer
mi: mile
ft: foot feet
inch: inches
ha: hectare hektar
km²: km2 sqkm
mg: milligram milligramm
g: gram gramm gramme
kg: kilogram kilogramm kilo kilos
t: tonne ton tonnen
lb: lbs
ml: millilitre milliliter
l: litre liter
second: s sec sekunde sekunden
minute: min minuten
hour: h hr stunde stunden
day: tag tage tagen
week: woche wochen
month: monat monate monaten
year: yr jahr jahre jahren
W: watt
kW: kilowatt
MW: megawatt
GW: gigawatt
kWh: kilowatt-hour
MWh: megawatt-hour
GWh: gigawatt-hour
TWh: terawatt-hour
Hz: hertz
MHz: megahertz
GHz: gigahertz
kB: kilobyte
MB: megabyte
GB: gigabyte
TB: terabyte
ms: millisecond
€: euro eur
$: dollar usd us$
£: sterling gbp
¥: yen jpy yuan cny
CHF: franc franken
"""
_MONTHS = """
january jan januar jänner
february feb februar
march mar märz
april apr
may mai
june jun juni
july jul juli
august aug
september sep sept
october oct oktober okt
november nov
december dec dezember dez
"""
_WORDS = """
zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen
eighteen nineteen
"""
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety"


def _read_units() -> dict[str, str]:
    table: dict[str, str] = {}
    for line in _UNITS.strip().split("\n"):
        unit, _, names = line.partition(": ")
        for name in [unit.lower(), *names.split(" ")]:
            table |= {name: unit, f"{name}s": unit}
    return table


def _read_words() -> dict[str, int]:
    units, tens = _WORDS.split(), _TENS.split()
    table = {word: value for value, word in enumerate(units)}
    for ten, word in enumerate(tens, 2):
        table[word] = 10 * ten
        table |= {f"{word}-{unit}": 10 * ten + value for value, unit in enumerate(units[1:10], 1)}
    return table


UNITS = _read_units()
"""The unit of each way to write it, in lowercase."""

CURRENCIES = {"€": "€", "$": "$", "£": "£", "¥": "¥", "US$": "$"}
"""Signs that stand before a number."""

SCALES = {
    "hundred": 2, "thousand": 3, "tausend": 3, "million": 6, "millions": 6, "millionen": 6, "mio": 6, "mn": 6,
    "billion": 9, "billions": 9, "milliarde": 9, "milliarden": 9, "mrd": 9, "bn": 9, "trillion": 12, "trillions": 12,
}  # fmt: skip
"""Powers of ten by name."""

MONTHS = {name: number for number, line in enumerate(_MONTHS.strip().split("\n"), 1) for name in line.split()}
WEEKDAYS = frozenset(re.findall(r"\w+", "monday tuesday wednesday thursday friday saturday sunday"))
NUMBER_WORDS = _read_words()

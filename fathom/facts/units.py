"""Units, currencies, scales and number words, each with the ways to write it."""

from __future__ import annotations

from decimal import Decimal
from typing import NamedTuple

# A dimension, then units: sign, how many of the dimension's own unit it is, other names.
_UNITS = """
percent: % 1 percent prozent pct
points: pp 1 percentage
celsius: °C 1 celsius
fahrenheit: °F 1 fahrenheit
length: mm .001 millimetre millimeter, cm .01 centimetre centimeter zentimeter, m 1 metre meter
length: km 1000 kilometre kilometer, mi 1609.344 mile, ft .3048 foot feet, inch .0254 inches
area: m² 1 sqm, ha 10000 hectare hektar, acre 4046.86, km² 1000000 km2 sqkm
mass: mg .000001 milligram milligramm, g .001 gram gramm gramme, kg 1 kilogram kilogramm kilo
mass: t 1000 tonne ton tonnen, lb .4536
volume: ml .001 millilitre milliliter, l 1 litre liter
time: ms .001 millisecond, second 1 s sec sekunde sekunden, minute 60 min minuten, hour 3600 h hr stunde stunden
time: day 86400 tag tage tagen, week 604800 woche wochen, month 2629800 monat monate monaten
time: year 31557600 yr jahr jahre jahren
power: W 1 watt, kW 1000 kilowatt, MW 1000000 megawatt, GW 1000000000 gigawatt, TW 1000000000000 terawatt
energy: Wh 1 watt-hour, kWh 1000 kilowatt-hour, MWh 1000000 megawatt-hour, GWh 1000000000 gigawatt-hour
energy: TWh 1000000000000 terawatt-hour
frequency: Hz 1 hertz, MHz 1000000 megahertz, GHz 1000000000 gigahertz
data: kB 1000 kilobyte, MB 1000000 megabyte, GB 1000000000 gigabyte, TB 1000000000000 terabyte
speed: km/h 1 kph, m/s 3.6, mph 1.609344, knot 1.852
"""
# A dimension for each, as no rate is fixed. Of a sign that two have, the last is meant.
_CURRENCIES = """
euro: € 1 euro eur
dollar: $ 1 dollar usd us$
pound: £ 1 sterling gbp
yuan: ¥ 1 yuan cny
yen: ¥ 1 yen jpy
franc: CHF 1 franc franken
"""
_WORDS = "zero one two three four five six seven eight nine ten \
eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen"
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety"
_GERMAN_WORDS = "eins zwei drei vier fünf sechs sieben acht neun zehn \
elf zwölf dreizehn vierzehn fünfzehn sechzehn siebzehn achtzehn neunzehn"
_GERMAN_TENS = "zwanzig dreißig vierzig fünfzig sechzig siebzig achtzig neunzig"


class Unit(NamedTuple):
    """A unit by its usual sign, what it measures, and how many of the dimension's own unit it is."""

    sign: str
    dimension: str
    factor: Decimal


def _read_units(lines: str) -> dict[str, Unit]:
    table: dict[str, Unit] = {}
    for line in lines.strip().split("\n"):
        dimension, _, units = line.partition(": ")
        for unit in units.split(", "):
            sign, factor, *names = unit.split()
            for name in [sign.lower(), *names]:
                table[name] = Unit(sign, dimension, Decimal(factor))
                if len(name) > 1 and name.isalpha():
                    table.setdefault(f"{name}s", table[name])
    return table


def _read_words() -> dict[str, int]:
    units, tens = _WORDS.split(), _TENS.split()
    table = {word: value for value, word in enumerate(units)}
    for ten, word in enumerate(tens, 2):
        table[word] = 10 * ten
        table |= {f"{word}-{unit}": 10 * ten + value for value, unit in enumerate(units[1:10], 1)}
    return table | _read_german_words()


def _read_german_words() -> dict[str, int]:
    units, tens = _GERMAN_WORDS.split(), _GERMAN_TENS.split()
    table = {word: value for value, word in enumerate(units, 1)}
    for ten, word in enumerate(tens, 2):
        table[word] = 10 * ten
        table |= {f"{unit}und{word}": 10 * ten + value for value, unit in enumerate(["ein", *units[1:9]], 1)}
    return table


_MONEY = _read_units(_CURRENCIES)

UNITS = _MONEY | _read_units(_UNITS)
UNITS["per cent"] = UNITS["%"]
"""The unit or currency of each way to write it, in lowercase."""

CURRENCIES = frozenset(unit.dimension for unit in _MONEY.values())
"""The dimensions that are money."""

SCALES = {
    "hundred": 2, "thousand": 3, "tausend": 3, "million": 6, "millions": 6, "millionen": 6, "mio": 6, "mn": 6,
    "billion": 9, "billions": 9, "milliarde": 9, "milliarden": 9, "mrd": 9, "bn": 9, "trillion": 12, "trillions": 12,
    "tn": 12,
}  # fmt: skip
"""Powers of ten by name."""

NUMBER_WORDS = _read_words()
"""English and German number words up to ninety-nine. German "null" is none: it is a word of code, too."""

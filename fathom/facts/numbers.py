"""Numbers as texts write them, with their units: 1,000 and 1000, 5 % and five percent, 0.5 km and 500 m.

A number is read exactly and never rounded; `fathom.facts.extraction` says when two figures are different.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from decimal import Decimal
from itertools import islice
from typing import NamedTuple

from fathom.text.terms import STOP_WORDS, terms

# A dimension, then units: sign, how many of the dimension's own unit it is, other names.
_UNITS = """
percent: % 1 percent prozent pct
points: pp 1 percentage
celsius: °C 1 celsius
fahrenheit: °F 1 fahrenheit
length: mm .001 millimetre millimeter, cm .01 centimetre centimeter zentimeter, m 1 metre meter
length: km 1000 kilometre kilometer, mi 1609.344 mile, ft .3048 foot feet, inch .0254 inches
area: m² 1 sqm qm quadratmeter, ha 10000 hectare hektar, acre 4046.86, km² 1000000 km2 sqkm
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
sound: dB 1 decibel
data: kB 1000 kilobyte, MB 1000000 megabyte, GB 1000000000 gigabyte, TB 1000000000000 terabyte
speed: km/h 1 kph, m/s 3.6, mph 1.609344, knot 1.852
"""
# Each currency is its own dimension, as no rate is fixed. If two share a sign, the last one is meant.
_CURRENCIES = """
euro: € 1 euro eur
dollar: $ 1 dollar usd us$
pound: £ 1 sterling gbp
yuan: ¥ 1 yuan cny
yen: ¥ 1 yen jpy
franc: CHF 1 franc franken
crown: kr 1 crown krone kronen kronor krona
"""
_WORDS = "zero one two three four five six seven eight nine ten \
eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen"
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety"
_GERMAN_WORDS = "eins zwei drei vier fünf sechs sieben acht neun zehn \
elf zwölf dreizehn vierzehn fünfzehn sechzehn siebzehn achtzehn neunzehn"
_GERMAN_TENS = "zwanzig dreißig vierzig fünfzig sechzig siebzig achtzig neunzig"


class MeasureUnit(NamedTuple):
    """A unit by its usual sign, what it measures, and how many of the dimension's own unit it is."""

    sign: str
    dimension: str
    factor: Decimal


def _read_units(lines: str) -> dict[str, MeasureUnit]:
    table: dict[str, MeasureUnit] = {}
    for line in lines.strip().split("\n"):
        dimension, _, units = line.partition(": ")
        for unit in units.split(", "):
            sign, factor, *names = unit.split()
            for name in [sign.lower(), *names]:
                table[name] = MeasureUnit(sign, dimension, Decimal(factor))
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
"""English and German number words up to ninety-nine. German "null" is left out: it is also a word of code."""


_BLANK = r"[ \u00a0\u2009\u202f]"


def _spelled() -> str:
    """Return the pattern of a number word: one of the table, a German one above ninety-nine, or "a" of "a hundred and".

    "A hundred" alone and "hundert" may be any large number.
    """
    below = _by_first_letter(["ein", *_read_german_words()])
    hundreds = rf"(?:(?:{_by_first_letter(['ein', *_GERMAN_WORDS.split()[1:9]])})?[Hh]undert(?:und)?(?:{below})?)"
    german = rf"(?:{hundreds}|{below})?[Tt]ausend(?:und)?(?:{hundreds}|{below})?|{hundreds}"
    german = rf"(?=[AaDdEeFfHhNnSsTtVvZz])(?!(?i:hundert|tausend)\b)(?:{german})"
    return rf"{_by_first_letter(NUMBER_WORDS)}|{german}|[Aa](?=[ -](?:hundred|thousand) and\b)"


def _by_first_letter(words: Collection[str]) -> str:
    """Return the pattern of some words, grouped by first letter: the engine tries only one group."""
    first = sorted({word[0] for word in words})
    rests = {one: sorted((w[1:] for w in words if w[0] == one), key=len, reverse=True) for one in first}
    return "|".join(f"[{one}{one.upper()}](?i:{'|'.join(rest)})" for one, rest in rests.items())


_NUMBER = re.compile(
    r"(?P<sign>(?:(?<=\s)|(?<=\()|^)[-−](?=\d))?(?P<currency>US\$|[$€£¥])?\s?"
    r"(?<![A-Za-z\d_.\u00c0-\u024f])(?<![A-Z]-)(?<![A-Za-z\d]/)"  # the 19 of COVID-19 is a part of a name
    rf"(?:(?P<digits>\d{{1,3}}(?:{_BLANK}\d{{3}})+(?!\.?\d)|\d+(?:[.,’']\d+)*)(?P<ending>(?:st|nd|rd|th|s)\b)?"
    rf"|\b(?P<word>{_spelled()})\b)"
)
_BEHIND = re.compile(r"[\s\u00a0\u202f-]{0,2}(per\scent\b|[^\W\d_]+(?:/[hs]\b)?|[%°$€£¥]C?F?)")
_AND = re.compile(r"[\s-](?:and\s)?")
_LETTERS = {"k": 3, "m": 6, "b": 9}  # of amounts of money: £4.2m
_SHARES = (
    (50, r"half|halves|hälfte|halbe\w*"),
    (25, r"(?:an?|one|every|ein(?:em)?)[ -](?:quarter|viertel)"),
    (75, r"(?:three[ -]quarters?|drei[ -]?viertel)"),
    (33, r"(?:an?|one|every|ein(?:em)?)[ -](?:third|drittel)"),
    (67, r"(?:two[ -]thirds?|zwei[ -]?drittel)"),
    (20, r"(?:an?|one|every|ein(?:em)?)[ -](?:fifth|fünftel)"),
    (10, r"(?:an?|one|every|ein(?:em)?)[ -](?:tenth|zehntel)"),
)
_INCOMPARABLE = {"ordinal", "decade"}
_POINTED_AT = re.compile(
    r"\b(?:no|any|every|each|some|the|this|that|which|another|or|last|only|not|former|latter|other)[\s-]\Z",
    re.IGNORECASE,
)


class Number(NamedTuple):
    """A number and its place."""

    values: frozenset[Decimal]  # its possible values: `1.000` is one or a thousand
    unit: str  # its usual sign; empty if there is none; "ordinal" of 20th, "decade" of 1990s
    counted: tuple[str, ...]  # the counted thing, if there is no unit: the terms of at most two words behind the number
    power: int  # power of ten of a scale such as million; `values` include it
    spelled: bool  # as a word
    text: str  # how it is written, with its unit
    start: int
    end: int

    @property
    def kind(self) -> str:
        """The kind in which numbers can be compared: numbers of people with numbers of people."""
        return self.unit or next(iter(self.counted), "")

    def agrees(self, other: Number) -> bool:
        """Whether two numbers are the same; a unit that only one of them has does not matter, but 20 is not 20th."""
        unknown = not (self.unit and other.unit) and not {self.unit, other.unit} & _INCOMPARABLE
        if self.unit == other.unit or unknown:
            return bool(self.values & other.values)
        own, its = UNITS.get(self.unit.lower()), UNITS.get(other.unit.lower())
        if not own or not its or own.dimension != its.dimension:
            return False
        sizes = {value * own.factor for value in self.values}
        return any(value * its.factor in sizes for value in other.values)


def numbers_of(text: str) -> list[Number]:
    """Return the numbers of a text whose dates were blanked; "no one" and "the one" count nothing."""
    numbers: list[Number] = []
    for number in map(_number, _NUMBER.finditer(text)):
        joined = _joined(numbers[-1], number, text) if numbers else None
        numbers[-1 if joined else len(numbers) :] = [joined or number]
    return [number for number in numbers if not _is_pronoun(number, text)]


def _joined(first: Number, second: Number, text: str) -> Number | None:
    """Return the number that two make in words: one hundred and fifty, two thousand three hundred, twenty one."""
    between = _AND.fullmatch(text, first.end, second.start)
    if first.unit or not (first.spelled and second.spelled and between):
        return None
    [a], [b] = first.values, second.values
    scale, count = Decimal(1), b
    if a < (own := Decimal(10) ** second.power):  # of "one hundred and fifty thousand", fifty is not the thousand's
        scale, count = own, b / own
    if "and" in between[0] and text[: first.start].lower().endswith("between "):
        return None
    one_word = "-" in text[second.start : second.end + 1]  # twenty one-day trips
    tens = a % 100 >= 20 and 0 < count < 10 and len(between[0]) == 1 and not one_word
    if (a % 100 and not tens) or a % 10 ** (count.adjusted() + 1):
        return None
    value = frozenset([(a + count) * scale])
    power = max(first.power, second.power)
    return second._replace(values=value, power=power, text=text[first.start : second.end], start=first.start)


def has_share(text: str, percent: Number) -> bool:
    """Whether a text names a share in words that is so many percent: three quarters, 75 %."""
    words = (
        words for share, words in _SHARES if percent.unit == "%" and any(round(v) == share for v in percent.values)
    )
    return any(re.search(rf"\b(?:{pattern})\b", text, re.IGNORECASE) for pattern in words)


def _is_pronoun(number: Number, text: str) -> bool:
    """Whether a number is a pronoun: a "one" without a unit that counts nothing or points at something."""
    if not number.spelled or number.unit or number.values != {Decimal(1)}:
        return False
    return not number.counted or bool(_POINTED_AT.search(text[max(0, number.start - 10) : number.start]))


def _number(found: re.Match[str]) -> Number:
    currency, ending = found["currency"] or "", found["ending"]
    behind = list(islice(_behind(found.string, found.end()), 4))
    scale = behind[0][1].lower() if behind else ""
    thousands = found["digits"] and found.string.startswith("k", found.end())  # 10k
    money = currency or (behind[1:2] and _is_money(behind[1][1]))  # "£4.2m", "4.2 m euros"
    power = SCALES.get(scale, 0) or (_LETTERS.get(scale, 0) if money or thousands else 0)
    scales = 1 if power else 0
    if scale == "hundred" and (more := SCALES.get(behind[1][1].lower(), 0) if behind[1:] else 0):
        power, scales = power + more, 2  # two hundred thousand
    words, end = behind[scales:], behind[scales - 1].end() if scales else found.end()
    unit, used = _unit([word[1] for word in words[:2]])
    if used:
        end = words[used - 1].end()
    if currency:
        unit = UNITS[currency.lower()].sign
    elif ending:
        unit = "decade" if ending == "s" else "ordinal"
    values = _values(found["digits"]) if found["digits"] else {Decimal(_value(found["word"].lower()))}
    if found["sign"]:
        values = {value.copy_negate() for value in values}
    start = found.end() - len(found[0].lstrip())
    return Number(
        values=frozenset(value.scaleb(power) if power else value for value in values),
        unit=unit,
        counted=() if unit else tuple(_counted(words[:2])),
        power=power,
        spelled=bool(found["word"]),
        text=found.string[start:end].rstrip(),
        start=start,
        end=end,
    )


def _value(word: str) -> int:
    """Return what a number word says, also a German one such as zweitausendfünfhundert."""
    for name, scale in (("tausend", 1000), ("hundert", 100)):
        before, found, after = word.partition(name)
        if found:
            return scale * (_value(before) if before else 1) + (
                _value(rest) if (rest := after.removeprefix("und")) else 0
            )
    return 1 if word in ("a", "ein") else NUMBER_WORDS[word]


def _behind(text: str, end: int) -> Iterator[re.Match[str]]:
    while found := _BEHIND.match(text, end):
        yield found
        end = found.end()


def _unit(words: Sequence[str]) -> tuple[str, int]:
    """Return the sign of the unit that some words name, and the number of words used; the second must be a currency."""
    for used, word in enumerate(words, start=1):
        unit = UNITS.get(" ".join(word.lower().split()))
        if unit and (used == 1 or unit.dimension in CURRENCIES):  # "96 million US dollars"
            return unit.sign, used
    return "", 0


def _is_money(word: str) -> bool:
    unit = UNITS.get(word.lower())
    return unit is not None and unit.dimension in CURRENCIES


def _counted(words: Sequence[re.Match[str]]) -> Iterator[str]:
    """Yield the terms of the words behind a number, up to a function word: of `5 million people who`, people."""
    for word in words:
        if word[0] == word[1] or not word[1].isalpha() or word[1].lower() in STOP_WORDS:
            return
        yield from terms(word[1])


def _values(digits: str) -> set[Decimal]:
    """Return the possible values of digits with separators; a version such as 3.11.2 keeps its digits as they are."""
    joined = re.sub(r"[’'\s]", "", digits)
    groups, marks = re.split(r"[.,]", joined), set(re.findall(r"[.,]", joined))
    if not marks:
        return {Decimal(joined)}
    thousands = all(len(group) == 3 for group in groups[1:]) and len(groups[0]) <= 3 and groups[0] != "0"
    values = {Decimal("".join(groups))} if thousands and len(marks) == 1 else set()
    if len(groups) == 2 and not (thousands and "," in marks):
        values.add(Decimal(".".join(groups)))
    if len(marks) == 2:
        values.add(Decimal(f"{''.join(groups[:-1])}.{groups[-1]}"))
    return values or {Decimal("0." + "".join(f"{len(group)}{group}" for group in groups))}

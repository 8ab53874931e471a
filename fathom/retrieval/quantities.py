"""Quantities: what a text states without the word that a question has for it, as "21 g" answers "how heavy".

Each kind of quantity is a term, such as `<mass>`, which ranking treats as a word of the texts that state one. Only
words for the quantity itself ask for it: a sum of money answers "how much does it cost", but it need not be a salary.
In brackets stands what an answer states, but what stands for nothing by itself: a length need not be the depth.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache

from fathom.text.terms import terms

_SMALL_NUMBERS = "one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|fifteen|twenty|thirty|forty|fifty"
_NUMBER = rf"(?:\d[\d.,]*|\b(?:half an?|{_SMALL_NUMBERS}|hundred|thousand))(?:[ \u00a0-]|(?<=\d))(?:and a half )?"
_MANY = r"(?:(?:hundred|thousand|k|m|bn|million|billion|trillion)[ \u00a0-])?"
_MONTH = r"(?:January|February|March|April|May|June|July|August|September|October|November|December)"


def _measured(units: str) -> str:
    return rf"{_NUMBER}{_MANY}(?:{units})(?![\w²³])"


_HELD: Mapping[str, str] = {
    "<mass>": _measured(r"[mk]?g|t|tonnes?|tons?|(?:kilo|milli)?gram(?:me)?s?|kilos?|pounds?|lbs?|ounces?|oz"),
    "<length>": _measured(r"[mck]?m|(?:kilo|centi|milli)?(?:met(?:re|er)s?)|feet|foot|ft|inch(?:es)?|miles?|yards?"),
    "<area>": _measured(
        r"(?:[mck]?m|in|ft)²|ha|hectares?|acres?|(?:square|sq\.?) (?:(?:kilo)?met(?:re|er)s?|feet|miles?|k?m)"
    ),
    "<volume>": _measured(
        r"m³|[mc]?l|(?:milli)?lit(?:re|er)s?|gallons?|pints?|barrels?|cubic (?:met(?:re|er)s?|feet|centimet(?:re|er)s?)"
    ),
    "<duration>": _measured(
        r"ms|s|sec(?:ond)?s?|min(?:ute)?s?|h|hrs?|hours?|days?|nights?|weeks?|months?|years?|decades?"
    ),
    "<speed>": _measured(
        r"km/h|m/s|mph|knots?|kn|(?:kilomet(?:re|er)s|miles|met(?:re|er)s) (?:an|per|a) (?:hour|second)|"
        r"[KMG]?bit/s|[KMG]bps"
    ),
    "<power>": _measured(r"[kMGm]?W|(?:kilo|mega|giga)?watts?|hp|horsepower|PS"),
    "<pressure>": _measured(r"m?bar|[khM]?Pa|psi|atm|pascals?"),
    "<temperature>": rf"{_NUMBER}(?:°|degrees?\b|K\b)",
    "<data>": _measured(r"[KMGT]?i?B|bytes?|(?:kilo|mega|giga|tera)bytes?|bits?"),
    "<money>": (
        r"[$€£¥₹]\s?\d|\b(?:USD|EUR|GBP|CHF|JPY)\s?\d|"
        + _measured(r"dollars?|euros?|crowns?|pounds?|francs?|yen|cents?|rupees?|[$€£¥]|USD|EUR|GBP|CHF|kr\.?")
    ),
    "<share>": rf"{_NUMBER}(?:%|per ?cent\b|percentage points?)|\b(?:a|one|two|three) (?:half|third|quarter|fifth)s?\b",
    "<people>": _measured(
        r"(?:\w+ )?(?:people|persons?|inhabitants|residents|citizens|employees|workers|staff|members|visitors|users)"
    ),
    "<frequency>": (
        r"\b(?:once|twice|daily|hourly|weekly|monthly|yearly|annually|(?:times|once|twice) (?:an?|per|every)|"
        rf"every (?:other |{_SMALL_NUMBERS}|\d+|second|third|few)?\s?(?:day|week|month|year|hour|minute|second)s?)\b"
    ),
    "<weekday>": r"\b(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)days?\b",
    "<hour>": r"\b\d{1,2}:\d\d\b|\b\d{1,2} ?[ap]\.?m\b|\b(?:noon|midnight)\b|\bo'clock\b",
    "<year>": r"\b(?:1\d|20)\d\d\b",
    "<date>": rf"\b{_MONTH} \d|\b\d{{1,2}}\.? {_MONTH}|\b\d{{4}}-\d\d-\d\d\b",
    "<colour>": (
        r"\b(?:red|green|blue|yellow|orange|purple|violet|pink|brown|black|white|gr[ae]y|gold|golden|silver|turquoise|"
        r"crimson|scarlet|beige|cream)\b"
    ),
    "<version>": r"\b(?:v|version )?\d+\.\d+(?:\.\d+)?\b",
}
_ASKED = """
heavy heavier heaviest lightest weigh weight mass: <mass>
tall taller tallest high higher highest height deep deeper deepest depth wide wider widest width: (<length>)
distance: <length>
long longer longest length: <length> <duration>
far further: <length> <date>
big bigger biggest large larger largest small smaller smallest size: (<length>) (<area>) (<volume>) (<data>) (<people>)
area: <area>
capacity volume: <volume> <people> <power>
duration time wait: <duration> <hour>
old older oldest age: <duration> <year>
fast faster fastest slow slower slowest: <speed> <duration>
speed: <speed>
power powerful strong stronger strongest: <power> <pressure>
pressure: <pressure>
hot hotter hottest warm cold colder coldest temperature: <temperature>
cost price expensive cheap cheaper cheapest charge pay money: <money>
percent percentage proportion share: <share>
population inhabitants residents headcount payroll staff workforce employees: <people>
often frequency: <frequency>
weekday: <weekday>
date: <date> <year>
colour color: <colour>
version: <version>
"""


@cache
def _table() -> dict[str, tuple[str, ...]]:
    entries = (entry.split(":") for entry in re.split(r"(?<=[>)])\n", _ASKED.strip()))
    return {term: tuple(held.split()) for asked, held in entries for term in terms(asked)}


def quantities_of(term: str) -> list[str]:
    """Return the quantities of which an answer states one, where a term of a question asks for it."""
    return [held.strip("()") for held in _table().get(term, ())]


def stand_ins_of(term: str) -> list[str]:
    """Return the quantities that texts state in place of a term of a question."""
    return [held for held in _table().get(term, ()) if is_quantity(held)]


def is_quantity(term: str) -> bool:
    """Whether a term stands for a kind of quantity."""
    return term in _HELD


def states(quantity: str, text: str) -> bool:
    """Whether a text states a quantity of a kind."""
    return bool(_pattern(quantity).search(text))


def without_quantities(text: str) -> str:
    """Return a text without the quantities that it states; numbers without a unit stay."""
    for quantity in _HELD:
        text = _pattern(quantity).sub(" ", text)
    return text


@cache
def _pattern(quantity: str) -> re.Pattern[str]:
    return re.compile(_HELD[quantity])

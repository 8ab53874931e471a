"""Other forms of a claim's facts: 5 for five, 2021-10-04 for 4 October 2021, 488 m for 0.488 km.

They are terms to search for. Whether two figures are the same is decided by `fathom.facts`.
"""

from __future__ import annotations

from functools import cache

from fathom.facts.dates import MONTHS, find_dates
from fathom.facts.extraction import blanked, plain
from fathom.facts.numbers import CURRENCIES, NUMBER_WORDS, UNITS, numbers_of
from fathom.text.terms import terms

_ORDINALS = """
first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth fourteenth fifteenth
sixteenth seventeenth eighteenth nineteenth twentieth
"""
_GERMAN_ORDINALS = """
erste zweite dritte vierte fünfte sechste siebte achte neunte zehnte elfte zwölfte
"""
_MONTHS = {terms(name)[0]: number for name, number in MONTHS.items()}
DIGITS = 8  # maximum digits of a figure in another unit: nobody writes more


def other_forms(text: str) -> dict[str, str]:
    """Return terms of other ways to write the figures and dates of a text, each with the text's own term for it."""
    found: dict[str, str] = {}
    text = plain(text)
    words = _words()
    for term in dict.fromkeys(terms(text)):
        for other in words.get(term, ()):
            found.setdefault(other, term)
    dates = find_dates(text)
    for dated in dates:
        own = terms(dated.text)
        month = dated.date.month
        named = [term for term in own if _MONTHS.get(term) == month]
        written = named or [term for term in own if term.isdigit() and int(term) == month]
        if month and written:
            others = [f"{month:02}", str(month), *(name for name, number in _MONTHS.items() if number == month)]
            found |= {other: written[0] for other in others if other not in own}
        if dated.date.day:
            day = next((term for term in own if term.isdigit() and int(term) == dated.date.day), "")
            found |= {other: day for other in (f"{dated.date.day:02}", str(dated.date.day)) if day and other not in own}
    for number in numbers_of(blanked(text, ((dated.start, dated.end) for dated in dates))):
        own = terms(text[number.start : number.end])
        unit = UNITS.get(number.unit.lower())
        if not unit or not own or unit.dimension in CURRENCIES:
            continue
        factors = {other.factor for other in UNITS.values() if other.dimension == unit.dimension}
        for value in (value * unit.factor / factor for value in number.values for factor in factors):
            figure = f"{value.normalize():f}"
            if len(figure) <= DIGITS:
                found.setdefault(figure, own[0])
    return found


@cache
def _words() -> dict[str, list[str]]:
    """The other terms of each number word, and the words of each small number."""
    values: dict[int, set[str]] = {}
    for word, value in NUMBER_WORDS.items():
        values.setdefault(value, set()).update(terms(word)[:1] if "-" not in word else ())
    for names, first in ((_ORDINALS, 1), (_GERMAN_ORDINALS, 1), ("null", 0)):
        for value, word in enumerate(names.split(), first):
            values.setdefault(value, set()).update(terms(word))
    table: dict[str, list[str]] = {}
    for value, said in values.items():
        for term in [*said, str(value)]:
            table[term] = [*dict.fromkeys([*table.get(term, []), str(value), *sorted(said)])]
    return {term: [other for other in others if other != term] for term, others in table.items()}

"""What numbers, units, dates and opposites mean, in whatever form they are written: one meaning for all who compare.

`fathom.evidence` asks whether exactly this stands in a source, `fathom.quality` whether two sources can both be right.
"""

from fathom.facts.dates import MONTHS, WEEKDAYS, Date, DateFound, find_dates
from fathom.facts.opposites import Side, side_of
from fathom.facts.units import CURRENCIES, DIMENSIONS, NUMBER_WORDS, SCALES, UNITS, Unit

__all__ = [
    "CURRENCIES",
    "DIMENSIONS",
    "MONTHS",
    "NUMBER_WORDS",
    "SCALES",
    "UNITS",
    "WEEKDAYS",
    "Date",
    "DateFound",
    "Side",
    "Unit",
    "find_dates",
    "side_of",
]

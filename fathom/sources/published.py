"""When a source was published: dates as vendors and pages write them.

`today` is always given: a replay of a run reads "3 days ago" as the run did. How dates are written in full is in
`fathom.facts.dates`; here are the forms of vendors and bylines, and one day for each.
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta
from email.utils import parsedate_to_datetime

from fathom.facts.dates import Date, find_dates
from fathom.models import Source

_YEAR_MONTH = re.compile(r"(?<!\d)(?P<year>\d{4})[-/](?P<month>\d{1,2})(?!\d)")
_AGO = re.compile(r"(?<!\d)(?P<count>\d{1,5}|\ban?) (?P<unit>minute|hour|day|week|month|year)s? ago", re.IGNORECASE)
_DAYS = {"minute": 0.0, "hour": 0.0, "day": 1.0, "week": 7.0, "month": 30.4, "year": 365.25}
_STAMP = re.compile(r"\d{10}(?:\d{3})?(?:\.\d+)?\Z")
_IN_ADDRESS = re.compile(r"/((?:19|20)\d\d[/-](?:0?[1-9]|1[0-2])(?:[/-](?:0?[1-9]|[12]\d|3[01]))?)(?=[/?#-]|\Z)")
_BYLINE = re.compile(
    r"\b(?:published|posted|updated|last (?:modified|updated|edited|reviewed)|date)\b(?: on)?:? {0,2}"
    r"(?P<date>[\w ,./-]{4,30})",
    re.IGNORECASE,
)
_BYLINE_CHARS = 2_500
LONGEST = 100  # characters that a date is looked for in


def parse_date(text: str, today: date) -> date | None:
    """Read a date as vendors and pages write it; None where there is none, or it is in the future.

    Knows ISO 8601, RFC 2822, seconds since 1970, "5 March 2024", "March 5, 2024", "05.03.2024", "3 days ago". In
    "3/5/2024" the month comes first unless it cannot. A month is read as its middle, a year as its 1 July.
    """
    text = text[:LONGEST]
    found = _relative(text, today) or _stamp(text) or _rfc(text) or _written(text, today)
    return found if found and found <= today + timedelta(days=1) else None  # a time zone may be ahead of ours


def published_on(source: Source, text: str, today: date) -> date | None:
    """Return when a source was published: as the vendor says, else the page's address, else its first lines."""
    if found := parse_date(source.published, today):
        return found
    if source.kind == "web" and (dated := _IN_ADDRESS.search(source.url)):
        return parse_date(dated[1], today)
    bylines = (parse_date(m["date"], today) for m in _BYLINE.finditer(text[:_BYLINE_CHARS]))
    return next((found for found in bylines if found), None)


def _relative(text: str, today: date) -> date | None:
    if re.fullmatch(r"\s*(?:today|yesterday|just now)\s*", text, re.IGNORECASE):
        return today - timedelta(days="yesterday" in text.lower())
    if not (ago := _AGO.search(text)):
        return None
    count = int(ago["count"]) if ago["count"].isdigit() else 1
    days = count * _DAYS[ago["unit"].lower()]
    return today - timedelta(days=round(days)) if days < 100_000 else None


def _stamp(text: str) -> date | None:
    if not (stamp := _STAMP.match(text.strip())):
        return None
    seconds = float(stamp[0]) / (1000 if len(stamp[0].split(".")[0]) == 13 else 1)
    return datetime.fromtimestamp(seconds, UTC).date()


def _rfc(text: str) -> date | None:
    if "," not in text or ":" not in text:  # it would take "5 March 24" for the time of day
        return None
    try:
        return parsedate_to_datetime(text.strip()).date()
    except ValueError:
        return None


def _written(text: str, today: date) -> date | None:
    dates = [found.date for found in find_dates(text) if found.date.year]
    months = (Date(int(m["year"]), int(m["month"])) for m in _YEAR_MONTH.finditer(text))
    days = [d for d in dates if d.day]
    given = [*days, *(d._replace(day=0) for d in days), *(d for d in dates if d.month and not d.day), *months, *dates]
    return next((made for found in given if (made := _made(found, today))), None)


def _made(found: Date, today: date) -> date | None:
    """Return a day for a date; of a month or year that is not over, today at the latest."""
    try:
        made = date(found.year, found.month or 7, found.day or (15 if found.month else 1))
    except ValueError:
        return None
    rough = not found.day and (made.year, made.month if found.month else 0) <= (today.year, today.month)
    return min(made, today) if rough else made

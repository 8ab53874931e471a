"""When a document was written or last changed, as it says: `YYYY-MM-DD`, `YYYY-MM`, or empty where it does not say."""

from __future__ import annotations

import datetime
import re
from collections.abc import Mapping, Sequence
from pathlib import PurePath

from fathom.facts.dates import Date, find_dates
from fathom.tools.documents.sections import Section

LINES = 15  # at the start of a document, among which a line may state its date
_HEAD_BYTES = 200_000  # at the start of a page, which hold its dates
_NAMED = re.compile(r"(?<!\d)((?:19|20)\d\d)([-_.]?)(\d\d)\2(\d\d)(?!\d)|(?<!\d)((?:19|20)\d\d)[-_](\d\d)(?![-_.]?\d)")
_STATED = re.compile(
    r"[\W_]*(?:date|(?:date[ _-])?(?:published|created|issued|posted|modified|revised|updated)|"
    r"last[ _-](?:modified|updated|changed|revised|reviewed|edited))"
    r"(?: on)?(?:[\s*_]*:|[\s*_]+(?=\d))[\s*_]*(?P<rest>.{4,60})",
    re.IGNORECASE,
)
_MATTER_KEYS = ("date", "published", "last_modified", "updated")
_ISO = rb"(\d{4}-\d\d-\d\d(?:T[\d:.]+(?:Z|[+-]\d\d:?\d\d)?)?)"
_PUBLISHED = [
    re.compile(pattern % _ISO, re.IGNORECASE)
    for pattern in (
        rb"<meta\b[^>]{0,200}\barticle:published_time\b[^>]{0,200}\bcontent=[\"']?%b",
        rb"\"datePublished\"\s{0,9}:\s{0,9}\"%b",
        rb"<meta\b[^>]{0,200}\bname=[\"']?(?:date|dc\.date|dcterms\.date|citation_date)\b[^>]{0,200}\bcontent=[\"']?%b",
        rb"<time\b[^>]{0,200}\bdatetime=[\"']?%b",
    )
]


def published(page: bytes) -> str:
    """Return the date or time that the metadata of a page states, in ISO 8601."""
    found = (pattern.search(page[:_HEAD_BYTES]) for pattern in _PUBLISHED)
    return next((match[1].decode() for match in found if match), "")


def matter_date(fields: Mapping[str, str]) -> str:
    """Return the date of a document's front matter, given its fields."""
    stated = {name.lower(): value for name, value in reversed(list(fields.items()))}
    return next((date for key in _MATTER_KEYS if (date := only_date(stated.get(key, "")))), "")


def document_date(name: str, title: str, sections: Sequence[Section]) -> str:
    """Return the date in a file's name, its first lines or its first heading."""
    return _name_date(PurePath(name).stem) or _line_date(sections) or _heading_date(title, sections)


def only_date(text: str) -> str:
    """Return the date in a text if there is just one with a month."""
    dates = {written for found in find_dates(text) if (written := iso(found.date))}
    return dates.pop() if len(dates) == 1 else ""


def iso(date: Date) -> str:
    """Return a date as `YYYY-MM-DD` or `YYYY-MM`; empty if it has no month or does not exist."""
    try:
        datetime.date(date.year, date.month, date.day or 1)
    except ValueError:
        return ""
    return f"{date.year:04}-{date.month:02}" + (f"-{date.day:02}" if date.day else "")


def _name_date(stem: str) -> str:
    for match in _NAMED.finditer(stem):
        year, month, day = (match[1], match[3], match[4]) if match[1] else (match[5], match[6], "0")
        if date := iso(Date(int(year), int(month), int(day))):
            return date
    return ""


def _line_date(sections: Sequence[Section]) -> str:
    lines = [
        line for section in sections[:LINES] for line in (section.heading, *section.text[:4000].split("\n")) if line
    ]
    stated = (_STATED.match(line) for line in lines[:LINES])
    return next((date for match in stated if match and (date := _first_date(match["rest"]))), "")


def _first_date(text: str) -> str:
    """Return the date that a text begins with, if it has a month."""
    found = find_dates(text)
    return iso(found[0].date) if found and found[0].start < 16 else ""


def _heading_date(title: str, sections: Sequence[Section]) -> str:
    headings = [title, *[section.heading for section in sections if section.heading][:1]]
    return next((date for heading in headings if (date := only_date(heading))), "")

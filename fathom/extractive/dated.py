"""Sections of documents that were said on other days than the document: minutes of several meetings, quoted mails."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import date, timedelta
from typing import NamedTuple

from fathom.facts.dates import find_dates, iso
from fathom.models import SourceText
from fathom.text.quotations import is_quotation


class DatedSection(NamedTuple):
    """A section of a document, with its date: YYYY-MM-DD, YYYY-MM, or empty."""

    text: str
    date: str
    heading: str = ""  # that states the date, or says that somebody is quoted
    subject: str = ""  # the heading above that, as of a thread of a mailbox


LEAST_DATED = 2  # headings with a date that make the sections of a document ones of different days
_MOST_DATED_WORDS = 8  # of a line that is no heading of Markdown


def dated_sections(text: SourceText) -> list[DatedSection]:
    """Return the sections below headings with dates, as minutes of several meetings in one file have; else all.

    What a mail quotes is a section, too. It is older than the mail: where it does not state an earlier day, it has the
    one before the mail's.
    """
    if text.kind != "document":
        return [DatedSection(text.text, "")]
    lines = text.text.splitlines(keepends=True)
    own = DatedSection("", text.published)
    starts = {0: own, **_starts(lines, own, _dated_headings(lines))}
    return [
        section._replace(text=part)
        for (start, section), end in zip(starts.items(), [*list(starts)[1:], len(lines)], strict=True)
        if (part := "".join(lines[start:end])).strip() or len(starts) == 1
    ]


def _starts(lines: Sequence[str], own: DatedSection, dates: Mapping[int, str]) -> dict[int, DatedSection]:
    """Return the sections behind the document's own beginning, yet without their texts, by their first lines."""
    starts: dict[int, DatedSection] = {}
    quoted = 0  # level of the heading of a quotation
    subject = ""
    for number, line in enumerate(lines):
        level = len(line) - len(line.lstrip("#"))
        heading = line.strip("#-=* \n")
        if number in dates:
            own, quoted = DatedSection("", dates[number], heading, subject if level != 1 else ""), 0
            starts[number] = own
        elif level and is_quotation(line):
            starts[number] = DatedSection("", _before(own.date, _date_of_heading(line)), heading, own.subject)
            quoted = level
        elif quoted and 0 < level <= quoted:
            starts[number], quoted = own, 0
        if level == 1 and number not in dates:
            subject = heading
    return starts


def _dated_headings(lines: Sequence[str]) -> dict[int, str]:
    """Return the dates that headings state, by the numbers of their lines, if they are of different days."""
    has_headings = any(line.startswith("#") for line in lines)
    dates = {
        number: stated
        for number, line in enumerate(lines)
        if line.startswith("#" if has_headings else "") and not (number and lines[number - 1].strip())
        if not is_quotation(line) and (stated := _date_of_heading(line))
    }
    return dates if len({*dates.values()}) >= LEAST_DATED else {}


def _before(day: str, stated: str) -> str:
    """Return the day that a quotation states, or if that is not before the day of the mail, the one before."""
    if not day or (stated and stated < day):
        return stated
    return (date.fromisoformat(day) - timedelta(days=1)).isoformat() if len(day) == len("2025-11-03") else ""


def _date_of_heading(line: str) -> str:
    """Return the only day that a heading, or a short line that is no item and no sentence, states."""
    plain = line.strip()
    is_heading = plain.startswith("#")
    short = len(plain.split()) <= _MOST_DATED_WORDS and not plain.endswith((".", "!", "?", ";")) and "|" not in plain
    if not is_heading and not (short and not re.match(r"(?:[-*+•]|\d+[.)])\s+(?!-)", plain)):
        return ""
    days = {found.date for found in find_dates(plain) if found.date.year and found.date.month and found.date.day}
    return iso(days.pop()) if len(days) == 1 else ""

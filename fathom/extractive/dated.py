"""Sections of documents that were said on other days than the document: minutes of several meetings, chats, mails."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import date, timedelta
from itertools import groupby
from typing import NamedTuple

from fathom.facts.dates import Date, find_dates, iso
from fathom.models import SourceText
from fathom.text.messages import STAMP, is_quotation


class DatedSection(NamedTuple):
    """A section of a document, with its date: YYYY-MM-DD, YYYY-MM, or empty."""

    text: str
    date: str
    heading: str = ""  # that states the date, or says that somebody is quoted
    subject: str = ""  # the heading above that, as of a thread of a mailbox


LEAST_DATED = 2  # headings with a date that make the sections of a document ones of different days
_MOST_DATED_WORDS = 8  # of a line that is no heading of Markdown
# A line with a day and no time of day may tell what is planned for that day, unless its text is a log.
_LOG = re.compile(
    r"\b(?:\w*log|logbook|journal|changes|history|minutes|updates|releases|"
    r"\w*änderungen|verlauf|logbuch|\w*protokolle?)\b",
    re.IGNORECASE,
)
_HEADER = re.compile(
    r"(?:[-*] )?\**(?:from|to|cc|subject|(?P<sent>date|sent|datum|gesendet)|von|an|betreff)\**\s*:\** *(?P<value>\S.*)",
    re.IGNORECASE,
)


def dated_sections(text: SourceText) -> list[DatedSection]:
    """Return the sections below headings with dates, as minutes of several meetings in one file have; else all.

    The entries of a chat or log are sections, too, all of a day together, if there are no such headings.
    What a mail quotes is a section, too. It is older than the mail: where it does not state an earlier day, it has the
    one before the mail's.
    """
    if text.kind != "document":
        return [DatedSection(text.text, "")]
    lines = text.text.splitlines(keepends=True)
    own = DatedSection("", text.published)
    starts = {0: own, **_starts(lines, own, _dated_headings(lines))}
    if len(starts) == 1:
        starts |= {number: DatedSection("", day) for number, day in _entries(lines, text.title).items()}
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


def _entries(lines: Sequence[str], title: str) -> dict[int, str]:
    """Return the days of a chat's or log's entries and of the messages of a thread, by the first lines of each day."""
    days = sorted({**_days_of_lines(lines, title), **_days_of_messages(lines)}.items())
    new = {line: day for (line, day), (_, before) in zip(days, [(0, ""), *days], strict=False) if day != before}
    return new if len(days) >= LEAST_DATED else {}


def _days_of_lines(lines: Sequence[str], title: str) -> dict[int, str]:
    is_log = any(_LOG.search(each) for each in (title, *(line for line in lines if line.startswith("#"))))
    stamps = ((number, stamp) for number, line in enumerate(lines) if (stamp := STAMP.match(line.lstrip())))
    stamped = {number: stamp["date"] for number, stamp in stamps if is_log or stamp["time"]}
    day_first = any("/" in written and int(written.split("/")[0]) > 12 for written in stamped.values())
    return {number: day for number, written in stamped.items() if (day := _day(written, day_first))}


def _day(written: str, day_first: bool) -> str:
    """Return a day in figures as YYYY-MM-DD; empty if there is no such day."""
    first, second, third = map(int, re.split(r"[./-]", written))
    if "-" in written:
        return iso(Date(first, second, third))
    year = third if third > 99 else 2000 + third
    return iso(Date(year, second, first) if "." in written or day_first else Date(year, first, second))


def _days_of_messages(lines: Sequence[str]) -> dict[int, str]:
    """Return the days that the headers of messages state: lines such as "From: Ada" and "Date: 3 May 2026"."""
    days: dict[int, str] = {}
    for is_header, group in groupby(enumerate(lines), lambda line: bool(_HEADER.match(line[1]))):
        header = list(group)
        sent = (found["value"] for _, line in header if (found := _HEADER.match(line)) and found["sent"])
        dates = [found.date for written in sent for found in find_dates(written)] if len(header) > 1 else []
        if is_header and dates and (day := iso(dates[0])):
            days[header[0][0]] = day
    return days

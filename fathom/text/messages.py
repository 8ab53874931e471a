"""How messages stand in texts: entries of chats and logs, and headings above what a mail quotes.

An entry is a line that begins with a day and mostly a time of day: "[2026-03-17 16:40] Ada: it moved". The heading
above what a mail quotes of earlier messages is written by the reader of mail, and dates go by it.
"""

from __future__ import annotations

import re

STAMP = re.compile(
    r"(?:[-*+•] +)?[\[(*_]{0,3}(?P<date>\d{4}-\d\d-\d\d|\d{1,2}(?P<mark>[./])\d{1,2}(?P=mark)(?:\d\d)?\d\d)(?!\d)"
    r"(?:(?:,? |T)(?P<time>\d{1,2}[:.]\d\d(?:[:.]\d\d(?:[.,]\d+)?)?(?: ?[ap]\.?m\.?)?(?:Z|[+-]\d\d:?\d\d)?))?"
    r"[\])*_]{0,3}(?: ?[-–—:|])? +(?(time)(?:[^\W\d][\w .'’-]{0,40}: +)?)",
    re.IGNORECASE,
)
"""What stands before the words of an entry: its day, mostly its time, and behind a time who says it."""


def is_entry(line: str) -> bool:
    """Whether a line begins with a day and a time of day, so that it belongs to no line before it."""
    stamp = STAMP.match(line)
    return bool(stamp and stamp["time"])


def unstamped(line: str) -> str:
    """Return what an entry says, without its day and time and who says it; any other line as it is."""
    stamp = STAMP.match(line)
    return line[stamp.end() :] if stamp and stamp["time"] else line


_QUOTED = "Quoted"
_HEADING = re.compile(rf"(?:#+ )?{_QUOTED}(?:: .*)?")


def quotation(by: str) -> str:
    """Return the heading of a quotation; `by` says who wrote it and when, empty if that is not known."""
    return f"{_QUOTED}: {by}" if by else _QUOTED


def is_quotation(heading: str) -> bool:
    """Whether a heading, with or without its marks of Markdown, stands above a quotation."""
    return bool(_HEADING.fullmatch(heading.strip()))

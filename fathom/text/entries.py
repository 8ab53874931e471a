"""Lines of chats and logs that begin with a day and mostly a time of day: "[2026-03-17 16:40] Ada: it moved"."""

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

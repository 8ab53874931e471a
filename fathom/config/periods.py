"""Lengths of time as people type them: 90d, 12h, 2w."""

from __future__ import annotations

import re
from datetime import timedelta

from fathom.errors import InvalidInput

_UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


def period(text: str, option: str) -> timedelta:
    """Return the length of time that the text of an option stands for.

    Raises:
        InvalidInput: it stands for none, or for one of no length.
    """
    found = re.fullmatch(r"([0-9]{1,5})([mhdw])", text.strip().lower())
    length = timedelta(**{_UNITS[found[2]]: int(found[1])}) if found else timedelta()
    if not length:
        raise InvalidInput(
            f"{option} {text!r} is not a length of time.", next_step=f"give a number with m, h, d or w: {option} 90d"
        )
    return length

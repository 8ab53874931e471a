"""How long a server asks to wait: the Retry-After header (RFC 9110, 10.2.3)."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime


def retry_after(headers: Mapping[str, str], now: datetime) -> float | None:
    """Return the seconds to wait, given as a number or an HTTP date; None when the headers name neither.

    OpenAI and Azure also give milliseconds, in a header of their own, which is more exact. Names are in lower case.
    """
    milliseconds, value = headers.get("retry-after-ms", ""), headers.get("retry-after", "")
    with suppress(ValueError):
        return max(0.0, float(milliseconds) / 1_000 if milliseconds else float(value))
    with suppress(ValueError):
        until = parsedate_to_datetime(value)
        return max(0.0, (until.replace(tzinfo=until.tzinfo or UTC) - now).total_seconds())
    return None

"""What a search of the web is limited to: a period, a region, and pages that are fit for everybody.

The settings `web` limit every search of a run. A query limits itself with operators that people know from search
engines: `after:2024-03 before:2025-01-01 region:de`. The limits in a step's queries hold for the step. An operator that
cannot be read stays a word of the query.
"""

from __future__ import annotations

import re
from datetime import date
from typing import Literal, NamedTuple

from fathom.config.groups import WebSettings

Limit = Literal["dates", "region", "safe"]

_OPERATOR = re.compile(r"(?<!\S)(after|before|region):(\d{4}(?:-\d{2}(?:-\d{2})?)?|[A-Za-z]{2})(?!\S)")
_FIRST = "1990-01-01"  # for vendors that want both ends of a period


class SearchLimits(NamedTuple):
    """The limits of one search, as far as a vendor knows them; dates are in ISO 8601, a region is an ISO 3166 code."""

    since: str = ""
    until: str = ""
    region: str = ""
    safe: bool = False

    def named(
        self, *, since: str = "", until: str = "", iso_period: str = "", google_period: str = "", region: str = ""
    ) -> dict[str, str]:
        """Return the limits that are set, by a vendor's own names for them; those without a name are left out."""
        named = (
            *((since, self.since), (until, self.until), (region, self.region.upper())),
            *((iso_period, self.iso_period), (google_period, self.google_period)),
        )
        return {name: value for name, value in named if name and value}

    @property
    def period(self) -> tuple[date, date] | None:
        """The first and the last day, if there is any."""
        if not (self.since or self.until):
            return None
        return date.fromisoformat(self.since or _FIRST), date.fromisoformat(self.until or date.today().isoformat())

    @property
    def iso_period(self) -> str:
        """The period as Brave and You.com write it; empty if there is none."""
        return "to".join(map(str, self.period)) if self.period else ""

    @property
    def google_period(self) -> str:
        """The period as Google writes it; empty if there is none."""
        if not self.period:
            return ""
        first, last = (f"{day:%m/%d/%Y}" for day in self.period)
        return f"cdr:1,cd_min:{first},cd_max:{last}"


ANYWHERE = SearchLimits()


def limited(query: str, web: WebSettings) -> tuple[str, SearchLimits]:
    """Return a query without its operators and with the suffixes of the settings, and its limits."""
    own: dict[str, str] = {}

    def read(found: re.Match[str]) -> str:
        name, value = found[1], found[2]
        if (name == "region") is not value.isalpha():
            return found[0]
        try:
            own[name] = value.lower() if name == "region" else date.fromisoformat(f"{value}-01-01"[:10]).isoformat()
        except ValueError:
            return found[0]
        return ""

    words = [*_OPERATOR.sub(read, query).split(), *web.suffixes]
    since, until = own.get("after", web.since or ""), own.get("before", web.until or "")
    return " ".join(words), SearchLimits(since, until, own.get("region", web.region or ""), web.safe)

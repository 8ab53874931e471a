"""Pages that are quoted only where no other answers: clickbait, and old ones where the present is asked."""

from __future__ import annotations

import re
from collections.abc import Sequence

from fathom.retrieval.dated import asks_for_newest
from fathom.sources.signals import is_sensational_title

OLD_YEARS = 3  # that a page is older than the newest one

_YEAR = re.compile(r"(?<!\d)(?:19|20)\d\d(?!\d)")


def doubtful(question: str, titles: Sequence[str], published: Sequence[str]) -> set[int]:
    """Return the numbers of the doubtful pages; `published` are their dates as search services write them."""
    years = {number: int(found[0]) for number, date in enumerate(published) if (found := _YEAR.search(date))}
    newest = max(years.values(), default=0) if asks_for_newest(question) else 0
    old = {number for number, year in years.items() if newest - year >= OLD_YEARS}
    return old | {number for number, title in enumerate(titles) if is_sensational_title(title)}

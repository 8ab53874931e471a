"""Pages that are quoted only where no other answers: clickbait, and old ones where the present is asked."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from fathom.models import SourceText
from fathom.retrieval.asked import asks_for_newest
from fathom.sources.signals import is_sensational_title

OLD_YEARS = 3  # that a page is older than the newest one

_YEAR = re.compile(r"(?<!\d)(?:19|20)\d\d(?!\d)")


class WebSource(NamedTuple):
    """What may make a page of the web doubtful. Documents are never: a user chose them."""

    title: str
    published: str  # as the search service writes it

    @classmethod
    def of(cls, text: SourceText) -> WebSource | None:
        """Return that of a text; None if it is not from the web."""
        return cls(text.title, text.published) if text.kind == "web" else None


def doubtful(question: str, pages: Sequence[WebSource | None]) -> set[int]:
    """Return the numbers of the doubtful pages."""
    web = {number: page for number, page in enumerate(pages) if page}
    years = {number: int(found[0]) for number, page in web.items() if (found := _YEAR.search(page.published))}
    newest = max(years.values(), default=0) if asks_for_newest(question) else 0
    old = {number for number, year in years.items() if newest - year >= OLD_YEARS}
    return old | {number for number, page in web.items() if is_sensational_title(page.title)}

"""The type and authority of a domain, which are known before a page is read.

The list is `domains.toml`. Authority follows the matrix of the engine design (001, section 9.2).
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import NamedTuple

from fathom.models import Source
from fathom.models.evidence import SourceType
from fathom.sources.hosts import matching
from fathom.text.urls import host_of

UNKNOWN_AUTHORITY = 0.3  # "personal blogs, unknown sources"
RETRACTED_AUTHORITY = 0.1  # as a hoax
DOCUMENT_AUTHORITY = 0.75  # chosen by the user, but not checked by anyone

_ACADEMIC = re.compile(r"(?:\A|\.)(?:edu|(?:ac|edu)\.[a-z]{2})\Z")
_GOVERNMENT = re.compile(
    r"(?:\A|\.)(?:gov|mil|(?:gov|mil|gob|gouv|go|govt|gv|gub)\.[a-z]{2}|gc\.ca|bund\.de|admin\.ch|europa\.eu|int)\Z"
)
_BLOG = re.compile(r"//[^/]+/blogs?/")


class Rating(NamedTuple):
    """The type of a source and the authority of its domain, 0 to 1."""

    type: SourceType
    authority: float
    checks_facts: bool = False  # a fact-checking organisation


_LABELS = {
    "docs doc developer developers": Rating("documentation", 0.6),  # as a company's own data
    "forum forums community discuss": Rating("forum", 0.4),
    "blog blogs": Rating("blog", UNKNOWN_AUTHORITY),
}
"""What the first label of an unknown host tells."""


def rate(source: Source, scores: Mapping[str, float] | None = None) -> Rating:
    """Return the rating of a source by its address; `scores` are the user's own authorities by domain.

    A work that was retracted has none, wherever it stands.
    """
    if source.kind == "document":
        return Rating("document", DOCUMENT_AUTHORITY)
    host = host_of(source.url)
    known = _rating(host, bool(_BLOG.search(source.url)))
    if source.reference and source.reference.retracted:
        return known._replace(authority=RETRACTED_AUTHORITY)
    own = matching(host, scores or {})
    return known._replace(authority=scores[own]) if scores and own else known


def _rating(host: str, in_blog: bool) -> Rating:
    if found := matching(host, _listed()):
        return _listed()[found]
    if _GOVERNMENT.search(host):
        return Rating("government", 1.0)
    if _ACADEMIC.search(host):
        return Rating("academic", 1.0)
    first = host.split(".", maxsplit=1)[0]
    by_label = (rating for labels, rating in _LABELS.items() if first in labels.split())
    return next(by_label, Rating("blog" if in_blog else "unknown", UNKNOWN_AUTHORITY))


@cache
def _listed() -> Mapping[str, Rating]:
    data = tomllib.loads(files("fathom.sources").joinpath("domains.toml").read_text(encoding="utf-8"))
    return {
        domain: Rating(group["type"], group["authority"], group.get("checks_facts", False))
        for group in data["group"]
        for domain in group["domains"].split()
    }

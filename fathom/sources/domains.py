"""What is known of a domain before a word of the page is read: its type and its authority.

The list lies beside this module as data. Authority follows the matrix of the engine design (001, section 9.2).
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import NamedTuple

from fathom.models import Source
from fathom.models.claims import SourceType
from fathom.sources.hosts import matching
from fathom.text.urls import host_of

UNKNOWN_AUTHORITY = 0.3  # "personal blogs, unknown sources"
DOCUMENT_AUTHORITY = 0.75  # the user chose the document, and nobody has checked it

_ACADEMIC = re.compile(r"(?:\A|\.)(?:edu|(?:ac|edu)\.[a-z]{2})\Z")
_GOVERNMENT = re.compile(
    r"(?:\A|\.)(?:gov|mil|(?:gov|mil|gob|gouv|go|govt|gv|gub)\.[a-z]{2}|gc\.ca|bund\.de|admin\.ch|europa\.eu|int)\Z"
)
_BLOG = re.compile(r"//[^/]+/blogs?/")
_BY_LABEL: Mapping[str, tuple[SourceType, float]] = {
    "docs": ("documentation", 0.6),
    "doc": ("documentation", 0.6),
    "developer": ("documentation", 0.6),
    "developers": ("documentation", 0.6),
    "forum": ("forum", 0.4),
    "forums": ("forum", 0.4),
    "community": ("forum", 0.4),
    "discuss": ("forum", 0.4),
    "blog": ("blog", UNKNOWN_AUTHORITY),
    "blogs": ("blog", UNKNOWN_AUTHORITY),
}
"""What the first label of an unknown host says; a company's documentation is its own data, so 0.6."""


class Rating(NamedTuple):
    """The type of a source and the authority of its domain, 0 to 1."""

    type: SourceType
    authority: float
    checks_facts: bool = False  # its business is checking what others say


def rate(source: Source, scores: Mapping[str, float] | None = None) -> Rating:
    """Return what a source's address says of it; `scores` are the user's own authorities by domain."""
    if source.kind == "document":
        return Rating("document", DOCUMENT_AUTHORITY)
    host = host_of(source.url)
    known = _rating(host, bool(_BLOG.search(source.url)))
    own = matching(host, scores or {})
    return known._replace(authority=scores[own]) if scores and own else known


def _rating(host: str, in_blog: bool) -> Rating:
    listed = _listed()
    if found := matching(host, listed):
        return listed[found]
    if _GOVERNMENT.search(host):
        return Rating("government", 1.0)
    if _ACADEMIC.search(host):
        return Rating("academic", 1.0)
    first = host.split(".", maxsplit=1)[0]
    if first in _BY_LABEL:
        return Rating(*_BY_LABEL[first])
    if in_blog:
        return Rating("blog", UNKNOWN_AUTHORITY)
    return Rating("unknown", UNKNOWN_AUTHORITY)


@cache
def _listed() -> Mapping[str, Rating]:
    data = tomllib.loads(files("fathom.sources").joinpath("domains.toml").read_text(encoding="utf-8"))
    return {
        domain: Rating(group["type"], group["authority"], group.get("checks_facts", False))
        for group in data["group"]
        for domain in group["domains"].split()
    }

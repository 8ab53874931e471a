"""Facts about a source from its address: its site, its authority, and the user's rules for it.

The list is `domains.toml`. Authority follows the matrix of the Research engine (9.2).
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Container, Mapping, Sequence
from functools import cache
from importlib.resources import files
from ipaddress import ip_address
from typing import NamedTuple

from fathom.config.groups import SourceRules
from fathom.models import Note, Source
from fathom.models.evidence import SourceQuality, SourceType
from fathom.text.citations import cited_ids
from fathom.text.urls import host_of

# Every user has a subdomain there, and the public suffix list does not say so.
_PLATFORMS = frozenset(("hashnode.dev", "readthedocs.org", "substack.com", "tumblr.com", "weebly.com", "wordpress.com"))


def matching(host: str, domains: Container[str]) -> str:
    """Return the longest suffix of a host, cut at a dot, that is one of some domains; empty if none is."""
    labels = host.split(".")
    suffixes = (".".join(labels[start:]) for start in range(len(labels)))
    return next((suffix for suffix in suffixes if suffix and suffix in domains), "")


def site_of(host: str) -> str:
    """Return the site a host belongs to: pages of one site are not independent of each other.

    It is the host's name below a public suffix (publicsuffix.org, in the copy that `tld` ships), under which anyone can
    register one; an unlisted suffix is taken to be one label, as the list's own rule says.
    """
    from tld import get_fld

    if platform := matching(host, _PLATFORMS):
        return ".".join(host.split(".")[-platform.count(".") - 2 :])
    if site := get_fld(host, fix_protocol=True, fail_silently=True):
        return site
    try:
        return str(ip_address(host))
    except ValueError:
        return ".".join(host.split(".")[-2:])


UNKNOWN_AUTHORITY = 0.3  # "personal blogs, unknown sources"
RETRACTED_AUTHORITY = 0.1  # as a hoax
DOCUMENT_AUTHORITY = 0.75  # chosen by the user, but not checked by anyone

_ACADEMIC = re.compile(r"(?:\A|\.)(?:edu|(?:ac|edu)\.[a-z]{2})\Z")
_GOVERNMENT = re.compile(
    r"(?:\A|\.)(?:gov|mil|(?:gov|mil|gob|gouv|go|govt|gv|gub)\.[a-z]{2}|gc\.ca|bund\.de|admin\.ch|europa\.eu|int)\Z"
)
# Servers of preprints and of data, by the prefix of their DOIs: arXiv, bioRxiv and medRxiv, Research Square, SSRN, OSF,
# Preprints.org, ChemRxiv, Zenodo, figshare.
_PREPRINT = re.compile(r"\b10\.(?:48550|1101|21203|2139|31219|31234|20944|26434|5281|6084)/")
_BLOG = re.compile(r"//[^/]+/blogs?/")


class Rating(NamedTuple):
    """The type of a source and the authority of its domain, 0 to 1."""

    type: SourceType
    authority: float
    checks_facts: bool = False  # a fact-checking organisation
    reviewed: bool = False  # a publisher or a catalogue of peer-reviewed research


_LABELS = {
    "docs doc developer developers": Rating("documentation", 0.6),  # as a company's own data
    "forum forums community discuss": Rating("forum", 0.4),
    "blog blogs": Rating("blog", UNKNOWN_AUTHORITY),
}
"""The source type that the first label of an unknown host suggests."""


def rate(source: Source, scores: Mapping[str, float] | None = None) -> Rating:
    """Return the rating of a source by its address; `scores` are the user's own authorities by domain.

    A work that was retracted has none, wherever it stands.
    """
    if source.kind == "document":
        return Rating("document", DOCUMENT_AUTHORITY)
    host = host_of(source.url)
    known = _rating(host, bool(_BLOG.search(source.url)))
    if source.reference and source.reference.retracted:
        return known._replace(authority=RETRACTED_AUTHORITY, reviewed=False)
    if _PREPRINT.search(source.reference.doi if source.reference else source.url):
        known = known._replace(reviewed=False)
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
        domain: Rating(**{name: value for name, value in group.items() if name != "domains"})
        for group in data["group"]
        for domain in group["domains"].split()
    }


PREFERRED = 0.25  # added to a page's relevance, which is 0 to 1
AUTHORITY = 0.3  # weight of the distance between a domain's authority and the middle: less than preference


def admitted(source: Source, rules: SourceRules) -> bool:
    """Whether a source may be read, by its address; the user's own documents always may."""
    if source.kind == "document":
        return True
    host = host_of(source.url)
    return not matching(host, rules.block) and (not rules.allow or bool(matching(host, rules.allow)))


def reading_bonus(source: Source, rules: SourceRules) -> float:
    """Return what to add to a result's relevance, 0 to 1: authority decides between about equally relevant pages."""
    preferred = bool(matching(host_of(source.url), rules.prefer))
    return AUTHORITY * (rate(source, rules.scores).authority - 0.5) + PREFERRED * preferred


def usable(notes: Sequence[Note], qualities: Sequence[SourceQuality], rules: SourceRules) -> list[Note]:
    """Return the notes without the bullets from sources that are not good enough."""
    poor = {quality.source_id for quality in qualities if not good_enough(quality, rules)}
    if not poor:
        return list(notes)
    kept: list[Note] = []
    for note in notes:
        bullets = [b for b in note.extraction if not (ids := cited_ids(b)) or not poor.issuperset(ids)]
        ids = [source_id for source_id in note.source_ids if source_id not in poor]
        if ids and bullets:
            kept.append(note.model_copy(update={"extraction": bullets, "source_ids": ids}))
    return kept


def good_enough(quality: SourceQuality, rules: SourceRules) -> bool:
    """Whether a scored source may be used."""
    reviewed = quality.peer_reviewed or not rules.peer_reviewed
    return quality.type == "document" or (quality.overall >= rules.min_quality and reviewed)

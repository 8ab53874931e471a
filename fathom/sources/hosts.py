"""Whose page is it: the site a host belongs to, and whether a domain covers it.

Without the public suffix list, which would have to be downloaded and kept: a site is two labels, three under a
country's general second level (`example.co.uk`) and on platforms where every user has a subdomain.
"""

from __future__ import annotations

from collections.abc import Container

_GENERAL_LABELS = "ac co com edu go gob gouv gov gv ltd me mil ne net nom or org plc sch"
_GENERAL = frozenset(_GENERAL_LABELS.split())
_PLATFORM_DOMAINS = """
blogspot.com github.io gitlab.io hashnode.dev netlify.app pages.dev readthedocs.io readthedocs.org substack.com
tumblr.com vercel.app weebly.com wixsite.com wordpress.com
"""
_PLATFORMS = frozenset(_PLATFORM_DOMAINS.split())


def matching(host: str, domains: Container[str]) -> str:
    """Return the longest suffix of a host, cut at a dot, that is one of some domains; empty if none is."""
    labels = host.split(".")
    suffixes = (".".join(labels[start:]) for start in range(len(labels)))
    return next((suffix for suffix in suffixes if suffix and suffix in domains), "")


def site_of(host: str) -> str:
    """Return the site a host belongs to: pages of one site are not independent of each other."""
    labels = host.split(".")
    if matching(host, _PLATFORMS):
        return ".".join(labels[-3:])
    country = len(labels) > 2 and len(labels[-1]) == 2 and labels[-2] in _GENERAL
    return ".".join(labels[-3:] if country else labels[-2:])

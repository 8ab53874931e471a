"""Whose page is it: the host of an address, the site it belongs to, and whether a domain covers it.

Without the public suffix list, which would have to be downloaded and kept: a site is two labels, three under a
country's general second level (`example.co.uk`) and on platforms where every user has a subdomain.
"""

from __future__ import annotations

from collections.abc import Container
from urllib.parse import urlsplit

__all__ = ["domain_of", "host_of", "matching", "site_of"]

_GENERAL_LABELS = "ac co com edu go gob gouv gov gv ltd me mil ne net nom or org plc sch"
_GENERAL = frozenset(_GENERAL_LABELS.split())
_PLATFORM_DOMAINS = """
blogspot.com github.io gitlab.io hashnode.dev netlify.app pages.dev readthedocs.io readthedocs.org substack.com
tumblr.com vercel.app weebly.com wixsite.com wordpress.com
"""
_PLATFORMS = frozenset(_PLATFORM_DOMAINS.split())


def domain_of(text: str) -> str:
    """Return what a person wrote as a domain in the form hosts have: `*.Example.org`, `.gov` or a whole address."""
    bare = text.strip()
    host = host_of(bare if "://" in bare else f"https://{bare}")
    return host.removeprefix("*.").strip(".")


def host_of(url: str) -> str:
    """Return the host of a web address in lower case and ASCII, without `www.`; empty where there is none."""
    try:
        parts = urlsplit(url.strip())
        host = parts.hostname or ""
    except ValueError:  # a bracket that is never closed
        return ""
    if parts.scheme.lower() not in ("http", "https"):
        return ""
    try:
        host = host.encode("idna").decode("ascii")
    except UnicodeError:
        host = host.lower()  # too long, or an empty label: no domain of ours covers it, and it stays as it is
    return host.rstrip(".").lower().removeprefix("www.")


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

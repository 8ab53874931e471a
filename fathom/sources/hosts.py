"""Whose page is it: the site a host belongs to, and whether a domain covers it."""

from __future__ import annotations

from collections.abc import Container
from ipaddress import ip_address

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

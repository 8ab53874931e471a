"""Addresses: their canonical form, their host, and the source ids made of them.

The ids are the same in any order of execution, so that notes written side by side never clash.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit, urlunsplit

from fathom.text.plain import clean_line

ID_DIGITS = 6
FRAGMENT_WORDS = 6
LONGEST = 2_000  # characters of an address that browsers, Word and Typst take
_IN_ADDRESSES = "!#$%&'()*+,-./:;=?@[]_~"  # the characters that RFC 3986 allows in an address
ENDING = re.compile(r"\.\w{1,8}\Z")
"""The extension of a file, at the end of its name or address."""
_URL = re.compile(r"https?://[^\s<>\"'`]+", re.IGNORECASE)
_TRACKING = ("utm_", "fbclid", "gclid", "mc_cid", "mc_eid", "ref_src")


def canonical_url(url: str) -> str:
    """Return the form of a URL under which two addresses of the same page agree.

    Scheme and host are lowercased, `www.`, default ports, fragments, tracking parameters and a trailing slash go, and
    http becomes https. Other schemes (`docs:`, `python:`) stay as they are.
    """
    try:
        parts = urlsplit(url.strip())
        port, host = parts.port, (parts.hostname or "").removeprefix("www.")
    except ValueError:  # a port that is not a number, an open bracket: keep the vendor's spelling
        return url.strip()
    if parts.scheme not in ("http", "https") or not host:
        return url.strip()
    if port and port not in (80, 443):
        host = f"{host}:{port}"
    fields = parse_qsl(parts.query, keep_blank_values=True)
    query = urlencode(sorted(field for field in fields if not field[0].lower().startswith(_TRACKING)))
    return urlunsplit(("https", host, parts.path.rstrip("/"), query, ""))


def source_ids(urls: Iterable[str]) -> dict[str, str]:
    """Return the id of each URL: `S` and the first hex digits of the SHA-256 of its canonical form.

    Two different pages of one call whose ids would agree both get longer ones.
    """
    digests = {url: hashlib.sha256(canonical_url(url).encode()).hexdigest() for url in urls}
    ids: dict[str, str] = {}
    for url, digest in digests.items():
        digits = ID_DIGITS
        while any(other != digest and other[:digits] == digest[:digits] for other in digests.values()):
            digits += 2
        ids[url] = f"S{digest[:digits]}"
    return ids


def web_address(url: str) -> str:
    """Return a web address with the characters that it may not hold quoted, or nothing if it is not a web address."""
    address = quote(clean_line(url), safe=_IN_ADDRESSES)
    try:
        parts = urlsplit(address)
        port = parts.port
    except ValueError:  # a port that is no number, an open bracket
        return ""
    return address if parts.scheme in ("http", "https") and parts.hostname and port != 0 else ""


def linkable(url: str) -> str:
    """Return a web address as `web_address` does, but nothing for one that is longer than programs take."""
    address = web_address(url)
    return address if len(address) <= LONGEST else ""


def at_text(address: str, text: str) -> str:
    """Return an address at which a browser shows and marks a text (WICG, URL fragment text directives).

    Of a longer text it names the first and the last words.
    """
    words = text.split()
    parts = [words] if len(words) <= 2 * FRAGMENT_WORDS else [words[:FRAGMENT_WORDS], words[-FRAGMENT_WORDS:]]
    named = ",".join(quote(" ".join(part), safe="").replace("-", "%2D") for part in parts)
    return f"{address}{'' if '#' in address else '#'}:~:text={named}"


def urls_in(text: str) -> list[str]:
    """Return the web addresses that a person wrote in a text, without the punctuation around them, each once."""
    found: list[str] = []
    for match in _URL.finditer(text):
        url = match[0].rstrip(".,;:!?*_")
        while url and url[-1] in ")]}" and url.count(url[-1]) > url.count("([{"[")]}".index(url[-1])]):
            url = url[:-1].rstrip(".,;:!?*_")
        found.append(url)
    return list(dict.fromkeys(found))


def domain_of(text: str) -> str:
    """Return a domain in the form of hosts, from a person's spelling: `*.Example.org`, `.gov` or a whole address."""
    bare = text.strip()
    host = host_of(bare if "://" in bare else f"https://{bare}")
    return host.removeprefix("*.").strip(".")


def host_of(url: str) -> str:
    """Return the host of a web address in lower case and ASCII, without `www.`; empty if there is none."""
    try:
        parts = urlsplit(url.strip())
        host = parts.hostname or ""
    except ValueError:  # a bracket that is never closed
        return ""
    if parts.scheme not in ("http", "https"):
        return ""
    try:
        host = host.encode("idna").decode("ascii")
    except UnicodeError:
        host = host.lower()  # too long, or an empty label: no domain of ours covers it, and it stays as it is
    return host.rstrip(".").lower().removeprefix("www.")


def file_of(address: str) -> tuple[str, str]:
    """Return the folder and the name of the file to which an address or path leads."""
    folder, _, name = unquote(urlsplit(address).path).rstrip("/").rpartition("/")
    return folder, name

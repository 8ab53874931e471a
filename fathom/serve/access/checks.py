"""What is refused before anybody asks who sent a request: wrong hosts, foreign pages and unusual paths.

Why each check is there stands in docs/access.md.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable
from http import HTTPMethod
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.types import Scope

from fathom.errors import ForeignPage, NotAllowed, NotThere, WrongHost
from fathom.serve.options import Options

PROGRAMS = ("/api/", "/v1/", "/mcp")
"""What answers programs, which have no use for pages."""
SAFE = (HTTPMethod.GET, HTTPMethod.HEAD, HTTPMethod.OPTIONS)
SECURITY_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    # Not `no-referrer`: browsers then send `Origin: null` with the forms of our own pages.
    "Referrer-Policy": "same-origin",
    "X-Frame-Options": "DENY",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Cache-Control": "no-store",
}
"""Of every answer; one that has such a header keeps its own."""
_FORWARDED = ("forwarded", "x-forwarded-for", "x-forwarded-host")
_ENCODED = (b"%2f", b"%5c", b"%00")  # which mean something else to a server, a proxy and a file system


def check_path(scope: Scope) -> None:
    """Check that a path means the same to everybody.

    Raises:
        NotThere: it climbs, or has encoded separators or control characters.
    """
    path, raw = str(scope["path"]), bytes(scope.get("raw_path") or b"").lower()
    odd = any(part in (".", "..") for part in path.split("/")) or "\\" in path or not path.isprintable()
    if odd or any(encoded in raw for encoded in _ENCODED):
        raise NotThere("This address does not exist.")


def check_host(scope: Scope, headers: Headers, options: Options) -> None:
    """Check that a request names this server, which one that was led here by a forged name does not.

    Raises:
        WrongHost: it names another one, or several.
    """
    named = headers.getlist("host")
    if len(named) == 1:
        host, port = _split(named[0])
        if host in {_split(name)[0] for name in options.hosts} - {""}:
            return
        address, own_port = (scope.get("server") or ("", None))[:2]
        if port == own_port and host in _names_of(str(address)):
            return
    raise WrongHost(
        f"This server is not {', '.join(named)[:100]!r}.",
        next_step="use the address that fathom serve printed; allow other names with --host-name NAME",
    )


def check_unproxied(headers: Headers, options: Options) -> None:
    """Check that nobody has put an open server behind a proxy, where others than this machine reach it.

    Raises:
        NotAllowed: a proxy has passed the request on.
    """
    if options.open and any(name in headers for name in _FORWARDED):
        raise NotAllowed(
            "A proxy has passed this request on to a server without sign-in.",
            next_step="start it with --sign-in and --host-name, or with --user-header",
        )


def check_origin(method: str, headers: Headers, options: Options) -> None:
    """Check that no page of another site sends something that changes anything.

    Programs send neither header. Browsers send both, whatever a page wants.

    Raises:
        ForeignPage: one does.
    """
    if method in SAFE:
        return
    origins = headers.getlist("origin")
    if len(origins) == 1 and origins[0] in options.origins:
        return
    site = headers.get("sec-fetch-site", "same-origin")
    own = all(_is_own(origin, headers.get("host", "")) for origin in origins)
    if len(origins) > 1 or not own or site not in ("same-origin", "none"):
        raise ForeignPage("A page of another site may not do this.")


def shared_with(origins: Iterable[str], headers: Headers) -> dict[str, str]:
    """Return the headers that let a page of a named origin read an answer; never with cookies."""
    origin = headers.get("origin", "")
    if origin not in origins:
        return {}
    return {
        "Access-Control-Allow-Origin": origin,
        "Access-Control-Expose-Headers": "Location, Retry-After, Mcp-Session-Id",
        "Vary": "Origin",
    }


def is_program(path: str) -> bool:
    """Whether a path is one that programs ask, and no page."""
    return path.startswith(PROGRAMS)


def is_preflight(method: str, headers: Headers) -> bool:
    """Whether a browser asks what a page of another site may do."""
    return method == HTTPMethod.OPTIONS and "access-control-request-method" in headers


PREFLIGHT = {
    "Access-Control-Allow-Methods": "GET, POST, PUT, PATCH, DELETE",
    "Access-Control-Allow-Headers": "Authorization, Content-Type, Idempotency-Key, Last-Event-ID, "
    "Mcp-Session-Id, Mcp-Protocol-Version",
    "Access-Control-Max-Age": "600",
}


def peer_of(scope: Scope, headers: Headers, options: Options) -> tuple[str, bool]:
    """Return the address of whoever sent a request, and whether it came over https, as trusted proxies tell it."""
    peer = str((scope.get("client") or ("",))[0])
    secure = scope.get("scheme") == "https"
    if options.trusts(peer):
        last = headers.get("x-forwarded-for", "").rpartition(",")[2].strip()
        return last or peer, secure or headers.get("x-forwarded-proto", "").strip().lower() == "https"
    return peer, secure


def _names_of(address: str) -> set[str]:
    """Return what a server may be called at whose address a request arrived."""
    try:
        bound = ipaddress.ip_address(address)
    except ValueError:
        return set()
    if isinstance(bound, ipaddress.IPv6Address) and bound.ipv4_mapped:
        bound = bound.ipv4_mapped
    return {bound.compressed} | ({"127.0.0.1", "localhost", "::1"} if bound.is_loopback else set())


def _split(host: str) -> tuple[str, int | None]:
    """Return the name and the port of a Host header; no name if it is not one."""
    try:
        parts = urlsplit(f"//{host}")
        plain = parts.netloc == host and "@" not in host and host.isascii() and host.isprintable() and " " not in host
        return (parts.hostname or "", parts.port or 80) if plain else ("", None)
    except ValueError:
        return "", None


def _is_own(origin: str, host: str) -> bool:
    try:
        parts = urlsplit(origin)
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and parts.netloc.lower() == host.lower()

"""What every request must pass before a route sees it: the right host, no foreign page, and a caller who is known.

What is refused before anybody asks who sent a request: wrong hosts, foreign pages and unusual paths. Why each check
is there stands in docs/access.md.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterable
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass, replace
from hmac import compare_digest
from http import HTTPMethod, HTTPStatus
from time import monotonic
from urllib.parse import parse_qs, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from fathom.errors import (
    FathomError,
    ForeignPage,
    InvalidInput,
    NotAllowed,
    NotSignedIn,
    NotThere,
    TooLarge,
    TooSlow,
    WrongHost,
)
from fathom.interfaces.uploads import has_files
from fathom.service.caller import AccessRole, Caller
from fathom.service.limits import RequestRates
from fathom.service.links import PUBLIC
from fathom.service.options import Options, ip_address_of
from fathom.service.outages import asking_patiently
from fathom.service.tokens import COOKIE, LOCAL_NAME, BrowserSession, BrowserSessions, Tokens, check_name
from fathom.storage.store import ArtifactStore

LOCAL = Caller(LOCAL_NAME, AccessRole.admin)
"""Whoever uses this machine, where only it can reach the server."""
PER_MINUTE = 600
"""Requests of callers whose token says nothing of it."""
SIGN_IN = "/sign-in"
_PUBLIC = ("/api/v1/health", "/api/v1/ready", SIGN_IN)
_STATIC = "/static/"
_OPEN = (_STATIC, PUBLIC)
"""Where anyone may read; a public link says itself what it shows."""


@dataclass(frozen=True)
class Visit:
    """What is known of a request. `peer`: the address it came from. `secure`: over https."""

    caller: Caller | None
    session: BrowserSession | None
    peer: str
    secure: bool


class Gate:
    """Knows who may come in. One for each application."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self.store = ArtifactStore(options.artifacts)
        self.tokens = Tokens(self.store)
        self.sessions = BrowserSessions(self.store)
        self.rates = RequestRates()

    async def admit(self, scope: Scope, headers: Headers) -> Visit:
        """Return who sent a request.

        Raises:
            NotSignedIn: nobody who is known, and the address is not for everybody.
            NotAllowed: the request claims to come from a trusted proxy.
            TooManyRequests: the caller sends too many.
        """
        peer, secure = peer_of(scope, headers, self.options)
        visit = Visit(None, None, peer, secure)
        public = scope["path"] in _PUBLIC or str(scope["path"]).startswith(_OPEN)
        try:
            caller, session = await self._known(scope, headers)
        except NotSignedIn:
            if public:
                return visit
            raise
        if caller is not LOCAL and not public:
            self.rates.take(caller.name, caller.limits.requests_per_minute or PER_MINUTE)
        return replace(visit, caller=caller, session=session)

    async def still(self, visit: Visit) -> bool:
        """Whether whoever began to read an answer may go on."""
        try:
            if visit.caller and visit.caller.token:
                await self.tokens.of(visit.caller.token)
            if visit.session:
                await self.sessions.read(visit.session.cookie)
        except NotSignedIn:
            return False
        return True

    async def _known(self, scope: Scope, headers: Headers) -> tuple[Caller, BrowserSession | None]:
        if user := self._named_by_proxy(scope, headers):
            return Caller(user, self.options.proxy_role, limits=self.options.proxy_limits), None
        if self.options.open:
            return LOCAL, None
        if sent := headers.get("authorization"):
            scheme, _, text = sent.partition(" ")
            if scheme.lower() != "bearer":
                raise NotSignedIn("Send a token: Authorization: Bearer fathom_...")
            return (await self.tokens.check(text.strip())).caller, None
        if cookie := Request(scope).cookies.get(COOKIE):
            session = await self.sessions.read(cookie)
            return (await self.tokens.of(session.token_id)).caller, session
        raise NotSignedIn("Sign in with a token.")

    def _named_by_proxy(self, scope: Scope, headers: Headers) -> str:
        sent = headers.getlist(self.options.user_header) if self.options.user_header else []
        if not sent:
            return ""
        if len(sent) > 1 or not self.options.trusts(str((scope.get("client") or ("",))[0])):
            raise NotAllowed(
                f"Only a trusted proxy may send {self.options.user_header}, and only once.",
                next_step="leave out the header; for a proxy on another machine, use --trusted-proxy ADDRESS",
            )
        try:
            return check_name(sent[0])
        except InvalidInput as error:
            raise NotSignedIn(f"The proxy names an invalid user: {error.message}") from None


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
    """Check that nobody has put an open server behind a proxy, where other machines reach it.

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
    own = all(_is_own(origin, headers.get("host", "")) for origin in origins)
    if len(origins) > 1 or not own or _from_elsewhere(headers):
        raise ForeignPage("A page of another site may not do this.")


def _from_elsewhere(headers: Headers) -> bool:
    """Whether a browser says that a page of another site has made it send a request."""
    return headers.get("sec-fetch-site", "none") not in ("same-origin", "none")


class Compression(GZipMiddleware):
    """ASGI middleware that compresses answers for whoever asks for it, except where another site has led to a page.

    That site could put guesses into the address and tell by the length of the compressed page which of them are in it
    (the attack named BREACH). Streams of events are not compressed.
    """

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, compressed or as it is."""
        plain = scope["type"] != "http" or _from_elsewhere(Headers(scope=scope))
        await (self.app if plain else super().__call__)(scope, receive, send)


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
        # Of several addresses, in one line or in several, the proxy has added the last; its client may send any others.
        last = ",".join(headers.getlist("x-forwarded-for")).rpartition(",")[2].strip()
        return last or peer, secure or headers.get("x-forwarded-proto", "").strip().lower() == "https"
    return peer, secure


def _names_of(address: str) -> set[str]:
    """Return what a server may be called at whose address a request arrived."""
    if (bound := ip_address_of(address)) is None:
        return set()
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


MOST_BYTES = 2 * 1024 * 1024
"""Of a body that is no upload."""
_UPLOADS = re.compile(r"POST (?:/|(?:/api/v1)?/corpora|/corpora/[^/]+/files)|PUT /api/v1/corpora/[^/]+/files")
"""Where forms with files go: their routes read the body themselves, with limits of their own, and no other does."""
LOOK_SECONDS = 2.0  # between two looks at whether somebody who follows a stream still may
_STREAM = "text/event-stream"

OnError = Callable[[Request, Exception], Awaitable[Response]]


class Guard:
    """ASGI middleware that sets `request.state.caller`, `session`, `peer` and `secure`, or answers with `on_error`."""

    def __init__(self, app: ASGIApp, gate: Gate, on_error: OnError) -> None:
        self._app = app
        self._gate = gate
        self._on_error = on_error

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on if it may come in."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        with ExitStack() as counted:
            await self._answer(scope, receive, send, counted)

    async def _answer(self, scope: Scope, receive: Receive, send: Send, counted: ExitStack) -> None:
        headers = Headers(scope=scope)
        answering = _Answering(send, shared_with(self._gate.options.origins, headers))
        try:
            if is_preflight(scope["method"], headers) and answering.shared:
                self._check(scope, headers)
                await Response(None, HTTPStatus.NO_CONTENT, PREFLIGHT)(scope, receive, answering.send)
                return
            self._check(scope, headers)
            visit = await self._gate.admit(scope, headers)
            if visit.caller and (connection := scope.get("state", {}).get("connection")):
                connection.is_known()
            receive = self._arriving(scope, receive, visit)
            if visit.caller and visit.caller is not LOCAL and _wants_stream(scope, headers):
                self._gate.rates.open_stream(visit.caller.name)
                counted.callback(self._gate.rates.close_stream, visit.caller.name)
            body = await self._body(scope, headers, receive, visit)
        except ClientDisconnect:
            return  # half a request means nothing
        except FathomError as error:
            await (await self._on_error(Request(scope), error))(scope, receive, answering.send)
            return
        scope.setdefault("state", {}).update(vars(visit))
        await self._pass(scope, receive if body is None else _replayed(body, receive), answering, visit, counted)

    def _check(self, scope: Scope, headers: Headers) -> None:
        check_host(scope, headers, self._gate.options)
        check_path(scope)
        check_unproxied(headers, self._gate.options)
        check_origin(scope["method"], headers, self._gate.options)

    async def _body(self, scope: Scope, headers: Headers, receive: Receive, visit: Visit) -> bytes | None:
        """Return the body of a request that changes something, checked; None if the route reads it itself."""
        method, path = scope["method"], scope["path"]
        if method in SAFE:
            return None
        upload = has_files(headers) and _UPLOADS.fullmatch(f"{method} {path}")
        body = None if upload else await _read(receive, headers)
        if visit.session and path != SIGN_IN:
            sent = _secret(scope, headers, body)
            if not (sent.isascii() and compare_digest(visit.session.csrf, sent)):
                raise ForeignPage("The secret of the form is missing or belongs to another session.")
        return body

    def _arriving(self, scope: Scope, receive: Receive, visit: Visit) -> Receive:
        """Return what waits for the parts of a body, and for each only as long as the options say.

        A stranger's whole body has that time.
        """
        seconds, loop = self._gate.options.connections.body_seconds, asyncio.get_running_loop()
        until, complete = loop.time() + seconds, scope["method"] in SAFE

        async def arriving() -> Message:
            nonlocal until, complete
            if complete:
                return await receive()  # that the client goes
            if visit.caller:
                until = loop.time() + seconds
            try:
                async with asyncio.timeout_at(until):
                    message = await receive()
            except TimeoutError:
                raise TooSlow(f"Nothing more of the body arrived in {seconds:g} seconds.") from None
            complete = message["type"] != "http.request" or not message.get("more_body")
            return message

        return arriving

    async def _pass(
        self, scope: Scope, receive: Receive, answering: _Answering, visit: Visit, counted: ExitStack
    ) -> None:
        """Have the request answered; an answer that takes long ends when its reader may no longer have it.

        An answer that turns out to be no stream is not counted as one any longer.
        """
        looked = monotonic()

        async def send(message: Message) -> None:
            nonlocal looked
            if message["type"] == "http.response.start" and not _is_stream(message):
                counted.close()
            elif message.get("more_body") and monotonic() - looked > LOOK_SECONDS:
                looked = monotonic()
                if not await self._gate.still(visit):
                    cut.reschedule(asyncio.get_running_loop().time())
                    await asyncio.Event().wait()  # in whatever task this is, until it is cancelled
            await answering.send(message)

        try:
            with nullcontext() if scope["method"] in SAFE else asking_patiently():
                async with asyncio.timeout(None) as cut:
                    await self._app(scope, receive, send)
        except TimeoutError:
            if not cut.expired():
                raise
            await answering.send({"type": "http.response.body", "body": b"", "more_body": False})


class _Answering:
    """Sends an answer with the headers that each must have. `shared`: those for a page of another site."""

    def __init__(self, send: Send, shared: dict[str, str]) -> None:
        self._send = send
        self.shared = shared

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in (SECURITY_HEADERS | self.shared).items():
                headers.setdefault(name, value)
        await self._send(message)


async def _read(receive: Receive, headers: Headers) -> bytes:
    length = headers.get("content-length", "")
    if length.isdecimal() and int(length[:20]) > MOST_BYTES:
        raise _too_large()
    parts, size = list[bytes](), 0
    while True:
        message = await receive()
        if message["type"] != "http.request":
            raise ClientDisconnect
        parts.append(message.get("body", b""))
        size += len(parts[-1])
        if size > MOST_BYTES:
            raise _too_large()
        if not message.get("more_body"):
            return b"".join(parts)


def _too_large() -> TooLarge:
    return TooLarge(f"The body is larger than {MOST_BYTES >> 20} MB.")


def _replayed(body: bytes, receive: Receive) -> Receive:
    """Return what gives an application a body that was read already, and then what else comes."""
    waiting = [body]

    async def replayed() -> Message:
        if waiting:
            return {"type": "http.request", "body": waiting.pop(), "more_body": False}
        return await receive()

    return replayed


def _secret(scope: Scope, headers: Headers, body: bytes | None) -> str:
    """Return what was sent as the secret of the session's forms: a header, a field, or with files a parameter."""
    if sent := headers.get("x-csrf-token"):
        return sent
    form = headers.get("content-type", "").startswith("application/x-www-form-urlencoded")
    source: bytes = scope["query_string"] if has_files(headers) else body or b"" if form else b""
    try:
        return parse_qs(source.decode("latin-1"), max_num_fields=1_000).get("csrf_token", [""])[0]
    except ValueError:  # too many fields
        return ""


def _wants_stream(scope: Scope, headers: Headers) -> bool:
    path = str(scope["path"])
    known = path.endswith(("/events", "/stream")) or path.startswith(("/v1/", "/mcp"))
    return known or _STREAM in headers.get("accept", "")


def _is_stream(message: Message) -> bool:
    return Headers(raw=message.get("headers", ())).get("content-type", "").startswith(_STREAM)

"""What every request must pass before a route sees it: the right host, no foreign page, and a caller who is known."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from time import monotonic
from urllib.parse import parse_qs

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from fathom.errors import FathomError, ForeignPage, TooLarge
from fathom.serve.access import checks
from fathom.serve.access.gate import SIGN_IN, Gate, Visit, proves

MOST_BYTES = 2 * 1024 * 1024
"""Of a body that is no upload."""
UPLOADS = ("/api/v1/corpora", "/corpora")
"""Where forms with files go: their routes read the body themselves, with limits of their own."""
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
        if scope["type"] == "websocket":  # nothing here speaks it
            await send({"type": "websocket.close", "code": 1008})
            return
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        answering = _Answering(send, checks.shared_with(self._gate.options.origins, headers))
        try:
            if checks.is_preflight(scope["method"], headers) and answering.shared:
                self._check(scope, headers)
                await Response(None, HTTPStatus.NO_CONTENT, checks.PREFLIGHT)(scope, receive, answering.send)
                return
            self._check(scope, headers)
            visit = await self._gate.admit(scope, headers)
            if visit.caller and visit.caller.token and _wants_stream(scope, headers):
                self._gate.rates.check_stream(visit.caller.name)
            body = await self._body(scope, headers, receive, visit)
        except FathomError as error:
            await (await self._on_error(Request(scope), error))(scope, receive, answering.send)
            return
        scope.setdefault("state", {}).update(vars(visit))
        await self._pass(scope, receive if body is None else _replayed(body, receive), answering, visit)

    def _check(self, scope: Scope, headers: Headers) -> None:
        checks.check_host(scope, headers, self._gate.options)
        checks.check_path(scope)
        checks.check_unproxied(headers, self._gate.options)
        checks.check_origin(scope["method"], headers, self._gate.options)

    async def _body(self, scope: Scope, headers: Headers, receive: Receive, visit: Visit) -> bytes | None:
        """Return the body of a request that changes something, checked; None if the route reads it itself."""
        if scope["method"] in checks.SAFE:
            return None
        upload = _has_files(headers) and any(_below(scope["path"], folder) for folder in UPLOADS)
        body = None if upload else await _read(receive, headers)
        if visit.session and scope["path"] != SIGN_IN and not proves(visit.session, _secret(scope, headers, body)):
            raise ForeignPage("The secret of the form is missing or belongs to another session.")
        return body

    async def _pass(self, scope: Scope, receive: Receive, answering: _Answering, visit: Visit) -> None:
        """Have the request answered; an answer that takes long ends when its reader may no longer have it."""
        rates, name = self._gate.rates, visit.caller.name if visit.caller else ""
        looked, streams = monotonic(), False

        async def send(message: Message) -> None:
            nonlocal looked, streams
            if message["type"] == "http.response.start" and _is_stream(message):
                streams = True
                rates.opened(name)
            elif message.get("more_body") and monotonic() - looked > LOOK_SECONDS:
                looked = monotonic()
                if not await self._gate.still(visit):
                    cut.reschedule(asyncio.get_running_loop().time())
                    await asyncio.Event().wait()  # in whatever task this is, until it is cancelled
            await answering.send(message)

        try:
            async with asyncio.timeout(None) as cut:
                await self._app(scope, receive, send)
        except TimeoutError:
            if not cut.expired():
                raise
            await answering.send({"type": "http.response.body", "body": b"", "more_body": False})
        finally:
            if streams:
                rates.closed(name)


class _Answering:
    """Sends an answer with the headers that each must have. `shared`: those for a page of another site."""

    def __init__(self, send: Send, shared: dict[str, str]) -> None:
        self._send = send
        self.shared = shared

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in (checks.SECURITY_HEADERS | self.shared).items():
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
            return b"".join(parts)  # the client has gone
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
    source: bytes = scope["query_string"] if _has_files(headers) else body or b"" if form else b""
    try:
        return parse_qs(source.decode("latin-1"), max_num_fields=1_000).get("csrf_token", [""])[0]
    except ValueError:  # too many fields
        return ""


def _wants_stream(scope: Scope, headers: Headers) -> bool:
    path = str(scope["path"])
    return path.endswith("/events") or path.startswith("/v1/") or _STREAM in headers.get("accept", "")


def _is_stream(message: Message) -> bool:
    return Headers(raw=message.get("headers", ())).get("content-type", "").startswith(_STREAM)


def _has_files(headers: Headers) -> bool:
    return headers.get("content-type", "").lower().startswith("multipart/form-data")


def _below(path: str, folder: str) -> bool:
    return path == folder or path.startswith(f"{folder}/")

"""Functions that all HTTP clients share: a name, certificates, limits on answers, and the pace of requests.

The body of an HTTP answer has a limit on its bytes, on the wire and after unpacking, which holds while it arrives.
httpx would unpack a whole chunk at once: a small one could hold gigabytes.

Limits on requests to a provider may hold over all processes. Inside a process, requests to one provider are spaced and
counted where they are made. Only a server can know that several machines share one quota, so a run is given a `Turns`
that asks it. Runs of one process may have their own event loops, so the pace of a public service is kept without
objects of a loop.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
import threading
import time
import zlib
from collections.abc import AsyncIterable, AsyncIterator, Callable, Collection, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from contextvars import ContextVar
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import cache
from importlib.metadata import version
from ipaddress import ip_address
from typing import TYPE_CHECKING, Literal
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from fathom.errors import InvalidInput, ToolRateLimited

if TYPE_CHECKING:
    import httpx


@cache  # reading the version takes longer than many a request
def user_agent(contact: str = "") -> str:
    """Return the user agent for web servers and their robots.txt, with the contact address, if any."""
    name = f"fathom/{version('fathom-research')}"
    return f"{name} (mailto:{contact})" if contact else name


@cache
def tls() -> ssl.SSLContext:
    """Return the certificates that httpx trusts; reading them takes longer than a search over a local network."""
    import httpx

    return httpx.create_ssl_context()


Sender = Literal["tools", "models", "traces"]
_kept_in: ContextVar[frozenset[Sender]] = ContextVar("fathom_kept_in", default=frozenset())


@asynccontextmanager
async def keeping_in(senders: Collection[Sender]) -> AsyncIterator[None]:
    """Let some senders reach only this machine and its private network inside the block."""
    token = _kept_in.set(frozenset(senders))
    try:
        yield
    finally:
        _kept_in.reset(token)


def may_send(sender: Sender, address: str) -> bool:
    """Return whether a sender may ask an address; it is asked by every client before a request."""
    return sender not in _kept_in.get() or is_local(address)


def check_sending(sender: Sender, address: str) -> None:
    """Check that a sender may ask an address.

    Raises:
        InvalidInput: the scope of the run forbids it.
    """
    if not may_send(sender, address):
        host = urlsplit(address).hostname or "an address beyond this machine"
        message = f"The scope of the run keeps its {sender} from {host}{through(address)}, so nothing was sent."
        raise InvalidInput(message, next_step="choose another --scope, or an address on this machine")


def is_local(address: str) -> bool:
    """Return whether requests to an address stay on this machine and its private network, those by a proxy included."""
    host, proxy = urlsplit(address).hostname, proxy_of(address)
    return bool(host) and _is_near(host) and (not proxy or _is_near(proxy))


def proxy_of(address: str) -> str:
    """Return the host of the proxy that the environment names for requests to an address; empty if it names none."""
    parts, proxies = urlsplit(address), getproxies()
    proxy = proxies.get(parts.scheme) or proxies.get("all", "")
    if not proxy or not parts.hostname or proxy_bypass(parts.hostname):
        return ""
    return urlsplit(f"//{proxy.rpartition('//')[2]}").hostname or proxy


def through(address: str) -> str:
    """Return what a message says behind an address: the proxy that requests to it go through, if there is one."""
    return f" through the proxy {proxy}" if (proxy := proxy_of(address)) else ""


@cache
def _is_near(host: str) -> bool:
    """Return whether a host is this machine or in its private network; a name is, if all its addresses are."""
    try:
        found = {ip_address(str(info[4][0]).partition("%")[0]) for info in socket.getaddrinfo(host, None)}
    except OSError:  # it has no address, so it cannot be asked either
        return False
    return all(ip.is_loopback or (ip.is_private and not ip.is_link_local) for ip in found)


PIECE = 2**16  # bytes unpacked at once
ENCODINGS = "gzip, deflate"  # encodings that a request may accept if its answer is read here
_WBITS = {"gzip": 31, "x-gzip": 31, "deflate": 15}


class BodyTooLarge(Exception):
    """The body is larger than a limit in bytes."""

    def __init__(self, most: int) -> None:
        super().__init__(f"the answer is larger than {most / 1024:,.0f} KB.")


class BodyUnreadable(ValueError):
    """The body cannot be unpacked."""


async def unpacked(chunks: AsyncIterable[bytes], encoding: str, most: int) -> AsyncIterator[bytes]:
    """Yield a body in pieces, unpacked according to its Content-Encoding.

    Raises:
        BodyTooLarge: after the piece with which it exceeds `most` bytes, on the wire or unpacked.
        BodyUnreadable: it is damaged, or compressed in another way than gzip or deflate.
    """
    unpacker = _Unpacker(encoding.strip().lower())
    received = size = 0
    async for chunk in chunks:
        received += len(chunk)
        for piece in unpacker.feed(chunk):
            size += len(piece)
            yield piece
            if size > most:
                raise BodyTooLarge(most)
        if received > most:
            raise BodyTooLarge(most)


def limit_body(response: httpx.Response, most: int) -> None:
    """Make a body that is still unread raise like `unpacked`; for a response hook of an httpx client."""
    import httpx

    assert isinstance(response.stream, httpx.AsyncByteStream)
    stream: httpx.AsyncByteStream = response.stream
    encoding = response.headers.pop("content-encoding", "")

    class LimitedStream(httpx.AsyncByteStream):
        async def __aiter__(self) -> AsyncIterator[bytes]:
            async for piece in unpacked(stream, encoding, most):
                yield piece

        async def aclose(self) -> None:
            await stream.aclose()

    response.stream = LimitedStream()


class _Unpacker:
    """Unpacks a stream in pieces of limited size."""

    def __init__(self, encoding: str) -> None:
        if encoding not in ("", "identity", *_WBITS):
            raise BodyUnreadable(f"is compressed in an unsupported way: {encoding[:40]!r}")
        self._stream = zlib.decompressobj(_WBITS[encoding]) if encoding in _WBITS else None
        self._raw = encoding == "deflate"  # some servers leave out the header

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        """Yield the contents of a chunk, at most 64 KB at once."""
        if self._stream is None:
            yield chunk
            return
        try:
            while chunk and not self._stream.eof:
                try:
                    piece = self._stream.decompress(chunk, PIECE)
                except zlib.error:
                    if not self._raw:
                        raise
                    self._stream, self._raw = zlib.decompressobj(-15), False
                    continue
                self._raw = False
                yield piece
                chunk = self._stream.unconsumed_tail
        except zlib.error as error:
            raise BodyUnreadable("is damaged: it cannot be decompressed") from error


Turns = Callable[[str], AbstractAsyncContextManager[None]]
"""Given the name of a provider, such as `openai` or `tavily`: waits for a request's turn, and holds its place."""

_turns: ContextVar[Turns | None] = ContextVar("fathom_turns", default=None)


@asynccontextmanager
async def sharing(turns: Turns) -> AsyncIterator[None]:
    """Have the requests inside the block wait for their turn."""
    token = _turns.set(turns)
    try:
        yield
    finally:
        _turns.reset(token)


@asynccontextmanager
async def turn(provider: str) -> AsyncIterator[None]:
    """Make one request to a provider inside the block, once the limits that all processes share allow it."""
    if (turns := _turns.get()) is None:
        yield
        return
    async with turns(provider):
        yield


LONGEST_WAIT = 30.0  # seconds that a request waits for the rest that a service asked for
LONGEST_REST = 60 * 60.0
_GLANCE = 0.02  # seconds between two checks for one's turn


class RequestPace:
    """Lets a number of requests to a service run at once, and starts them some seconds apart."""

    def __init__(self, service: str, at_once: int) -> None:
        self._service = service
        self._places = threading.Semaphore(at_once)
        self._door = threading.Lock()
        self._free_at = 0.0

    @asynccontextmanager
    async def turn(self, apart: float) -> AsyncIterator[None]:
        """Make one request inside the block, once it is its turn; the next starts at least `apart` seconds later.

        Raises:
            ToolRateLimited: the service asked for a longer rest than a request waits for.
        """
        async with _held(self._places):
            async with _held(self._door):
                wait = self._free_at - time.monotonic()
                if wait > LONGEST_WAIT:
                    message = f"{self._service} asked not to be asked again for another {wait:.0f} seconds."
                    raise ToolRateLimited(message, retry_after=wait)
                await asyncio.sleep(max(0.0, wait))
                self._free_at = time.monotonic() + apart
            yield

    def rest(self, seconds: float) -> None:
        """Start no request for some seconds, at most an hour: the service asked for it."""
        self._free_at = max(self._free_at, time.monotonic() + min(seconds, LONGEST_REST))


@cache
def pace_of(service: str, address: str, at_once: int) -> RequestPace:
    """Return the pace of the service at an address, the same for all who ask it."""
    return RequestPace(service, at_once)


@asynccontextmanager
async def _held(place: threading.Semaphore | threading.Lock) -> AsyncIterator[None]:
    while not place.acquire(blocking=False):  # noqa: ASYNC110 (an event belongs to one loop)
        await asyncio.sleep(_GLANCE)
    try:
        yield
    finally:
        place.release()


def retry_after(headers: Mapping[str, str], now: datetime) -> float | None:
    """Return the seconds to wait, given as a number or an HTTP date; None when the headers name neither.

    OpenAI and Azure also give milliseconds, in a header of their own, which is more exact. Names are in lower case.
    """
    milliseconds, value = headers.get("retry-after-ms", ""), headers.get("retry-after", "")
    with suppress(ValueError):
        return max(0.0, float(milliseconds) / 1_000 if milliseconds else float(value))
    with suppress(ValueError):
        until = parsedate_to_datetime(value)
        return max(0.0, (until.replace(tzinfo=until.tzinfo or UTC) - now).total_seconds())
    return None

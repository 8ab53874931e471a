"""One HTTP request: to a permitted address only, with limits on its time and its bytes, and in its turn.

httpx would unpack a whole chunk at once and follow redirects by itself. Here memory stays flat, and the caller checks
a redirect before following it.

Connections to permitted addresses only: a name is resolved once, all its addresses are checked, one of them is used.
This happens below HTTP, so it covers redirects, robots.txt and a DNS answer that changes between check and use.

robots.txt is obeyed, and no host gets requests too often or several at once.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import socket
import ssl
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from ipaddress import ip_address
from typing import TYPE_CHECKING

import httpcore
import httpx

from fathom.errors import ToolRejected, ToolTimeout, ToolUnavailable
from fathom.network import ENCODINGS, BodyTooLarge, BodyUnreadable, check_sending, tls, unpacked, user_agent
from fathom.storage.cache import TimedCache
from fathom.tools.fetch.allow import AllowList, check_url
from fathom.tools.warc import keep

if TYPE_CHECKING:
    import httpx
    from protego import Protego


MAX_REDIRECTS = 5
TOTAL_SECONDS = 20.0
MAX_BYTES = 10 * 2**20
_TOO_LARGE = f"The page is larger than {MAX_BYTES / 2**20:g} MB."
ASK_WHO_READS = re.compile(r"(?:\A|\.)sec\.gov\Z")
"""The hosts that are sent the contact address: they refuse clients that do not identify themselves."""
_ACCEPT = "text/html,application/xhtml+xml,application/pdf,text/markdown,text/plain,application/json;q=0.9,*/*;q=0.1"


@dataclass(frozen=True)
class FetchedAnswer:
    """A server's answer. `headers` have lowercase names; the last of a repeated header counts."""

    url: httpx.URL
    status: int
    headers: dict[str, str]
    data: bytes

    @property
    def redirect(self) -> httpx.URL | None:
        """The address that the server redirects to, if it does.

        Raises:
            ToolUnavailable: its address is unreadable.
        """
        if self.status not in (301, 302, 303, 307, 308) or not self.headers.get("location"):
            return None
        try:
            return self.url.join(self.headers["location"])
        except (httpx.InvalidURL, ValueError) as error:
            raise ToolUnavailable("The page redirects to an unreadable address.") from error


class TimeAllowance:
    """The 20 seconds that the requests of one call may take together; waiting for a turn is not counted."""

    def __init__(self) -> None:
        self._left = TOTAL_SECONDS

    @asynccontextmanager
    async def spend(self) -> AsyncIterator[None]:
        """Count the time of the block.

        Raises:
            ToolTimeout: the allowance is used up.
        """
        clock = asyncio.get_running_loop().time
        began = clock()
        try:
            async with asyncio.timeout(self._left):
                yield
        except TimeoutError as error:
            raise ToolTimeout("The page did not arrive in time.") from error
        finally:
            self._left = max(0.0, self._left - (clock() - began))


class Client:
    """Makes GET requests over a network backend; keeps no cookies, sends no credentials and uses no proxy."""

    def __init__(self, network: httpcore.AsyncNetworkBackend, contact: str = "") -> None:
        self._network = network
        self._contact = contact

    async def get(self, url: httpx.URL, *, cut_at: int | None = None) -> FetchedAnswer:
        """Request a URL that `check_url` returned, without following redirects.

        With `cut_at`, only this number of bytes is read, instead of refusing a larger body; such an answer is not kept.

        Raises:
            ToolRejected: the body is too large.
            ToolUnavailable: there is no connection, or the answer is not valid HTTP.
        """
        check_sending("tools", str(url))
        headers: dict[bytes | str, bytes | str] = {
            "Host": url.netloc.decode("ascii"),
            "User-Agent": user_agent(self._contact if ASK_WHO_READS.search(url.host) else ""),
            "Accept": _ACCEPT,
            "Accept-Encoding": ENCODINGS,
        }
        try:
            async with (
                httpcore.AsyncConnectionPool(ssl_context=tls(), network_backend=self._network) as pool,
                pool.stream("GET", str(url), headers=headers) as response,
            ):
                fields = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in response.headers}
                data = b"" if 300 <= response.status < 400 else await self._body(response, fields, cut_at)
                if cut_at is None:
                    await asyncio.to_thread(keep, str(url), response.status, fields, data)
                return FetchedAnswer(url, response.status, fields, data)
        except (httpcore.NetworkError, httpcore.ProtocolError, httpcore.TimeoutException, ssl.SSLError) as error:
            raise ToolUnavailable(f"{url.host[:100]} cannot be read: {type(error).__name__}.") from error

    async def _body(self, response: httpcore.Response, fields: dict[str, str], cut_at: int | None) -> bytes:
        length = fields.get("content-length", "")
        if cut_at is None and length.isascii() and length.isdigit() and int(length) > MAX_BYTES:
            raise ToolRejected(_TOO_LARGE)
        data, most = bytearray(), cut_at or MAX_BYTES
        try:
            async for piece in unpacked(response.aiter_stream(), fields.get("content-encoding", ""), most):
                data += piece
        except BodyTooLarge:
            if cut_at is None:
                raise ToolRejected(_TOO_LARGE) from None
        except BodyUnreadable as error:
            raise ToolUnavailable(f"The page {error}.") from error
        return bytes(data[:most])


async def follow(
    address: str, allowed: AllowList, ask: Callable[[httpx.URL], Awaitable[FetchedAnswer]]
) -> FetchedAnswer | None:
    """Return the answer after at most five redirects, each checked before it is followed; None when there are more."""
    url = check_url(address, allowed)
    for _ in range(MAX_REDIRECTS + 1):
        answer = await ask(url)
        if (target := answer.redirect) is None:
            return answer
        url = check_url(target, allowed)
    return None


class UnknownHost(ToolUnavailable):
    """A name has no address: the host is gone, or the resolver does not know it at the moment."""


Resolve = Callable[[str, int], Awaitable[list[str]]]  # addresses of a host; raises OSError when it has none

MAX_ADDRESSES = 3  # tried one after another


async def system_resolve(host: str, port: int) -> list[str]:
    """Ask the system's resolver."""
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


class GuardedBackend(httpcore.AsyncNetworkBackend):
    """Opens connections to permitted addresses only; `network` is given addresses, never names."""

    def __init__(
        self, allowed: AllowList, resolve: Resolve = system_resolve, network: httpcore.AsyncNetworkBackend | None = None
    ) -> None:
        self._allowed = allowed
        self._resolve = resolve
        self._network = network or httpcore.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 - httpcore's signature
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        """Connect to one of the host's addresses.

        Raises:
            ToolRejected: one of them is not permitted; no connection was made.
            UnknownHost: the host has no address.
        """
        *others, last = (await self._checked(host, port))[:MAX_ADDRESSES]
        for address in others:
            with contextlib.suppress(httpcore.ConnectError, httpcore.ConnectTimeout):
                return await self._network.connect_tcp(address, port, timeout, local_address, socket_options)
        return await self._network.connect_tcp(last, port, timeout, local_address, socket_options)

    async def _checked(self, host: str, port: int) -> list[str]:
        try:
            addresses = [str(ip_address(host))]
        except ValueError:
            try:
                addresses = await self._resolve(host, port)
            except (OSError, UnicodeError) as error:
                raise UnknownHost(f"The host {host[:100]!r} is unknown.") from error
        # One forbidden address is enough to refuse the name: a later connection might take that one.
        if not addresses or not all(self._allowed.permits(host, port, address) for address in addresses):
            raise ToolRejected(
                f"{host[:100]!r} is not on the public internet.",
                next_step="a private host is read only when FATHOM_FETCH_ALLOW or fetch_allow_hosts names it",
            )
        return addresses


MAX_ROBOTS_BYTES = 500 * 1024  # which RFC 9309 asks crawlers to read
APART_SECONDS = 1.0


class Turns:
    """Lets requests to a host run one after another, and starts them at least a second apart."""

    def __init__(self) -> None:
        self._doors: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._free_at: dict[str, float] = {}

    @asynccontextmanager
    async def turn(self, host: str) -> AsyncIterator[None]:
        """Wait for a turn with a host; it lasts as long as the block."""
        async with self._doors[host]:
            clock = asyncio.get_running_loop().time
            await asyncio.sleep(max(0.0, self._free_at.get(host, 0.0) - clock()))
            self._free_at[host] = clock() + APART_SECONDS
            yield


class Robots:
    """What the robots.txt of hosts allows; each is requested once an hour."""

    def __init__(self, client: Client, allowed: AllowList, cache: TimedCache) -> None:
        self._client = client
        self._allowed = allowed
        self._cache = cache
        self._rules: dict[str, Protego] = {}
        self._asking: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    async def check(self, url: httpx.URL) -> None:
        """Check that a URL may be read.

        Raises:
            ToolRejected: its host forbids it.
            ToolUnavailable: robots.txt cannot be read, which RFC 9309 treats as a refusal.
        """
        from protego import Protego

        origin = f"{url.scheme}://{url.netloc.decode('ascii')}"
        async with self._asking[origin]:
            if origin not in self._rules:
                self._rules[origin] = Protego.parse(await self._text(f"{origin}/robots.txt"))
        if not self._rules[origin].can_fetch(str(url), user_agent()):
            raise ToolRejected(f"The robots.txt of {url.host[:100]} does not allow reading this page.")

    async def _text(self, address: str) -> str:
        if (stored := self._cache.get(address)) is not None:
            return stored
        answer = await follow(address, self._allowed, lambda url: self._client.get(url, cut_at=MAX_ROBOTS_BYTES))
        if answer and (answer.status >= 500 or answer.status == 429):
            raise ToolUnavailable(f"{address[:200]} answered {answer.status}.")
        # Any other failure means that there are no rules (RFC 9309, 2.3.1.3).
        text = answer.data.decode("utf-8", "replace") if answer and answer.status == 200 else ""
        self._cache.put(address, text)
        return text

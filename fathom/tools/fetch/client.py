"""One HTTP request with limits on its time, its bytes on the wire and its bytes after unpacking.

httpx would unpack a whole chunk at once and follow redirects by itself. Here memory stays flat, and the caller checks a
redirect before following it.
"""

from __future__ import annotations

import asyncio
import re
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

import httpcore
import httpx

from fathom.errors import ToolRejected, ToolTimeout, ToolUnavailable
from fathom.network import ENCODINGS, TooLarge, Unreadable, tls, unpacked, user_agent
from fathom.tools.fetch.allow import AllowList, check_url

MAX_REDIRECTS = 5
TOTAL_SECONDS = 20.0
MAX_BYTES = 10 * 2**20
_TOO_LARGE = f"The page is larger than {MAX_BYTES / 2**20:g} MB."
ASK_WHO_READS = re.compile(r"(?:\A|\.)sec\.gov\Z")
"""The hosts that are told the contact address: they refuse those who do not say who they are."""
_ACCEPT = "text/html,application/xhtml+xml,application/pdf,text/markdown,text/plain,application/json;q=0.9,*/*;q=0.1"


@dataclass(frozen=True)
class Answer:
    """What a server answered. `headers` have lowercase names; the last of a repeated header counts."""

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

    async def get(self, url: httpx.URL, *, cut_at: int | None = None) -> Answer:
        """Request a URL that `check_url` returned, without following redirects.

        With `cut_at`, only this number of bytes is read, instead of refusing a larger body.

        Raises:
            ToolRejected: the body is too large.
            ToolUnavailable: there is no connection, or the answer is not valid HTTP.
        """
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
                return Answer(url, response.status, fields, data)
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
        except TooLarge:
            if cut_at is None:
                raise ToolRejected(_TOO_LARGE) from None
        except Unreadable as error:
            raise ToolUnavailable(f"The page {error}.") from error
        return bytes(data[:most])


async def follow(address: str, allowed: AllowList, ask: Callable[[httpx.URL], Awaitable[Answer]]) -> Answer | None:
    """Return the answer after at most five redirects, each checked before it is followed; None when there are more."""
    url = check_url(address, allowed)
    for _ in range(MAX_REDIRECTS + 1):
        answer = await ask(url)
        if (target := answer.redirect) is None:
            return answer
        url = check_url(target, allowed)
    return None

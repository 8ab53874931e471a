"""One HTTP request with limits on its time, its bytes on the wire and its bytes after unpacking.

httpx would unpack a whole chunk at once and follow redirects by itself. Here memory stays flat, and the caller checks a
redirect before following it.
"""

from __future__ import annotations

import asyncio
import ssl
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import httpcore
import httpx

from fathom.errors import ToolRejected, ToolTimeout, ToolUnavailable
from fathom.tools.fetch.allow import AllowList, check_url
from fathom.tools.http import tls, user_agent

MAX_REDIRECTS = 5
TOTAL_SECONDS = 20.0
MAX_BYTES = 10 * 2**20
_TOO_LARGE = f"The page is larger than {MAX_BYTES / 2**20:g} MB."
PIECE = 2**16  # bytes unpacked at once
_ACCEPT = "text/html,application/xhtml+xml,application/pdf,text/markdown,text/plain,application/json;q=0.9,*/*;q=0.1"
_WBITS = {"gzip": 31, "x-gzip": 31, "deflate": 15}


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

    def __init__(self, network: httpcore.AsyncNetworkBackend) -> None:
        self._network = network

    async def get(self, url: httpx.URL, *, cut_at: int | None = None) -> Answer:
        """Request a URL that `check_url` returned, without following redirects.

        With `cut_at`, only this number of bytes is read, instead of refusing a larger body.

        Raises:
            ToolRejected: the body is too large.
            ToolUnavailable: there is no connection, or the answer is not valid HTTP.
        """
        headers: dict[bytes | str, bytes | str] = {
            "Host": url.netloc.decode("ascii"),
            "User-Agent": user_agent(),
            "Accept": _ACCEPT,
            "Accept-Encoding": "gzip, deflate",
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
        unpack = _Unpacker(fields.get("content-encoding", "").strip().lower())
        data, received, most = bytearray(), 0, cut_at or MAX_BYTES
        async for chunk in response.aiter_stream():
            received += len(chunk)
            for piece in unpack.feed(chunk):
                data += piece
                if len(data) > most:
                    break
            if max(len(data), received) > most:
                if cut_at is None:
                    raise ToolRejected(_TOO_LARGE)
                return bytes(data[:most])
        return bytes(data)


class _Unpacker:
    """Unpacks a stream in pieces of limited size: a small chunk could hold gigabytes."""

    def __init__(self, encoding: str) -> None:
        if encoding not in ("", "identity", *_WBITS):
            raise ToolUnavailable(f"The page is compressed in an unsupported way: {encoding[:40]!r}.")
        self._stream = zlib.decompressobj(_WBITS[encoding]) if encoding in _WBITS else None
        self._raw = encoding == "deflate"  # some servers leave out the header

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        """Yield what a chunk holds, at most 64 KB at once."""
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
            raise ToolUnavailable("The page is damaged: it cannot be decompressed.") from error


async def follow(address: str, allowed: AllowList, ask: Callable[[httpx.URL], Awaitable[Answer]]) -> Answer | None:
    """Return the answer after at most five redirects, each checked before it is followed; None when there are more."""
    url = check_url(address, allowed)
    for _ in range(MAX_REDIRECTS + 1):
        answer = await ask(url)
        if (target := answer.redirect) is None:
            return answer
        url = check_url(target, allowed)
    return None

"""The transport to an MCP server at an address: streamable HTTP, its answers counted while they arrive.

Redirects that lead away from the address are not followed; the client of `mcp` sees to that.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from fathom.network import ENCODINGS, TooLarge, tls, unpacked, user_agent
from fathom.tools.mcp.meter import Meter

if TYPE_CHECKING:
    import httpx2


class Address:
    """An address that serves MCP. `last_words` is a sentence on its last answer, if that was a failure."""

    ended = False  # it can always be asked again

    def __init__(self, url: str, headers: Mapping[str, str], seconds: float, meter: Meter) -> None:
        self._url = url
        self._headers = headers
        self._seconds = seconds
        self._meter = meter
        self.last_words = ""

    @asynccontextmanager
    async def streams(self) -> AsyncIterator[tuple[Any, Any]]:
        """Yield what the server says and what it is told."""
        import httpx2
        from mcp.client.streamable_http import streamable_http_client

        client = httpx2.AsyncClient(
            headers={"User-Agent": user_agent(), "Accept-Encoding": ENCODINGS, **self._headers},
            timeout=httpx2.Timeout(self._seconds, read=None),  # the caller keeps the time; a stream may be silent long
            verify=tls(),
            event_hooks={"response": [self._limit]},
        )
        most = self._meter.most
        async with client, streamable_http_client(self._url, http_client=client, max_sse_event_size=most) as made:
            yield made

    async def _limit(self, response: httpx2.Response) -> None:
        """Have a body that is yet to be read fail once the server has sent too much."""
        import httpx2

        self.last_words = f"It answered HTTP {response.status_code}." if response.status_code >= 300 else ""
        assert isinstance(response.stream, httpx2.AsyncByteStream)
        stream: httpx2.AsyncByteStream = response.stream
        encoding, meter = response.headers.pop("content-encoding", ""), self._meter

        class Limited(httpx2.AsyncByteStream):
            async def __aiter__(self) -> AsyncIterator[bytes]:
                try:
                    async for piece in unpacked(stream, encoding, meter.most):
                        if meter.add(len(piece)):
                            raise TooLarge(meter.most)
                        yield piece
                except TooLarge as error:
                    meter.add(meter.most)  # also of one that is too large before it is unpacked
                    raise httpx2.StreamError(str(error)) from None

            async def aclose(self) -> None:
                await stream.aclose()

        response.stream = Limited()

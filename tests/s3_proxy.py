"""A proxy in front of an S3 server that fails as object stores and the ways to them do."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Literal

import aiohttp
from aiohttp import web

from tests.listening import in_front

__all__ = ["Fault", "Proxy", "proxying"]

Fault = Literal["403", "500", "503", "409", "412", "hang", "drop", "cut", "lost"]

_ERRORS = {
    "403": (403, "AccessDenied"),
    "500": (500, "InternalError"),
    "503": (503, "SlowDown"),
    "409": (409, "ConditionalRequestConflict"),
    "412": (412, "PreconditionFailed"),
}
_HOP_BY_HOP = {"transfer-encoding", "connection", "content-encoding", "date", "server", "content-length"}


@dataclass
class Proxy:
    """What the proxy does, which may be changed at any time, and what it saw.

    Attributes:
        once: faults of the next requests, used up in order.
        always: fault of all other requests but the first `sound` ones.
        method: the only HTTP method that fails; empty: all.
        url: its address.
        requests: methods of all requests so far.
    """

    upstream: str
    once: list[Fault] = field(default_factory=list)
    always: Fault | None = None
    sound: int = 0
    method: str = ""
    url: str = ""
    requests: list[str] = field(default_factory=list)

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Answer a request, or fail to."""
        self.requests.append(request.method)
        body = await request.read()
        fault = self._fault(request.method)
        if fault == "hang":
            await asyncio.sleep(3_600)
        if fault == "drop":
            return _hang_up(request)
        if fault in _ERRORS:
            status, code = _ERRORS[fault]
            text = f"<?xml version='1.0'?><Error><Code>{code}</Code><Message>{code}!</Message></Error>"
            return web.Response(status=status, text=text, content_type="application/xml")
        async with aiohttp.ClientSession(auto_decompress=False) as session:
            url = f"{self.upstream}{request.raw_path}"
            async with session.request(request.method, url, data=body, headers=request.headers) as answer:
                data = await answer.read()
                headers = {k: v for k, v in answer.headers.items() if k.lower() not in _HOP_BY_HOP}
                length = answer.headers.get("Content-Length", str(len(data)))
        if fault == "lost":  # the server did as it was told, and nobody hears of it
            return _hang_up(request)
        response = web.StreamResponse(status=answer.status, headers={**headers, "Content-Length": length})
        await response.prepare(request)
        if fault == "cut":
            await response.write(data[: len(data) // 2])
            return _hang_up(request)
        if request.method != "HEAD":
            await response.write(data)
        return response

    def _fault(self, method: str) -> Fault | None:
        if self.method not in ("", method):
            return None
        if self.once:
            return self.once.pop(0)
        return self.always if len(self.requests) > self.sound else None


def _hang_up(request: web.Request) -> web.Response:
    if request.transport:
        request.transport.close()
    return web.Response()


@contextmanager
def proxying(upstream: str) -> Iterator[Proxy]:
    """Run a proxy in a thread with an event loop of its own."""
    proxy = Proxy(upstream)
    with in_front(proxy.handle, "s3 proxy") as url:
        proxy.url = url
        yield proxy

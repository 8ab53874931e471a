"""A proxy in front of a model's server that records what Fathom asked and what it was answered, and changes nothing."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import aiohttp
from aiohttp import web

from tests.listening import in_front
from tests.stubs.reading import Prompt

__all__ = ["Exchange", "Recording", "recording"]

_ASKED_WITH = {"content-type", "authorization", "accept"}
_ANSWERED_WITH = {"content-type", "retry-after", "cache-control"}


@dataclass
class Exchange:
    """A request for an answer, and what came of it.

    Attributes:
        status: of the answer; 0 until it begins.
        text: of the answer so far, joined where it was streamed; of a refusal, its body.
        finished: the provider's finish_reason; empty while the answer is not complete.
        left: whether the client went away before the answer was complete.
    """

    role: str
    body: dict[str, Any]
    status: int = 0
    text: str = ""
    finished: str = ""
    usage: dict[str, int] = field(default_factory=dict)
    seconds: float = 0.0
    left: bool = False

    def read(self, data: bytes, *, streamed: bool) -> None:
        """Take the text, finish_reason and usage from the body of an answer, as far as it came."""
        if self.status != 200:
            self.text = data.decode(errors="replace")
            return
        for part in _events(data) if streamed else [data]:
            with suppress(ValueError):
                answer = json.loads(part)
                self.usage = answer.get("usage") or self.usage
                for choice in answer.get("choices") or []:
                    said = choice.get("delta") or choice.get("message") or {}
                    self.text += said.get("content") or ""
                    self.finished = choice.get("finish_reason") or self.finished


@dataclass
class Recording:
    """What passed through the proxy, in order of arrival.

    `upstream` is the address of the server, `url` the address of the proxy, both as `OPENAI_BASE_URL` takes them.
    """

    upstream: str
    url: str = ""
    exchanges: list[Exchange] = field(default_factory=list)

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Pass a request on, and its answer back while it arrives."""
        body = await request.read()
        exchange = None
        if request.path.endswith("/chat/completions"):
            asked = json.loads(body)
            exchange = Exchange(Prompt(asked).role, asked)
            self.exchanges.append(exchange)
        began, data = time.monotonic(), bytearray()
        response = web.StreamResponse()
        try:
            async with (
                aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=None)) as session,
                session.request(
                    request.method,
                    self.upstream.removesuffix("/v1") + request.path_qs,
                    data=body or None,
                    headers={k: v for k, v in request.headers.items() if k.lower() in _ASKED_WITH},
                ) as answer,
            ):
                headers = {k: v for k, v in answer.headers.items() if k.lower() in _ANSWERED_WITH}
                response.set_status(answer.status)
                response.headers.update(headers)
                if exchange:
                    exchange.status = answer.status
                await response.prepare(request)
                async for piece in answer.content.iter_any():
                    data += piece
                    await response.write(piece)
            self._note(exchange, bytes(data), began, response)
            await response.write_eof()
        except (asyncio.CancelledError, ConnectionError):
            if exchange:
                exchange.left = True
            self._note(exchange, bytes(data), began, response)
            raise
        return response

    @staticmethod
    def _note(exchange: Exchange | None, data: bytes, began: float, response: web.StreamResponse) -> None:
        if exchange:
            exchange.read(data, streamed="event-stream" in response.headers.get("Content-Type", ""))
            exchange.seconds = time.monotonic() - began


def _events(data: bytes) -> Iterator[bytes]:
    """Yield the data of server-sent events."""
    for line in data.splitlines():
        if line.startswith(b"data:") and b"[DONE]" not in line:
            yield line.removeprefix(b"data:").strip()


@contextmanager
def recording(upstream: str) -> Iterator[Recording]:
    """Run the proxy in front of an address in a thread with an event loop of its own."""
    proxy = Recording(upstream)
    with in_front(proxy.handle, "recording") as url:
        proxy.url = f"{url}/v1"
        yield proxy

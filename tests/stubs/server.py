"""All protocols on one port, and the record of every request."""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from aiohttp import web

from tests.listening import in_thread, listening
from tests.stubs import anthropic, ollama, openai, peers, searxng, tavily
from tests.stubs.echo import echoing
from tests.stubs.floods import FLOODS, flooding
from tests.stubs.planted import planted
from tests.stubs.reading import Prompt
from tests.stubs.records import Record
from tests.stubs.replies import Delivery, Reply
from tests.stubs.settings import Settings
from tests.stubs.streams import AT_ONCE, Events, send

__all__ = ["Record", "Stubs", "serving"]


@dataclass(frozen=True)
class _Protocol:
    """How one service is asked for an answer of a model. `key`: the header of the key, "" when it takes any."""

    complete: Callable[[dict[str, Any], bool, str, Settings], Reply]
    events: Callable[[dict[str, Any], dict[str, Any], int], Events]
    key: str
    streams: bool = False  # also when the request does not say


_PROTOCOLS = {
    "/v1/chat/completions": _Protocol(openai.complete, openai.events, "Authorization"),
    "/v1/messages": _Protocol(anthropic.complete, anthropic.events, "x-api-key"),
    "/api/chat": _Protocol(ollama.complete, ollama.events, "", streams=True),
}


class Stubs:
    """The server, an async context manager; `serving` runs it in a thread.

    Attributes:
        settings: may be changed at any time.
        requests: all so far, in order of arrival, but for those in `about`.
        about: requests for what the server says of its models.
        fetched: paths of the planted pages asked for.
        url: address of Tavily, SearXNG, Anthropic and Ollama; OpenAI's is `llm_url`.
    """

    def __init__(self, settings: Settings | None = None, log: Path | None = None, port: int = 0) -> None:
        self.settings = settings or Settings()
        self.requests: list[Record] = []
        self.about: list[Record] = []
        self.fetched: list[str] = []
        self.url = ""
        self._log = log
        self._turn = asyncio.Lock()
        app = web.Application(client_max_size=64 * 2**20)
        for path in _PROTOCOLS:
            app.router.add_post(path, self._llm)
        app.router.add_get("/v1/models", self._models)
        app.router.add_post("/api/show", self._show)
        app.router.add_post("/search", self._search)
        app.router.add_post("/extract", self._extract)
        app.router.add_get("/search", self._searxng)
        app.router.add_get("/planted/{name}", self._planted)
        app.router.add_post("/v1/embeddings", self._embeddings)
        app.router.add_get("/pages", self._pages)
        self._listening = listening(app, port)

    @property
    def llm_url(self) -> str:
        """Base address of the model, as OPENAI_BASE_URL takes it."""
        return f"{self.url}/v1"

    @property
    def env(self) -> dict[str, str]:
        """What a process needs in its environment to use the stubs and nothing else."""
        return {
            "OPENAI_API_KEY": "stub-key",
            "OPENAI_BASE_URL": self.llm_url,
            "TAVILY_API_KEY": "tvly-stub",
            "TAVILY_BASE_URL": self.url,
        }

    def calls(self, kind: str) -> list[Record]:
        """Return the requests of a kind (`llm`, `search`, `page`, ...) or of a role (`planner`, ...)."""
        return [record for record in (*self.requests, *self.about) if kind in (record.kind, record.role)]

    def answered(self) -> set[str]:
        """Return the fingerprints of the requests that were answered."""
        return {record.fingerprint for record in self.requests if record.ended is not None}

    def wait_for(self, count: int, kind: str, *, ended: bool = True, timeout: float = 150.0) -> list[Record]:
        """Block until that many requests of a kind were answered (or came in), and return them.

        For tests that kill the client at a certain moment; not inside the server's own event loop. A Prefect server may
        let a run wait for its database for a minute.
        """
        deadline = time.monotonic() + timeout
        while time.monotonic() < deadline:
            found = [record for record in self.calls(kind) if record.ended is not None or not ended]
            if len(found) >= count:
                return found
            time.sleep(0.005)
        raise TimeoutError(f"{len(self.calls(kind))} {kind} requests after {timeout} s, {count} expected")

    async def __aenter__(self) -> Self:
        self.url = await self._listening.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._listening.__aexit__(kind, error, trace)

    async def _llm(self, request: web.Request) -> web.StreamResponse:
        async with self._turn if self.settings.one_at_a_time else nullcontext():
            return await self._serve(request, "llm")

    async def _models(self, request: web.Request) -> web.StreamResponse:
        return await self._serve(request, "models")

    async def _show(self, request: web.Request) -> web.StreamResponse:
        return await self._serve(request, "show")

    async def _search(self, request: web.Request) -> web.StreamResponse:
        return await self._serve(request, "search")

    async def _extract(self, request: web.Request) -> web.StreamResponse:
        return await self._serve(request, "extract")

    async def _searxng(self, request: web.Request) -> web.StreamResponse:
        return await self._serve(request, "searxng")

    async def _planted(self, request: web.Request) -> web.StreamResponse:
        self.fetched.append(request.path)
        return await self._serve(request, "page")

    async def _embeddings(self, request: web.Request) -> web.StreamResponse:
        return await self._serve(request, "embeddings")

    async def _pages(self, request: web.Request) -> web.StreamResponse:
        return await self._serve(request, "pages")

    async def _serve(self, request: web.Request, kind: str) -> web.StreamResponse:
        asked = {"path": request.path, **request.query} if request.method == "GET" else await request.json()
        record = self._begin(kind, asked)
        await asyncio.sleep(self.settings.llm_delay if kind == "llm" else self.settings.search_delay)
        while self.settings.held and self.settings.held in (record.kind, record.role):  # noqa: ASYNC110 - a thread sets it
            await asyncio.sleep(0.02)
        most = self.settings.answers
        if most is not None and len(answered := self.answered()) >= most and record.fingerprint not in answered:
            record.behaviour = "hang"
        if record.behaviour == "hang":
            await asyncio.sleep(3_600)
        if record.behaviour == "drop":
            return self._abort(request)
        if record.behaviour in FLOODS:
            return await self._flood(request, record)
        protocol = _PROTOCOLS.get(request.path, _PROTOCOLS["/v1/chat/completions"])
        authorized = bool(request.headers.get(protocol.key, "").removeprefix("Bearer ").strip())
        try:
            if kind == "llm":
                reply = protocol.complete(record.body, authorized, record.behaviour, self.settings)
            elif kind == "models":
                reply = openai.models(authorized, record.behaviour, self.settings)
            elif kind == "show":
                reply = ollama.show(record.behaviour, self.settings)
            elif kind == "searxng":
                reply = searxng.serve(record.body, record.behaviour, self.settings)
            elif kind == "embeddings":
                reply = peers.embeddings(record.body)
            elif kind == "pages":
                reply = peers.pages(record.body, self.settings)
            elif kind == "page":
                reply = planted(f"{self.url}{request.path_qs}", record.behaviour, self.settings)
            else:
                reply = tavily.serve(kind, record.body, authorized, record.behaviour, self.settings)
        except ValueError as error:  # a mistake in the test's script
            return web.Response(status=501, text=str(error))
        if self.settings.echo:
            reply = replace(reply, payload=echoing(reply.payload, self.settings.echo))
        streamed = (
            kind == "llm" and record.body.get("stream", protocol.streams) and "stream" not in self.settings.refuses
        )
        if streamed and reply.status == 200 and isinstance(reply.payload, dict):
            at_once = AT_ONCE if reply.delivery == Delivery() else 1
            events = protocol.events(reply.payload, record.body, at_once)
            return await send(request, record, events, reply.delivery, lambda: self._end(record, reply))
        # A whole answer takes as long as its stream would take, and fails as that would.
        if reply.delivery.ending == "cut":
            return self._abort(request)
        unending = reply.delivery.ending == "silent"
        await asyncio.sleep(3_600 if unending else reply.delivery.seconds * reply.usage.get("completion_tokens", 0))
        response = web.Response(
            status=reply.status, body=reply.body, content_type=reply.content_type, headers=reply.headers
        )
        await response.prepare(request)
        self._end(record, reply)
        await response.write_eof()
        return response

    def _abort(self, request: web.Request) -> web.Response:
        if request.transport:
            request.transport.abort()
        return web.Response()

    def _end(self, record: Record, reply: Reply) -> None:
        """Record an answer before its last byte: whoever has read it finds it recorded."""
        record.status, record.usage, record.answer = reply.status, reply.usage, reply.payload
        record.ended = time.monotonic()
        self._write(record.event("end"))

    async def _flood(self, request: web.Request, record: Record) -> web.StreamResponse:
        response = web.StreamResponse()
        response.content_type = "text/html" if record.behaviour == "flood" else "application/json"
        if record.behaviour == "bomb":
            response.headers["Content-Encoding"] = "gzip"
        await response.prepare(request)
        async for piece in flooding(record.behaviour):
            await response.write(piece)
            record.sent += len(piece)
        return response

    def _begin(self, kind: str, body: dict[str, Any]) -> Record:
        kept = self.about if kind in ("models", "show") else self.requests
        role = Prompt(body).role if kind == "llm" else kind
        poison = kind == "llm" and self.settings.poison
        poisoned = poison and re.match(poison, f"{role} {json.dumps(body['messages'])}")
        record = Record(
            n=len(kept) + 1,
            kind=kind,
            role=role,
            fingerprint=hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest(),
            body=body,
            started=time.monotonic(),
            behaviour="500" if poisoned else self.settings.next_behaviour(role, str(body.get("model", ""))),
        )
        kept.append(record)
        self._write(record.event("start"))
        return record

    def _write(self, line: dict[str, Any]) -> None:
        if self._log:
            with self._log.open("a", encoding="utf-8") as file:
                file.write(json.dumps(line) + "\n")


@contextmanager
def serving(settings: Settings | None = None, log: Path | None = None) -> Iterator[Stubs]:
    """Run the stubs in a thread with an event loop of its own."""
    with in_thread(Stubs(settings, log), "stubs") as stubs:
        yield stubs

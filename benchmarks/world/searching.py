"""The closed world on a port of this machine: its sites, and a search service over them in Tavily's shape.

    POST /search, /extract    as Tavily's; TAVILY_BASE_URL points Fathom and others at it
    GET /custom?query=        a list of `url`, `title`, `raw_content`, as gpt-researcher's custom retriever takes it
    every other request       a page, by its Host header; a client may also use the port as its HTTP proxy

Ranking is SQLite's full-text index (FTS5, BM25, Porter's stemmer, the title counted five times).
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import re
import socket
import sqlite3
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO
from urllib.parse import urlsplit

import httpx
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from benchmarks.world.pages import PORT, Page
from benchmarks.world.web import all_pages, digest
from fathom.errors import InvalidInput

_SNIPPET_WORDS = 40
_BY_URL = {page.url: page for page in all_pages()}
_BY_PLACE = {(page.host, page.path): page for page in all_pages()}


class Index:
    """A full-text index of all pages."""

    def __init__(self) -> None:
        self._database = sqlite3.connect(":memory:", check_same_thread=False)
        self._lock = threading.Lock()
        self._database.execute(
            "create virtual table pages using fts5(title, text, url unindexed, tokenize='porter unicode61')"
        )
        rows = [(page.title, page.markdown, page.url) for page in all_pages()]
        self._database.executemany("insert into pages values (?, ?, ?)", rows)

    def search(self, query: str, most: int) -> list[tuple[Page, str, float]]:
        """Return the pages that have words of a query, the best first, with an excerpt and a score up to 1."""
        words = re.findall(r"\w+", query.casefold())
        if not words:
            return []
        asked = " OR ".join(f'"{word}"' for word in dict.fromkeys(words))
        statement = (
            f"select url, snippet(pages, 1, '', '', ' ... ', {_SNIPPET_WORDS}), bm25(pages, 5.0, 1.0) as rank"
            " from pages where pages match ? order by rank, url limit ?"
        )
        with self._lock:
            rows = self._database.execute(statement, (asked, most)).fetchall()
        best = min((rank for *_, rank in rows), default=-1.0)
        return [(_BY_URL[url], snippet, round(rank / best, 3)) for url, snippet, rank in rows]


_INDEX = Index()


def _readable(page: Page) -> str | None:
    """Return the text that the service hands on; a PDF has to be read at its site."""
    return None if page.kind == "pdf" else page.markdown


async def _search(request: Request) -> Response:
    asked = await request.json()
    query, most = str(asked.get("query", "")), int(asked.get("max_results") or 5)
    if not query:
        return JSONResponse({"detail": {"error": "Query is missing."}}, 400)
    whole = bool(asked.get("include_raw_content"))
    results = [
        {
            "url": page.url,
            "title": page.title,
            "content": snippet,
            "score": score,
            "raw_content": _readable(page) if whole else None,
            "published_date": page.published or None,
        }
        for page, snippet, score in await asyncio.to_thread(_INDEX.search, query, most)
    ]
    return JSONResponse({"query": query, "answer": None, "images": [], "results": results, "response_time": 0.1})


async def _extract(request: Request) -> Response:
    asked = await request.json()
    urls = asked.get("urls") or []
    found: list[dict[str, object]] = []
    failed: list[dict[str, str]] = []
    for url in [urls] if isinstance(urls, str) else urls:
        page = _BY_URL.get(url)
        if page and (text := _readable(page)):
            found.append({"url": url, "title": page.title, "raw_content": text, "images": []})
        else:
            failed.append({"url": url, "error": "The page could not be read."})
    return JSONResponse({"results": found, "failed_results": failed, "response_time": 0.1})


async def _custom(request: Request) -> Response:
    found = await asyncio.to_thread(_INDEX.search, request.query_params.get("query", ""), 5)
    return JSONResponse([{"url": page.url, "title": page.title, "raw_content": page.markdown} for page, *_ in found])


async def _world(_request: Request) -> Response:
    return JSONResponse({"world": digest()})


def _is_served(address: str) -> bool:
    """Whether this very world is served at an address."""
    try:
        answer = httpx.get(f"{address}/world", timeout=5, trust_env=False)
        return bool(answer.json() == {"world": digest()})
    except (httpx.HTTPError, ValueError):
        return False


async def _page(request: Request) -> Response:
    target = urlsplit(str(request.url))
    page = _BY_PLACE.get(((target.hostname or ""), target.path.lstrip("/")))
    if target.path == "/robots.txt":
        return Response("User-agent: *\nAllow: /\n", media_type="text/plain")
    if page is None:
        return HTMLResponse("<h1>404</h1><p>There is no such page.</p>", 404)
    return Response(page.pdf(), media_type="application/pdf") if page.kind == "pdf" else HTMLResponse(page.html())


def application() -> ASGIApp:
    """Return the application."""
    routes = [
        Route("/search", _search, methods=["POST"]),
        Route("/extract", _extract, methods=["POST"]),
        Route("/custom", _custom),
        Route("/world", _world),
        Route("/{path:path}", _page, methods=["GET", "HEAD"]),
    ]
    app = Starlette(routes=routes)

    async def with_proxy(scope: Scope, receive: Receive, send: Send) -> None:
        # A client that takes this for its proxy names the whole address in the first line of its request.
        if scope["type"] == "http" and scope["path"].startswith("http://"):
            scope["path"] = urlsplit(scope["path"]).path
        await app(scope, receive, send)

    return with_proxy


@contextmanager
def serving() -> Iterator[str]:
    """Serve the world while the block runs, unless another process serves it already, and yield its address.

    Who serves it does so until all others of the same user have left it, too.

    Raises:
        InvalidInput: something else has the port; addresses of pages have it, so there is no other.
    """
    address = f"http://127.0.0.1:{PORT}"
    with Path(tempfile.gettempdir(), f"fathom-world-{PORT}-{os.getuid()}.lock").open("w") as users:
        fcntl.flock(users, fcntl.LOCK_SH)
        if _is_served(address):
            yield address
            return
        try:
            listening = socket.create_server(("127.0.0.1", PORT))
        except OSError:
            raise InvalidInput(f"Port {PORT} is in use.", next_step="end the process that has it") from None
        server = uvicorn.Server(uvicorn.Config(application(), log_level="error"))
        thread = threading.Thread(target=server.run, args=([listening],), daemon=True)
        thread.start()  # requests that come before it is ready wait in the socket
        try:
            yield address
        finally:
            _wait_for_others(users)
            server.should_exit = True
            thread.join(10)
            listening.close()  # a server that was ended before it was ready leaves it open


def _wait_for_others(users: TextIO) -> None:
    try:
        fcntl.flock(users, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        print("Another command uses the world that this one serves: waiting for its end.", file=sys.stderr)
        fcntl.flock(users, fcntl.LOCK_EX)

"""Every search vendor against a server that answers as its documentation says, and fails in every way that we know."""

from __future__ import annotations

import asyncio
import json
import logging
import traceback
from collections.abc import AsyncIterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from fathom.config.environment import Environment
from fathom.config.groups import WebSettings
from fathom.config.settings import ResearchSettings, resolve
from fathom.errors import FathomError, ToolRateLimited, ToolRejected, ToolTimeout, ToolUnavailable
from fathom.tools import http
from fathom.tools.base import ANYWHERE, RunContext, SearchVendor, limited
from fathom.tools.http import retrying
from fathom.tools.registry import REGISTRY
from fathom.tools.search.keyed import KeyedVendor
from fathom.tools.search.over_litellm import PROVIDERS
from tests.listening import app_of, listening
from tests.test_tool_declarations import Stored
from tests.vendors import CASES, KEY, LIMIT, QUERY, Case

LARGE = 50 * 2**20


class Server:
    """Answers as it is told, and notes what it was asked."""

    def __init__(self) -> None:
        self.url = ""
        self.says: Any = {}
        self.status = 200
        self.headers: dict[str, str] = {}
        self.silent = self.large = False
        self.sent = 0
        self.asked: list[tuple[str, str, dict[str, str], Any]] = []

    async def serve(self, request: web.Request) -> web.StreamResponse:
        query = dict(request.query)
        body = await request.json() if request.can_read_body else query
        self.asked.append((request.method, request.path, dict(request.headers), body))
        if self.silent:
            await asyncio.sleep(60)
        if self.large:
            return await self._flood(request)
        if isinstance(self.says, str):
            return web.Response(status=self.status, text=self.says, content_type="text/html", headers=self.headers)
        return web.json_response(self.says, status=self.status, headers=self.headers)

    async def _flood(self, request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        await response.prepare(request)
        piece = b'{"results": ["' + b"a" * 2**20
        while self.sent < LARGE:
            await response.write(piece)
            self.sent += len(piece)
        return response


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    serving = Server()
    async with listening(app_of(serving.serve)) as serving.url:
        yield serving


def opened(case: Case, server: Server, tmp_path: Path, **changed: str) -> SearchVendor:
    variables = {name: value.replace("URL", server.url) for name, value in case.variables.items()}
    here = Environment.read({"HOME": str(tmp_path), **variables, **changed})
    assert case.vendor.is_configured(here)
    settings = resolve(ResearchSettings(fresh=True), here, ["web_search"])
    return case.vendor.open(RunContext(settings, here, Stored(), QUERY, [case.vendor], []))


def holds(given: Any, wanted: Any) -> bool:
    """Whether what was asked has what the vendor needs, and maybe more."""
    if isinstance(wanted, dict):
        return all(name in given and holds(given[name], value) for name, value in wanted.items())
    if isinstance(wanted, list):
        return len(given) == len(wanted) and all(map(holds, given, wanted))
    return bool(given == wanted)


def test_every_vendor_has_a_case() -> None:
    names = {vendor.key() for vendor in REGISTRY.vendors} | {f"litellm:{provider}" for provider in PROVIDERS}
    assert names == {case.name for case in CASES}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
async def test_a_vendor_is_asked_and_understood(case: Case, server: Server, tmp_path: Path) -> None:
    server.says = case.answer
    pages = await opened(case, server, tmp_path).search(QUERY, LIMIT)
    assert [page.model_dump(exclude={"reference", "fields"}) for page in pages] == [asdict(page) for page in case.pages]
    [(method, path, headers, body)] = server.asked
    assert (method, path) == ("POST" if case.post else "GET", case.path)
    assert holds(body, case.asked), body
    sent = {name.lower(): value for name, value in headers.items()}
    assert {name: sent.get(name.lower()) for name in case.auth} == case.auth
    price = case.vendor.price(LIMIT)
    assert (None if price is None else float(price)) == case.usd
    server.says = case.empty
    assert await opened(case, server, tmp_path).search(QUERY, LIMIT) == []


LIMITED: dict[str, dict[str, Any]] = {  # what each is sent
    "tavily": {"start_date": "2024-01-31", "end_date": "2025-12-31"},
    "brave": {"freshness": "2024-01-31to2025-12-31", "country": "DE", "safesearch": "strict"},
    "you": {"freshness": "2024-01-31to2025-12-31", "country": "DE", "safesearch": "strict"},
    "serper": {"tbs": "cdr:1,cd_min:01/31/2024,cd_max:12/31/2025", "gl": "de"},
    "searxng": {"safesearch": "2"},
    "exa": {
        "startPublishedDate": "2024-01-31",
        "endPublishedDate": "2025-12-31",
        "userLocation": "DE",
        "moderation": True,
    },
    "linkup": {"fromDate": "2024-01-31", "toDate": "2025-12-31"},
    "perplexity": {
        "search_after_date_filter": "01/31/2024",
        "search_before_date_filter": "12/31/2025",
        "country": "DE",
    },
    "firecrawl": {"tbs": "cdr:1,cd_min:01/31/2024,cd_max:12/31/2025", "country": "DE"},
}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
async def test_a_query_limits_the_search_as_the_vendor_can(case: Case, server: Server, tmp_path: Path) -> None:
    server.says = case.answer
    wanted = WebSettings(suffixes=["in Europe"], since="2024-01-31", region="fr", safe=True)
    query, within = limited(f"{QUERY} region:de before:2025-12-31 after:x", wanted)
    assert query == f"{QUERY} after:x in Europe"
    for limits in (ANYWHERE, within):
        await opened(case, server, tmp_path).search(query, LIMIT, limits)
    before, body = (sent[0] if isinstance(sent, list) else sent for *_, sent in server.asked)
    added = {name: value for name, value in body.items() if before.get(name) != value}
    assert added == LIMITED.get(case.name, {})
    assert bool(case.vendor.limits) is bool(added)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
async def test_each_failure_has_its_class_and_no_key(
    case: Case, server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    vendor = opened(case, server, tmp_path)
    told: list[str] = []

    async def fails(kind: type[FathomError], **answer: Any) -> FathomError:
        given = {"says": {"error": f"not with {KEY}"}, "status": 200, "headers": {}, "silent": False, "large": False}
        for name, value in (given | answer).items():
            setattr(server, name, value)
        with pytest.raises(kind) as failed:
            await vendor.search(QUERY, LIMIT)
        assert type(failed.value) is kind
        told.extend([repr(failed.value), failed.value.next_step, *traceback.format_exception(failed.value)])
        return failed.value

    for status in (401, 403):
        refused = await fails(ToolRejected, status=status)
        assert refused.status == status
        if case.name != "searxng":
            assert any(name in refused.next_step for name in case.vendor.variables)
    limited = await fails(ToolRateLimited, status=429, headers={"Retry-After": "7"})
    assert limited.retry_after == 7
    for status in (500, 503):
        await fails(ToolUnavailable, status=status)
    for says in (f"<html>Verify that you are human {KEY}</html>", "", case.wrong, "[" * 100_000):
        assert "unreadable" in (await fails(ToolUnavailable, says=says)).message
    assert "16 MB" in (await fails(ToolRejected, large=True)).message
    assert server.sent < LARGE  # it is not read to its end
    monkeypatch.setattr(http, "ATTEMPT_SECONDS", 0.2)
    monkeypatch.setattr(http, "ATTEMPTS", 1)
    server.large, server.silent = False, True
    with pytest.raises(ToolTimeout):
        await retrying(lambda: vendor.search(QUERY, LIMIT))
    assert [text for text in told if KEY in text] == []
    in_address = case.name == "litellm:searchapi"  # the log's lines are cleaned where a process begins
    assert in_address or KEY not in caplog.text


@pytest.mark.parametrize(
    "case", [case for case in CASES if issubclass(case.vendor, KeyedVendor)], ids=lambda case: case.name
)
async def test_a_key_that_no_header_takes_is_named(case: Case, server: Server, tmp_path: Path) -> None:
    """Such as one that was copied with a quotation mark of a text processor."""
    variable = case.vendor.variables[0]
    with pytest.raises(ToolRejected, match=variable):
        await opened(case, server, tmp_path, **{variable: f"“{KEY}”"}).search(QUERY, LIMIT)
    assert server.asked == []
    server.says = case.empty
    assert await opened(case, server, tmp_path, **{variable: f"{KEY}\n"}).search(QUERY, LIMIT) == []


@pytest.mark.parametrize("case", [case for case in CASES if case.post], ids=lambda case: case.name)
async def test_what_is_sent_can_be_read_back(case: Case, server: Server, tmp_path: Path) -> None:
    server.says = case.empty
    await opened(case, server, tmp_path).search("Gezeiten „im See“ 湖", LIMIT)
    [(_method, _path, _headers, body)] = server.asked
    assert "Gezeiten „im See“ 湖" in json.dumps(body, ensure_ascii=False)

"""Web search and reading against scripted vendors over real HTTP, what is kept, and which tools a run may use."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator, Callable, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from hypothesis import given
from hypothesis import strategies as st

from fathom.config.environment import Environment
from fathom.config.settings import ResearchSettings, resolve
from fathom.errors import (
    InvalidInput,
    MissingCredential,
    ToolError,
    ToolNotFound,
    ToolRateLimited,
    ToolRejected,
    ToolTimeout,
    ToolUnavailable,
)
from fathom.models import Source, ToolCall, ToolOutput, ToolResult
from fathom.storage.cache import TimedCache
from fathom.text.plain import clean_text
from fathom.text.urls import source_ids
from fathom.tools import base, http
from fathom.tools.base import RunContext
from fathom.tools.pages import WebPage
from fathom.tools.registry import configured_tools
from fathom.tools.search.searxng import SearXNG
from fathom.tools.search.tavily import Tavily
from fathom.tools.search.web_extract import WebExtractTool
from fathom.tools.search.web_search import WebSearchTool
from fathom.tools.toolbox import Toolbox, open_toolbox
from tests.listening import app_of, listening

Answer = Callable[[], web.StreamResponse]


NOWHERE = TimedCache(None, 0)
MENDED = {"Tavily": dict.fromkeys((401, 403, 432, 433), "TAVILY_API_KEY"), "SearXNG": {403: "search.formats"}}


class Vendor:
    """A Tavily and a SearXNG whose answers are scripted; the last one is repeated."""

    def __init__(self) -> None:
        self.answers: list[Answer] = []
        self.requests: list[dict[str, Any]] = []
        self.keys: set[str] = set()
        self.url = ""

    def says(self, *bodies: dict[str, Any]) -> None:
        self.answers = [partial(web.json_response, body) for body in bodies]

    async def serve(self, request: web.Request) -> web.StreamResponse:
        said = dict(request.query) if request.method == "GET" else await request.json()
        self.requests.append({"path": request.path, **said})
        self.keys.add(request.headers.get("Authorization", ""))
        return (self.answers.pop(0) if len(self.answers) > 1 else self.answers[0])()

    @property
    def tavily(self) -> Tavily:
        return Tavily("tvly-key", self.url, NOWHERE)

    @property
    def searxng(self) -> SearXNG:
        return SearXNG(f"{self.url}/searxng")

    def search(self, max_results: int = 5) -> WebSearchTool:
        return WebSearchTool([self.tavily], NOWHERE, max_results)

    def extract(self) -> WebExtractTool:
        return WebExtractTool([self.tavily])


@pytest.fixture
async def vendor(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Vendor]:
    monkeypatch.setattr(http, "FIRST_PAUSE", 0.01)
    scripted = Vendor()
    async with listening(app_of(scripted.serve)) as scripted.url:
        yield scripted


def page(url: object, score: object = 0.5, **fields: Any) -> dict[str, Any]:
    return {"url": url, "title": "A title", "content": "An excerpt.", "score": score, "raw_content": None, **fields}


async def test_search_returns_each_page_once_and_clean(vendor: Vendor) -> None:
    image = "data:image/png;base64," + base64.b64encode(bytes(300_000)).decode()
    whole = f"# Page\r\n\r\nBefore ![logo]({image}) after.\x00\x1b[0m \ud800End of data: the end."
    vendor.says(
        {
            "query": "q",
            "unknown_field": {"new": 1},
            "results": [
                page("https://Example.org/a/?utm_source=x", 0.4),
                page("http://www.example.org/a", 0.9, raw_content=whole, published_date="2026-01-02", other=3),
                page("https://example.org/b", None, title=None),
                page("https://example.org/empty", 0.8, content=""),
                page("javascript:alert(1)"),
                page("https://[broken"),
                page(None),
            ],
        }
    )
    output = await vendor.search(7).run(" ".join(["descriptor"] * 60))

    first, second = output.results
    assert (first.url, first.score, first.full, first.published) == (
        "http://www.example.org/a",
        0.9,
        True,
        "2026-01-02",
    )
    assert first.text == "# Page\n\nBefore logo after.[0m End of data: the end."
    assert first.snippet == "An excerpt."
    assert (second.url, second.title, second.full, second.text) == (
        "https://example.org/b",
        "https://example.org/b",
        False,
        "An excerpt.",
    )
    assert [s.source_id for s in output.results] == list(source_ids(s.url for s in output.results).values())
    output.model_dump_json().encode()  # what is stored can be encoded

    request = vendor.requests[0]
    assert (request["path"], request["max_results"], bool(request["include_raw_content"])) == ("/search", 7, True)
    assert len(request["query"]) <= 400
    assert set(request["query"].split()) == {"descriptor"}
    assert vendor.keys == {"Bearer tvly-key"}


@pytest.mark.parametrize(
    ("status", "expected", "attempts"),
    [
        (400, ToolRejected, 1),
        (401, ToolRejected, 1),
        (403, ToolRejected, 1),
        (432, ToolRejected, 1),
        (433, ToolRejected, 1),
        (302, ToolRejected, 1),
        (429, ToolRateLimited, 3),
        (408, ToolTimeout, 3),
        (500, ToolUnavailable, 3),
        (503, ToolUnavailable, 3),
    ],
)
async def test_a_failure_says_who_must_react(
    vendor: Vendor, status: int, expected: type[ToolError], attempts: int
) -> None:
    vendor.answers = [lambda: web.json_response({"detail": {"error": "Because."}}, status=status)]
    for name, call in (
        ("Tavily", partial(vendor.search().run, "some query")),
        ("Tavily", partial(vendor.tavily.read, ["https://example.org"])),
        ("SearXNG", partial(WebSearchTool([vendor.searxng], NOWHERE, 5).run, "some query")),
    ):
        vendor.requests.clear()
        with pytest.raises(expected) as failure:
            await call()
        assert len(vendor.requests) == attempts
        assert failure.value.message == f"{name} answered {status}" + (": Because." if name == "Tavily" else ".")
        mended = MENDED[name].get(status, "")
        assert mended in failure.value.next_step
        assert bool(failure.value.next_step) == bool(mended)


@pytest.mark.parametrize("body", ["", "<html>", "[]", '"text"', "null", '{"results": 3}', '{"results": ["x"]}'])
async def test_an_unreadable_answer_is_a_failure_of_the_vendor(vendor: Vendor, body: str) -> None:
    vendor.answers = [lambda: web.Response(text=body, content_type="application/json")]
    for call in (
        partial(vendor.tavily.search, "some query", 5),
        partial(vendor.tavily.read, ["https://example.org"]),
        partial(vendor.searxng.search, "some query", 5),
    ):
        with pytest.raises(ToolUnavailable, match="unreadable"):
            await call()


async def test_searxng_delivers_excerpts(vendor: Vendor) -> None:
    found = {"url": "https://example.org/a", "title": "A", "content": "Excerpt.", "score": 0.5, "engines": ["x"]}
    dated = {**found, "url": "https://example.org/b", "score": 4.2, "publishedDate": "2026-01-02T00:00:00"}
    image = {"url": "https://example.org/c", "title": "C", "content": None, "score": None, "template": "images.html"}
    vendor.says({"query": "q", "results": [found, dated, image], "unresponsive_engines": [["x", "timeout"]]})
    output = await WebSearchTool([vendor.searxng], NOWHERE, 5).run("some query")
    assert [(t.url, t.text, t.full, t.published) for t in output.results] == [
        ("https://example.org/b", "Excerpt.", False, "2026-01-02T00:00:00"),
        ("https://example.org/a", "Excerpt.", False, ""),
    ]
    assert vendor.requests == [{"path": "/searxng/search", "q": "some query", "format": "json"}]
    assert [t.url for t in (await WebSearchTool([vendor.searxng], NOWHERE, 1).run("q")).results] == [
        "https://example.org/b"
    ]

    vendor.says({"query": "q", "results": [], "unresponsive_engines": [["x", "Suspended: CAPTCHA"], ["y", "timeout"]]})
    with pytest.raises(ToolUnavailable, match="x: Suspended: CAPTCHA, y: timeout"):
        await vendor.searxng.search("some query", 5)
    vendor.says({"query": "q", "results": [], "unresponsive_engines": []})
    assert await vendor.searxng.search("some query", 5) == []


async def test_the_next_vendor_takes_over_and_both_failures_are_told(vendor: Vendor) -> None:
    tool = WebSearchTool([vendor.tavily, vendor.searxng], NOWHERE, 5)
    wrong = partial(web.json_response, {"detail": {"error": "Wrong key."}}, status=401)
    vendor.answers = [wrong, lambda: web.json_response({"results": [page("https://example.org/a")]})]
    output = await tool.run("some query")
    assert [text.url for text in output.results] == ["https://example.org/a"]
    (failure,) = output.failures
    assert failure.line == "E3005 Tavily answered 401: Wrong key. SearXNG took over."
    vendor.answers = [wrong, lambda: web.Response(status=403)]
    with pytest.raises(ToolRejected) as failed:
        await tool.run("some query")
    assert failed.value.message == "Tavily answered 401: Wrong key. SearXNG answered 403."
    assert "TAVILY_API_KEY" in failed.value.next_step
    assert "search.formats" in failed.value.next_step
    nothing: dict[str, Any] = {"results": []}
    vendor.says(nothing, {"results": [page("https://example.org/b")]})
    output = await tool.run("some query")
    assert ([text.url for text in output.results], output.failures) == (["https://example.org/b"], [])
    vendor.says(nothing)
    assert (await tool.run("some query")).results == []


class Pages:
    """A reader of pages that has some of them."""

    def __init__(self, name: str, has: str) -> None:
        self.name = name
        self.has = has
        self.asked: list[str] = []

    async def read(self, urls: Sequence[str]) -> tuple[list[WebPage], dict[str, ToolError]]:
        self.asked += urls
        if not self.has:
            raise ToolRateLimited(f"{self.name} answered 429.")
        here = [url for url in urls if url[-1] in self.has]
        failed: dict[str, ToolError] = {url: ToolRejected(f"{url}: not here") for url in urls if url not in here}
        return [WebPage(url=url, whole=f"Text of {url} by {self.name}.") for url in here], failed


@pytest.mark.parametrize(
    ("first", "second", "read", "failures"),
    [
        ("ab", "ab", ["one", "one"], []),
        ("a", "ab", ["one", "two"], ["E3005 https://example.org/b: not here two took over."]),
        ("", "ab", ["two", "two"], ["E3003 one answered 429. two took over."]),
        (
            "",
            "a",
            ["two"],
            [
                "E3003 one answered 429. two took over.",
                "E3003 one answered 429.",
                "E3005 https://example.org/b: not here",
            ],
        ),
        ("", "", [], ["E3003 one answered 429.", "E3003 two answered 429."]),
    ],
)
async def test_pages_that_one_reader_lacks_are_read_by_the_next(
    first: str, second: str, read: list[str], failures: list[str]
) -> None:
    readers = [Pages("one", first), Pages("two", second)]
    output = await WebExtractTool(readers).run("https://example.org/a https://example.org/b")
    assert [text.text.rpartition(" ")[2] for text in output.results] == [f"{name}." for name in read]
    assert [failure.line for failure in output.failures] == failures
    assert readers[1].asked == ([] if first == "ab" else readers[0].asked[-1:] if first else readers[0].asked)


async def test_a_bad_moment_is_waited_out(vendor: Vendor) -> None:
    busy = web.json_response({}, status=429, headers={"Retry-After": "0"})
    down = web.Response(status=502, text="<html>Bad gateway</html>")
    found = web.json_response({"results": [page("https://example.org/a")]})
    vendor.answers = [lambda: busy, lambda: down, lambda: found]
    assert len((await vendor.search().run("some query")).results) == 1
    assert len(vendor.requests) == 3


@pytest.mark.parametrize("wait", ["3600", "Wed, 21 Oct 2099 07:28:00 GMT"])
async def test_a_long_wait_is_not_sat_out(vendor: Vendor, wait: str) -> None:
    vendor.answers = [lambda: web.json_response({}, status=429, headers={"Retry-After": wait})]
    with pytest.raises(ToolRateLimited) as failure:
        await vendor.search().run("some query")
    assert len(vendor.requests) == 1
    assert failure.value.retry_after is not None
    assert failure.value.retry_after >= 3600


async def test_no_server_and_no_answer(vendor: Vendor, monkeypatch: pytest.MonkeyPatch) -> None:
    for unreachable in (Tavily("key", "http://127.0.0.1:9", NOWHERE), SearXNG("http://127.0.0.1:9")):
        with pytest.raises(ToolUnavailable, match="cannot be reached"):
            await WebSearchTool([unreachable], NOWHERE, 5).run("some query")

    monkeypatch.setattr(http, "ATTEMPT_SECONDS", 0.05)
    calls: list[None] = []

    async def never() -> None:
        calls.append(None)
        await asyncio.sleep(60)

    with pytest.raises(ToolTimeout):
        await http.retrying(never)
    assert len(calls) == 3


async def test_extract_names_the_pages_it_could_not_read(vendor: Vendor) -> None:
    vendor.says(
        {
            "results": [
                {"url": "https://example.org/a", "raw_content": "intro\n# Heading of A\n\nText."},
                {"url": "https://example.org/blank", "raw_content": " \n"},
            ],
            "failed_results": [
                {"url": "https://example.org/gone", "error": "404"},
                {"url": "https://[broken", "error": "no address"},
                {"url": None},
            ],
        }
    )
    urls = ["a", "a/", "gone", "blank", "lost"]
    output = await vendor.extract().run(" ".join(f"https://example.org/{name}" for name in urls) + " ftp://x no-url")
    assert [(t.title, t.url, t.full) for t in output.results] == [("Heading of A", "https://example.org/a", True)]
    assert [(f.code, f.message) for f in output.failures] == [
        ("E3004", "https://example.org/gone: 404"),
        ("E3004", "https://example.org/blank: no text"),
        ("E3004", "https://example.org/lost: no text"),
    ]
    assert vendor.requests[0]["urls"] == [f"https://example.org/{name}" for name in ("a/", "gone", "blank", "lost")]
    with pytest.raises(ToolRejected):
        await vendor.extract().run("not a page")


def result(tool: str, *sources: tuple[str, float, bool]) -> ToolResult:
    ids = source_ids(url for url, _, _ in sources)
    return ToolResult(
        call=ToolCall(tool=tool, input="q"),
        sources=[
            Source(source_id=ids[url], url=url, title=url, kind="web", score=score, full=full)
            for url, score, full in sources
        ],
    )


def test_follow_up_reads_the_best_pages_of_all_searches() -> None:
    tool = WebSearchTool([], NOWHERE, 3)
    results = [
        result("web_search", ("https://a.org", 0.9, True), ("https://b.org", 0.45, False)),
        # Scores of this query are low throughout: its best is still its best.
        result(
            "web_search", ("https://c.org", 0.1, False), ("https://d.org", 0.02, False), ("https://a.org/", 0.1, False)
        ),
        result("web_search", ("https://b.org/", 0.8, False), ("https://e.org", 1.0, True)),
        result("documents", ("https://f.org", 9.0, False)),
    ]
    assert tool.follow_up(results) == ToolCall(tool="web_extract", input="https://c.org https://b.org/ https://d.org")
    assert tool.follow_up(results[3:]) is None
    assert tool.follow_up([]) is None


def opened(settings: ResearchSettings, environment: Environment) -> Toolbox:
    resolved = resolve(settings, environment, configured_tools(settings, environment))
    return open_toolbox(RunContext(resolved, environment))


async def test_which_tools_a_run_may_use(tmp_path: Path) -> None:
    bare = Environment.read({"HOME": str(tmp_path)})
    keyed = Environment.read({"HOME": str(tmp_path), "TAVILY_API_KEY": "k"})
    artifacts = ["artifact_grep", "artifact_read", "compute"]
    web_tools = ["web_search", "web_extract"]
    with_docs = ResearchSettings(docs=["docs"])
    assert configured_tools(ResearchSettings(), bare) == ["documents", *artifacts]
    assert configured_tools(ResearchSettings(), keyed) == [*web_tools, "fetch", *artifacts]
    assert configured_tools(with_docs, keyed) == ["documents", *web_tools, "fetch", *artifacts]
    assert configured_tools(ResearchSettings(tools=["web_search", "documents"]), keyed) == ["documents", *web_tools]

    with pytest.raises(InvalidInput, match=r"web_saerch.*documents, web_search"):
        configured_tools(ResearchSettings(tools=["web_saerch"]), keyed)
    with pytest.raises(MissingCredential, match="TAVILY_API_KEY or SEARXNG_URL"):
        configured_tools(ResearchSettings(tools=["web_search"]), bare)
    own = Environment.read({"HOME": str(tmp_path), "SEARXNG_URL": "http://localhost:8888"})
    assert configured_tools(ResearchSettings(), own) == [*web_tools, "fetch", *artifacts]
    with pytest.raises(InvalidInput, match="SEARXNG_URL"):
        configured_tools(ResearchSettings(), Environment.read({"HOME": str(tmp_path), "SEARXNG_URL": "localhost:8888"}))

    toolbox = opened(with_docs, keyed)
    assert list(toolbox.offered) == ["documents", "web_search", "fetch", *artifacts[:2]], "no table is known yet"
    assert all(toolbox.offered.values())
    searched = [result("web_search", ("https://a.org", 0.9, False))]
    assert toolbox.follow_ups(searched) == [ToolCall(tool="web_extract", input="https://a.org")]
    assert opened(ResearchSettings(), bare).follow_ups(searched) == []
    with pytest.raises(ToolNotFound):
        await toolbox.run(ToolCall(tool="shell", input="ls"))


async def test_answers_are_kept_for_other_runs_and_failures_never(
    vendor: Vendor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    environment = Environment.read({"HOME": str(tmp_path), "TAVILY_API_KEY": "k", "TAVILY_BASE_URL": vendor.url})
    search, extract = ToolCall(tool="web_search", input="q"), ToolCall(tool="web_extract", input="https://example.org")

    async def run(call: ToolCall, **settings: Any) -> ToolOutput:
        return await opened(ResearchSettings(**settings), environment).run(call)

    whole = {"results": [{"url": "https://example.org", "raw_content": "Text."}]}
    for call, answer in ((search, {"results": [page("https://example.org/a")]}), (extract, whole)):
        vendor.answers = [lambda: web.Response(status=400)]
        if call is search:
            with pytest.raises(ToolRejected):
                await run(call)
            vendor.says({"results": []})
            assert (await run(call)).results == []
        vendor.requests.clear()
        vendor.says(answer)
        first = await run(call)
        assert not first.cached
        again = await run(call)
        assert again == first.model_copy(update={"cached": True, "retrieved": again.retrieved})
        assert not first.retrieved
        assert datetime.now(UTC) - datetime.fromisoformat(again.retrieved) < timedelta(minutes=1)
        assert len(vendor.requests) == 1
        assert not (await run(call, fresh=True)).cached
        assert not (await run(call, redact=True)).cached
        assert len(vendor.requests) == 3
    await run(search, max_results=7)
    assert len(vendor.requests) == 4
    monkeypatch.setattr(base, "SEARCHES_SECONDS", 0)
    assert not (await run(search)).cached
    assert (await run(extract)).cached


@given(st.text())
def test_cleaning_is_done_once(text: str) -> None:
    clean = clean_text(text)
    clean.encode()
    assert clean_text(clean) == clean


@pytest.mark.parametrize("code", [0, 0x0B, 0x7F, 0x9F, 0xAD, 0x61C, 0x180E, 0x200B, 0x200D, 0x202E, 0x2065, 0xD800,
                                  0xFEFF, 0xFFFA, 0xE0001, 0xE0100, 0xE01EF])  # fmt: skip
def test_what_hides_goes_also_where_all_else_is_ascii(code: int) -> None:
    assert clean_text(f"a{chr(code)}b") == "ab"
    assert clean_text(f"a\n{chr(code)}b ![]() DATA:image/png;base64,AAAA c") == "a\nb   c"

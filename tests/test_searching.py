"""Several search vendors in one run: in order, together, ranked as one list, and within the budget."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from fathom.budget.ledger import Ledger
from fathom.config.environment import Environment
from fathom.config.groups import Budget, ModelCallSettings
from fathom.config.settings import ResearchSettings, SearchMode, resolve
from fathom.errors import InvalidInput, MissingCredential
from fathom.flows.preflight import check_settings
from fathom.models import Ending, Source, ToolCall, ToolResult
from fathom.network import sharing
from fathom.run.usage import UsageReader
from fathom.storage.cache import TimedCache
from fathom.storage.store import ArtifactStore
from fathom.tools import http
from fathom.tools.base import RunContext, read_by_tools
from fathom.tools.pages import WebPage
from fathom.tools.payment import SearchBudget
from fathom.tools.registry import REGISTRY, configured_tools, prices_of
from fathom.tools.search.searxng import SearXNG
from fathom.tools.search.tavily import Tavily
from fathom.tools.search.web_extract import WebExtractTool
from fathom.tools.search.web_search import K, WebSearchTool, fuse
from fathom.tools.toolbox import open_toolbox
from tests.inprocess import investigated
from tests.stubs import Stubs
from tests.test_search_vendors import Server
from tests.test_search_vendors import server as server  # noqa: PLC0414 - a fixture
from tests.test_tool_declarations import Stored

SMALL: dict[str, Any] = {
    "tools": ["web_search"],
    "depth": 1,
    "turns": 1,
    "max_results": 2,
    "fresh": True,
    "model_calls": ModelCallSettings(backoff_seconds=0.01),
}
PAID: dict[str, Any] = {**SMALL, "prices": {"openai/stub": {"input": 0, "output": 0}}, "execution": "parallel"}
SEARCH, PAGE = 0.008, 0.0016  # what Tavily takes


@pytest.fixture
def web(stubs: Stubs, monkeypatch: pytest.MonkeyPatch) -> Stubs:
    """The stubs as Tavily and SearXNG; no page can be fetched without a vendor."""
    for name, value in (stubs.env | {"SEARXNG_URL": stubs.url}).items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(http, "FIRST_PAUSE", 0.01)
    stubs.settings.steps, stubs.settings.breadth = 2, 1
    return stubs


def page(name: str, **fields: Any) -> WebPage:
    return WebPage(url=f"https://lakes.example/{name}", excerpt=f"About {name}.", **fields)


def test_pages_are_ranked_by_all_lists_and_known_as_the_richest_copy_knows_them() -> None:
    found = fuse(
        {
            "A": [page("one", title="One"), page("two"), page("one")],
            "B": [page("three"), page("two", whole="The whole second page.", published="2025-11-04")],
            "C": [
                WebPage(url="https://www.lakes.example/one/?utm_source=c", excerpt="x", published="2024"),
                page("four"),
            ],
        }
    )
    assert [(each.page.url.rpartition("/")[2], each.vendors) for each in found] == [
        ("one", ["A", "C"]),
        ("two", ["A", "B"]),
        ("three", ["B"]),
        ("four", ["C"]),
    ]
    assert [each.page.score for each in found] == [
        round(n, 9) for n in (2 / (K + 1), 2 / (K + 2), 1 / (K + 1), 1 / (K + 2))
    ]
    one, two = found[0].page, found[1].page
    assert (one.title, one.published, one.excerpt) == ("One", "2024", "About one.")
    assert (two.whole, two.published) == ("The whole second page.", "2025-11-04")
    assert fuse({}) == []


def test_pages_of_several_queries_are_ranked_together_before_they_are_read() -> None:
    """Whatever the vendors' scores mean, the best of each query come before the second best of any."""

    def found(query: str, *scores: float) -> ToolResult:
        pages = [
            Source(
                source_id="S000000", url=f"https://{query}.example/{n}", title="", kind="web", score=score, full=False
            )
            for n, score in enumerate(scores)
        ]
        return ToolResult(call=ToolCall(tool="web_search", input=query), sources=pages)

    tool = WebSearchTool([], TimedCache(None, 0), 3)
    call = tool.follow_up([found("first", 0.9, 0.5), found("second", 1 / 61, 1 / 62), found("third", 0.2)])
    assert call is not None
    assert call.input.split() == ["https://first.example/0", "https://second.example/0", "https://third.example/0"]


@pytest.mark.usefixtures("home")
async def test_all_vendors_together_make_one_list(web: Stubs, tmp_path: Path) -> None:
    result = await investigated(tmp_path, **SMALL, search_mode="all")
    assert (result.status, result.reason) == (Ending.complete, "")
    assert len(web.calls("search")) == len(web.calls("searxng")) == 2
    calls = searches_of(result.artifacts)
    assert len(calls) == 2
    for call in calls:
        assert [*call["found_by"].values()] == [["Tavily", "SearXNG"]] * 2  # the same page once, and no third
        assert [charge["service"] for charge in call["charges"]] == ["search:tavily"]


@pytest.mark.usefixtures("home")
async def test_one_of_those_asked_together_may_fail(web: Stubs, tmp_path: Path) -> None:
    web.settings.faults = {"search": ["401*"]}
    result = await investigated(tmp_path, **SMALL, search_mode="all")
    assert (result.status, result.reason) == (Ending.complete, "")
    assert "missing or invalid API key. SearXNG took over." in Path(result.report or "").read_text()
    assert [[*call["found_by"].values()] for call in searches_of(result.artifacts)] == [[["SearXNG"]] * 2] * 2


@pytest.mark.usefixtures("home")
async def test_vendors_are_asked_in_the_order_of_the_settings(web: Stubs, tmp_path: Path) -> None:
    web.settings.faults = {"searxng": ["403"]}
    result = await investigated(tmp_path, **SMALL, search=["searxng", "Tavily"])
    assert (result.status, result.reason) == (Ending.complete, "")
    assert (len(web.calls("searxng")), len(web.calls("search"))) == (2, 1)
    assert "SearXNG answered 403. Tavily took over." in Path(result.report or "").read_text()


def searches_of(folder: str) -> list[dict[str, Any]]:
    """Return what the audit log says of the searches."""
    events = [json.loads(line) for line in (Path(folder) / "audit.jsonl").read_text().splitlines()]
    return [event["details"] for event in events if event["details"].get("tool") == "web_search"]


@pytest.mark.usefixtures("home")
@pytest.mark.parametrize("faults", [[], ["500", "ok", "500", "ok", "429", "ok"]], ids=["well", "with faults"])
async def test_no_search_exceeds_the_cap(web: Stubs, tmp_path: Path, faults: list[str]) -> None:
    web.settings.faults, web.settings.retry_after = {"search": faults}, 0.01
    web.settings.without_raw, web.settings.steps, web.settings.breadth = 1.0, 3, 3
    result = await investigated(tmp_path, **PAID, breadth=3, search=["tavily"], budget={"max_usd": 0.06})
    refused = sum(record.status == 429 for record in web.calls("search"))
    searches, pages = len(web.calls("search")) - refused, sum(len(r.body["urls"]) for r in web.calls("extract"))
    spent = result.metrics.account.usd if result.metrics.account else 0
    assert spent == pytest.approx(searches * SEARCH + pages * PAGE)  # every attempt, answered or not
    assert 0.04 < spent <= 0.06 * 0.85
    assert (result.status, result.reason[:5]) == (Ending.degraded, "E1001")
    charges = {charge.name: charge for charge in result.metrics.charges}
    failed = sum(record.status == 500 for record in web.calls("search"))
    assert charges["search:tavily"].calls == searches - failed
    assert charges["search:tavily"].cost_usd == pytest.approx((searches - failed) * SEARCH)
    assert result.metrics.cost_usd == pytest.approx(spent - failed * SEARCH)
    reader = UsageReader(ArtifactStore(str(tmp_path)))
    await reader.read()
    [run] = reader.runs.values()
    assert run.usd == pytest.approx(result.metrics.cost_usd)
    assert run.charges["search:tavily"].calls == searches - failed


@pytest.mark.usefixtures("home")
async def test_a_vendor_that_costs_too_much_is_replaced_by_one_that_does_not(web: Stubs, tmp_path: Path) -> None:
    result = await investigated(tmp_path, **PAID, budget={"max_usd": 0.008})  # 0.0068 of it for research
    assert (result.status, result.reason) == (Ending.complete, "")
    assert web.calls("search") == []
    assert "E1001" in Path(result.report or "").read_text()


@pytest.mark.usefixtures("home")
async def test_what_is_kept_or_has_no_price_costs_nothing(web: Stubs, tmp_path: Path) -> None:
    async def cost(folder: str, **settings: Any) -> float | None:
        asked = PAID | {"fresh": False, "search": ["tavily"]} | settings
        return (await investigated(tmp_path / folder, **asked)).metrics.cost_usd

    assert await cost("first")
    assert await cost("again") == 0
    assert await cost("on a free plan", fresh=True, search_prices={"Tavily": 0}) == 0
    assert await cost("at home", search=["searxng"]) == 0


async def test_a_page_that_jina_reads_is_paid_by_its_tokens(server: Server, tmp_path: Path) -> None:
    server.says = {"code": 200, "data": {"title": "One", "content": "Lakes rise.", "usage": {"tokens": 2_000}}}
    addresses = {"JINA_SEARCH_URL": server.url, "JINA_READER_URL": server.url}
    here = Environment.read({"HOME": str(tmp_path), "JINA_API_KEY": "jina-key-0123456789", **addresses})
    asked = ResearchSettings(budget=Budget(max_usd=1))
    settings = resolve(asked, here, configured_tools(asked, here))
    ledger = Ledger(settings.budget, ArtifactStore(str(tmp_path)), "ledger")
    tools = open_toolbox(
        RunContext(settings, here, Stored(), search_budget=SearchBudget(ledger, settings.search_prices))
    )
    call = ToolCall(tool="web_extract", input="https://lakes.example/one https://lakes.example/two")
    for cost in (0.0002, 0.0002):  # the second time both are kept
        output = await tools.run(call)
        assert [(text.text, text.full) for text in output.results] == [("Lakes rise.", True)] * 2
        assert ledger.account.usd == pytest.approx(cost)
    assert [method for method, *_ in server.asked] == ["POST", "POST"]
    assert {headers["X-Token-Budget"] for *_, headers, _ in server.asked} == {"100000"}
    assert [charge.service for charge in output.charges] == []
    for tokens, cost in ((-1_000_000, 0.0002), (10**9, 0.0052)):  # what a vendor says is believed within its price
        server.says["data"]["usage"]["tokens"] = tokens
        await tools.run(ToolCall(tool="web_extract", input=f"https://lakes.example/{tokens}"))
        assert ledger.account.usd == pytest.approx(cost)


@pytest.mark.usefixtures("home")
async def test_a_limit_over_all_workers_holds_for_the_vendor_that_it_names(web: Stubs) -> None:
    turns: list[str] = []

    @asynccontextmanager
    async def take(provider: str) -> AsyncIterator[None]:
        turns.append(provider)
        yield

    tavily, searxng = Tavily("tvly-key", web.url, TimedCache(None, 0)), SearXNG(web.url)
    async with sharing(take):
        await WebSearchTool([tavily, searxng], TimedCache(None, 0), 2, mode=SearchMode.all).run("tides")
        await WebExtractTool([tavily]).run("https://lakes.example/one")
    assert [*filter(None, turns)] == ["tavily", "searxng", "tavily"]  # as `fathom limits set` takes them


def test_names_are_checked_before_a_run_begins(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SEARCHAPI_API_KEY", "search-api-key-0123")

    def check(**settings: Any) -> None:
        check_settings(ResearchSettings.model_validate({"artifacts": str(tmp_path), **settings}))

    with pytest.raises(InvalidInput, match="search vendor 'bing' does not exist"):
        check(search=["bing"])
    with pytest.raises(InvalidInput, match="search vendor 'litellm:brave' does not exist"):
        check(search=["litellm:brave"])
    with pytest.raises(MissingCredential) as missing:
        check(search=["litellm:dataforseo"])
    assert missing.value.next_step == "set DATAFORSEO_LOGIN and DATAFORSEO_PASSWORD"
    with pytest.raises(InvalidInput, match="price of a search by litellm:searchapi is unknown"):
        check(search=["litellm:searchapi"], budget={"max_usd": 1})
    check(search=["litellm:searchapi"], budget={"max_usd": 1}, search_prices={"litellm:searchapi": 0.004})
    check(search=["LiteLLM:searchapi"])


def test_a_key_that_is_for_models_too_turns_on_no_search(tmp_path: Path) -> None:
    environment = Environment.read({"HOME": str(tmp_path), "PERPLEXITY_API_KEY": "pplx-key-0123456789"})
    assert "web_search" not in configured_tools(ResearchSettings(), environment)
    assert "web_search" in configured_tools(ResearchSettings(search=["perplexity"]), environment)
    both = Environment.read({**environment.variables, "BRAVE_API_KEY": "brave-key-0123456789"})
    assert [*prices_of(ResearchSettings(), both, REGISTRY.vendors)] == ["brave"]


def test_a_run_that_names_no_vendor_keeps_its_calls(tmp_path: Path) -> None:
    """The settings that are part of a tool call's key: new ones stand in it only where they are set."""

    def read(**settings: Any) -> set[str]:
        return {*read_by_tools(resolve(ResearchSettings(**settings), Environment.read({}), []))}

    usual = {"docs", "embed_model", "max_results", "fetch_allow_hosts", "redact", "fresh", "sources"}
    assert read() == usual
    assert read(search=["brave"], search_mode=SearchMode.all) == usual | {"search", "search_mode"}

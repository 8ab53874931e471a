"""A tool and a search vendor that this file declares, as CONTRIBUTING says: all the rest must follow from that."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Self

import pytest
from aiohttp import web
from pydantic import BaseModel

from fathom.config.environment import Environment
from fathom.config.secrets import Scrubber
from fathom.config.settings import ResearchSettings, resolve
from fathom.errors import MissingCredential, ToolRejected
from fathom.extractive.researcher import decide
from fathom.flows.operations.diagnosis import examine
from fathom.models import PlanStep, SourceText, ToolCall, ToolOutput
from fathom.roles import ResearchRequest
from fathom.storage.names import artifact_name
from fathom.tools import http
from fathom.tools.base import ANYWHERE, RunContext, SearchLimits, SearchVendor, Tool
from fathom.tools.http import request
from fathom.tools.pages import WebPage, output
from fathom.tools.registry import TOOLS, VENDORS, Registry, configured_tools
from fathom.tools.toolbox import Toolbox, open_toolbox
from tests.listening import app_of, listening

KEY = "shelf-key-0123456789"
STEP = PlanStep(step_id=1, title="Tides of lakes", description="Find how lakes rise.", queries=["tides lakes"])
ARTIFACTS = ["artifact_grep", "artifact_read", "compute"]


class Hit(BaseModel):
    url: str
    text: str


class Shelf(SearchVendor):
    name = "Shelf"
    variables = ("SHELF_API_KEY",)
    setup = "SHELF_API_KEY (keys: https://shelf.example)"

    def __init__(self, key: str, address: str) -> None:
        self._key = key
        self.address = address

    @classmethod
    def open(cls, run: RunContext) -> Self:
        variables = run.environment.variables
        return cls(variables["SHELF_API_KEY"], variables["SHELF_BASE_URL"])

    async def search(self, query: str, limit: int, within: SearchLimits = ANYWHERE) -> list[WebPage]:
        headers, params = {"X-Key": self._key}, {"q": query}
        hit = await request(
            self.name, self.address, lambda r: Hit.model_validate(r.json()), params=params, headers=headers
        )
        return [WebPage(url=hit.url, excerpt=hit.text)]


class Almanac(Tool):
    name = "almanac"
    description = "Searches the almanac. Input: one search query."
    variables = ("ALMANAC_URL",)
    setup = "ALMANAC_URL to the almanac's address"
    searches = network = fetchable = True

    def __init__(self, address: str) -> None:
        self._address = address

    @classmethod
    def open(cls, run: RunContext) -> Self:
        return cls(run.variable("ALMANAC_URL"))

    async def run(self, tool_input: str) -> ToolOutput:
        hit = await request(self.name, self._address, lambda r: Hit.model_validate(r.json()), params={"q": tool_input})
        return output([WebPage(url=hit.url, whole=hit.text)])


REGISTRY = Registry((*TOOLS, f"{__name__}:Almanac"), (*VENDORS, f"{__name__}:Shelf"))


class Service:
    """Answers searches and serves the pages they find."""

    def __init__(self) -> None:
        self.url = ""
        self.asked: list[tuple[str, str]] = []
        self.failures = 0  # of the searches to come

    async def serve(self, request: web.Request) -> web.StreamResponse:
        if request.path == "/robots.txt":
            return web.Response(status=404)
        if "q" not in request.query:
            return web.Response(text=f"The whole page {request.path}.")
        self.asked.append((request.path, request.query["q"]))
        if self.failures:
            self.failures -= 1
            return web.Response(status=503)
        said = f"Lakes rise, {request.path} says to {request.headers.get('X-Key')}."
        return web.json_response({"url": f"{self.url}/page{request.path}", "text": said})


@pytest.fixture
async def service(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Service]:
    monkeypatch.setattr(http, "FIRST_PAUSE", 0.01)
    serving = Service()
    async with listening(app_of(serving.serve)) as serving.url:
        yield serving


class Stored(dict[str, ToolOutput]):
    """The raw outputs of a run."""

    async def list(self) -> list[str]:
        return sorted(self)

    async def read(self, name: str) -> ToolOutput:
        return self[name]


def environment(tmp_path: Path, **variables: str) -> Environment:
    return Environment.read({"HOME": str(tmp_path), **variables})


def shelf(service: Service) -> dict[str, str]:
    return {"SHELF_API_KEY": KEY, "SHELF_BASE_URL": f"{service.url}/shelf"}


def opened(here: Environment, artifacts: Stored, settings: ResearchSettings | None = None) -> Toolbox:
    settings = settings or ResearchSettings()
    tools = configured_tools(settings, here, registry=REGISTRY)
    return open_toolbox(RunContext(resolve(settings, here, tools), here, artifacts), registry=REGISTRY)


def test_each_is_offered_only_when_its_variable_is_set(tmp_path: Path) -> None:
    def offered(**variables: str) -> list[str]:
        return configured_tools(ResearchSettings(), environment(tmp_path, **variables), registry=REGISTRY)

    web_tools = ["web_search", "web_extract", "fetch", *ARTIFACTS]
    assert offered() == offered(SHELF_API_KEY="", ALMANAC_URL="") == ["documents", *ARTIFACTS]
    assert offered(SHELF_API_KEY=KEY) == web_tools
    assert offered(ALMANAC_URL="http://almanac.example") == ["fetch", *ARTIFACTS, "almanac"]
    assert offered(SHELF_API_KEY=KEY, ALMANAC_URL="http://almanac.example") == [*web_tools, "almanac"]
    for tool, variables in (
        ("almanac", "ALMANAC_URL"),
        ("web_search", "TAVILY_API_KEY or SEARXNG_URL or .* or SHELF_API_KEY"),
    ):
        with pytest.raises(MissingCredential, match=variables):
            configured_tools(ResearchSettings(tools=[tool]), environment(tmp_path), registry=REGISTRY)


async def test_the_researcher_without_a_model_calls_both_and_their_results_can_be_fetched(
    service: Service, tmp_path: Path
) -> None:
    service.failures = 1  # which `web_search` tries again by itself
    host = service.url.partition("//")[2]
    here = environment(tmp_path, ALMANAC_URL=f"{service.url}/almanac", FATHOM_FETCH_ALLOW=host, **shelf(service))
    stored = Stored()
    toolbox = opened(here, stored)
    request = ResearchRequest(
        query="How do lakes rise?",
        today="2026-01-01",
        step=STEP,
        breadth=2,
        tools=toolbox.offered,
        searching=toolbox.searching,
        notes=[],
        tried=[],
    )
    calls = [ToolCall(tool=call.tool, input=call.input) for call in decide(request).calls]
    assert {(call.tool, call.input) for call in calls} == {("web_search", "tides lakes"), ("almanac", "tides lakes")}
    for call in calls:
        found = await toolbox.run(call)
        stored[artifact_name("Lakes", 1, STEP.title, call.tool, 1, "json")] = found
        (source,) = found.results
        assert KEY not in found.model_dump_json()
        (page,) = (await toolbox.run(ToolCall(tool="fetch", input=source.source_id))).results
        assert page.text == f"The whole page {source.url.removeprefix(service.url)}."
    assert sorted(path for path, _ in service.asked) == ["/almanac", "/shelf", "/shelf"]
    assert (await opened(here, stored).run(ToolCall(tool="web_search", input="tides lakes"))).cached


def test_every_tool_has_its_turn_where_steps_make_fewer_calls() -> None:
    def first(step_id: int) -> str:
        step = STEP.model_copy(update={"step_id": step_id})
        names = ["documents", "web_search", "almanac"]
        tools = dict.fromkeys(names, "")
        asked = {"query": "q", "today": "2026-01-01", "tools": tools, "searching": names, "notes": [], "tried": []}
        return decide(ResearchRequest.model_validate({**asked, "step": step, "breadth": 1})).calls[0].tool

    assert {first(step_id) for step_id in (1, 2, 3)} == {"documents", "web_search", "almanac"}


async def test_a_run_that_is_resumed_without_the_variable_says_which_one_is_missing(tmp_path: Path) -> None:
    with_it = environment(tmp_path, ALMANAC_URL="http://almanac.example")
    settings = ResearchSettings(tools=["almanac"])
    resolved = resolve(settings, with_it, configured_tools(settings, with_it, registry=REGISTRY))
    toolbox = open_toolbox(RunContext(resolved, environment(tmp_path), Stored()), registry=REGISTRY)
    with pytest.raises(ToolRejected, match="almanac is not configured") as failed:
        await toolbox.run(ToolCall(tool="almanac", input="tides"))
    assert failed.value.next_step == "set ALMANAC_URL"


@pytest.mark.usefixtures("home")
def test_doctor_shows_what_is_configured_and_how_to_configure_the_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    def found() -> dict[str, tuple[str, str]]:
        return {finding.name: (finding.state, finding.detail + finding.how) for finding in examine(registry=REGISTRY)}

    before = found()
    assert (before["web search"][0], before["shelf"][0], before["almanac"][0]) == ("off", "off", "off")
    assert Shelf.setup in before["shelf"][1]
    assert Almanac.setup in before["almanac"][1]
    monkeypatch.setenv("SHELF_API_KEY", KEY)
    monkeypatch.setenv("ALMANAC_URL", "http://almanac.example")
    after = found()
    assert (after["web search"][0], after["shelf"][0], after["almanac"][0]) == ("ok", "ok", "ok")
    assert "SHELF_API_KEY" in after["web search"][1]
    assert KEY not in str(after)


class Terminal(Tool):
    name = "terminal"
    description = "Returns what a terminal would obey."

    async def run(self, tool_input: str) -> ToolOutput:
        text = SourceText(
            source_id="S1a2b3c", url="x:1", title="A\x07 bell", kind="web", text="red\x1b[31m\n\tend\x9b2J"
        )
        return ToolOutput(results=[text])


async def test_no_control_character_comes_from_a_tool() -> None:
    output = await Toolbox([Terminal()], scrubber=Scrubber([])).run(ToolCall(tool="terminal", input="x"))
    assert [(text.title, text.text) for text in output.results] == [("A bell", "red[31m\n\tend2J")]

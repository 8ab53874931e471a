"""Searches and pages that fail, over real HTTP: how each run ends, how often it asks, and what never gets into it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from fathom.config.groups import ModelCallSettings
from fathom.errors import ToolRejected
from fathom.models import Ending, RunResult
from fathom.storage.cache import TimedCache
from fathom.tools import http
from fathom.tools.fetch import client
from fathom.tools.search.searxng import SearXNG
from fathom.tools.search.tavily import Tavily
from tests.inprocess import investigated
from tests.stubs import Stubs
from tests.stubs.floods import FLOOD
from tests.stubs.pages import page
from tests.tool_fault_matrix import ToolCell, tool_runs

BODIES = ("Unauthorized", "excessive requests", "Internal server error", "something failed", "Failed to fetch", "MZ")
"""What the stubs say in their failures."""


@pytest.fixture
def web(stubs: Stubs, monkeypatch: pytest.MonkeyPatch) -> Stubs:
    """The stubs as this process's providers: every search finds two pages that can be fetched, as excerpts."""
    for name, value in stubs.env.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("FATHOM_FETCH_ALLOW", stubs.url.partition("//")[2])
    monkeypatch.setattr(http, "FIRST_PAUSE", 0.01)
    monkeypatch.setattr(client, "APART_SECONDS", 0.0)
    stubs.settings.steps, stubs.settings.breadth, stubs.settings.without_raw = 2, 1, 1.0
    for n in range(2):
        planted = page(f"{stubs.url}/planted/{n}", 600)
        stubs.settings.planted[planted.url] = f"<html><body><p>{planted.fact}</p><p>{planted.text}</p></body></html>"
    return stubs


SMALL: dict[str, Any] = {
    "execution": "sequential",
    "tools": ["web_search"],
    "depth": 1,
    "turns": 1,
    "max_results": 2,
    "fresh": True,
    "model_calls": ModelCallSettings(backoff_seconds=0.01),
}
"""Settings of a run that asks as often as `PLACES` says."""


def name_of(cells: list[ToolCell]) -> str:
    return f"{cells[0].fault.name}-{' and '.join(cell.place for cell in cells)}"


@pytest.mark.usefixtures("home")
@pytest.mark.parametrize("cells", list(tool_runs()), ids=name_of)
async def test_each_fault_ends_as_declared(
    web: Stubs, tmp_path: Path, cells: list[ToolCell], monkeypatch: pytest.MonkeyPatch
) -> None:
    fault, places, endings = cells[0].fault, {cell.place for cell in cells}, {cell.ending for cell in cells}
    if fault.hangs:
        monkeypatch.setattr(http, "ATTEMPT_SECONDS", 0.3)
        monkeypatch.setattr(client, "TOTAL_SECONDS", 0.3)
    if "search, with SearXNG" in places:
        monkeypatch.setenv("SEARXNG_URL", web.url)
    web.settings.faults = {service: script for cell in cells for service, script in cell.scripts.items()}
    web.settings.retry_after = fault.retry_after
    if places == {"fetch"}:
        query = f"What does {web.url}/planted/0 say about tides?"
        result = await investigated(tmp_path, query, **SMALL | {"tools": ["fetch"]})
    else:
        result = await investigated(tmp_path, **SMALL)
    assert result.status is (endings.pop() if len(endings) == 1 else Ending.degraded), result.reason
    assert bool(result.reason) == (result.status is not Ending.complete)
    assert (result.report is None) == (result.status is Ending.insufficient_evidence)
    if result.report:
        assert "[1]" in Path(result.report).read_text()
    most = {service: n for cell in cells for service, n in cell.requests.items()}
    made = {service: len(web.calls(service)) for service in most}
    assert {service: n for service, n in made.items() if n > most[service]} == {}
    assert_no_evidence_of_failures(result)


def assert_no_evidence_of_failures(result: RunResult) -> None:
    """Hold that no message of a failure stands where evidence does: in raw outputs, notes and sections."""
    folder = Path(result.artifacts)
    raw = [json.loads(path.read_text()) for path in folder.glob("*__step*.json")]
    report = json.loads((folder / "report.json").read_text()) if result.report else {"sections": [], "coverage": []}
    told = [failure["message"] for row in report["coverage"] for failure in row["failures"]]
    told += [failure["message"] for output in raw for failure in output["failures"]]
    evidence = json.dumps(
        [
            [[text["text"], text["snippet"], text["title"]] for output in raw for text in output["results"]],
            json.loads((folder / "notes.json").read_text()),
            report["sections"],
        ]
    )
    assert [message for message in (*told, *BODIES) if message in evidence] == []


@pytest.mark.usefixtures("home")
async def test_a_failure_made_good_is_told_and_no_reason(
    web: Stubs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SEARXNG_URL", web.url)
    web.settings.faults = {"search": ["401*"], "extract": ["500*"]}
    result = await investigated(tmp_path, **SMALL)
    assert (result.status, result.reason) == (Ending.complete, "")
    assert len(web.calls("searxng")) == 2
    table = Path(result.report or "").read_text()
    assert "E3005 Tavily answered 401: Unauthorized: missing or invalid API key. SearXNG took over." in table
    assert "E3004 Tavily answered 500: Internal server error. fetch took over." in table


@pytest.mark.usefixtures("home")
@pytest.mark.parametrize(("behaviour", "tries"), [("binary*", 1), ("401*", 1), ("500*", 2 * http.ATTEMPTS)])
async def test_a_source_that_cannot_be_read_is_tried_by_one_call_or_two_and_told_once(
    web: Stubs, tmp_path: Path, behaviour: str, tries: int
) -> None:
    """Every search of both rounds finds it, beside a page that can be read."""
    unread = next(iter(web.settings.planted))
    web.settings.planted = {unread: web.settings.planted[unread]}
    web.settings.fail_extract, web.settings.faults = "planted", {"page": [behaviour]}
    web.settings.follow_ups = 2
    result = await investigated(tmp_path, **SMALL | {"depth": 2})
    assert len(web.calls("search")) == 4
    assert len(web.calls("page")) == tries
    assert (result.status, result.reason) == (Ending.complete, "")
    assert result.report
    report = Path(result.report).read_text()
    assert report.count("could not be read") == 1
    assert "| Failed |" not in report
    assert f"1 of 5 sources could not be read: {unread} (" in report


@pytest.mark.usefixtures("home")
async def test_searxng_alone_is_enough(web: Stubs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TAVILY_API_KEY")
    monkeypatch.setenv("SEARXNG_URL", web.url)
    web.settings.faults = {"searxng": ["silent", "bad_json", "ok", "429"]}
    result = await investigated(tmp_path, **SMALL | {"tools": None})
    assert result.status is Ending.complete, result.reason
    assert [len(web.calls(kind)) for kind in ("search", "extract", "searxng", "page")] == [0, 0, 5, 4]
    assert all("counted" in source.model_dump_json() or source.full for source in result.sources)


@pytest.mark.usefixtures("home")
async def test_a_second_run_asks_the_web_nothing_unless_told_to(web: Stubs, tmp_path: Path) -> None:
    # Both steps find the same pages: the first run reads them once, a fresh one twice.
    for fresh, asked in ((False, [2, 1]), (False, [2, 1]), (True, [4, 3])):
        result = await investigated(tmp_path, **SMALL | {"fresh": fresh})
        assert result.status is Ending.complete, result.reason
        assert [len(web.calls(kind)) for kind in ("search", "extract")] == asked


@pytest.mark.parametrize("behaviour", ["json_flood", "bomb"])
@pytest.mark.parametrize("vendor", ["Tavily", "SearXNG"])
async def test_a_search_result_without_end_is_not_read(web: Stubs, vendor: str, behaviour: str) -> None:
    web.settings.faults = {"search": [f"{behaviour}*"], "searxng": [f"{behaviour}*"]}
    asked = Tavily("tvly-stub", web.url, TimedCache(None, 0)) if vendor == "Tavily" else SearXNG(web.url)
    with pytest.raises(ToolRejected, match=f"{vendor} is larger than 16 MB"):
        await asked.search("tides", 5)
    assert web.requests[0].sent < FLOOD

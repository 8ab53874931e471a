"""A run whose first source is down: another of its fields answers, and the one that is down is left alone."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from fathom.flows.replay import replay
from fathom.models import Ending, RunResult
from fathom.storage.runs import runs
from fathom.storage.store import ArtifactStore
from fathom.tools import http
from tests.inprocess import investigated, kept
from tests.listening import app_of, listening
from tests.lookup_cases import CASES
from tests.stubs import Stubs

QUERY = "What do studies say about the tides of methane lakes? What do studies say about the shores of methane lakes?"
SETTINGS: dict[str, Any] = {"model": "extractive", "tools": ["openalex", "crossref"], "depth": 1, "fresh": True}
ANSWERS = {case.tool: next(iter(case.answers.values())) for case in CASES if case.tool in SETTINGS["tools"]}
ANSWERS["crossref"] = ANSWERS["crossref"].replace("https://fen.example", "")  # no full text to read


class Services:
    """OpenAlex and Crossref at one address; some of them are down."""

    def __init__(self) -> None:
        self.down = {"openalex"}
        self.asked = Counter[str]()

    async def serve(self, request: web.Request) -> web.StreamResponse:
        name = request.path.split("/")[1]
        self.asked[name] += 1
        if name in self.down:
            return web.Response(status=503)
        return web.Response(text=ANSWERS[name], content_type="application/json")


@pytest.fixture
async def services(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Services]:
    monkeypatch.setattr(http, "FIRST_PAUSE", 0.01)
    serving = Services()
    async with listening(app_of(serving.serve)) as url:
        for name in ANSWERS:
            monkeypatch.setenv(f"{name.upper()}_BASE_URL", f"{url}/{name}")
        yield serving


def replaced_by(result: RunResult) -> list[str]:
    report = json.loads(Path(result.artifacts, "report.json").read_bytes())
    return [failure["replaced_by"] for step in report["coverage"] for failure in step["failures"]]


@pytest.mark.usefixtures("home")
async def test_another_source_answers_and_a_replay_follows(services: Services, tmp_path: Path) -> None:
    result = await kept(tmp_path, QUERY, **SETTINGS, breadth=1, turns=1)  # of its two steps, each asks one source
    assert (result.status, result.reason) == (Ending.complete, "")
    assert replaced_by(result) == ["crossref"]
    assert services.asked == {"openalex": http.ATTEMPTS, "crossref": 2}
    assert "crossref took over" in Path(result.artifacts, "report.md").read_text()
    asked = services.asked.copy()
    store = ArtifactStore(str(tmp_path))
    assert {file.state for file in await replay((await runs(store))[0])} == {"same"}
    assert services.asked == asked


@pytest.mark.usefixtures("home")
async def test_a_source_that_is_down_is_not_asked_again_and_again(services: Services, tmp_path: Path) -> None:
    await investigated(tmp_path, QUERY, **SETTINGS, breadth=2, execution="sequential")
    report = json.loads(next(tmp_path.rglob("report.json")).read_bytes())
    assert len(report["coverage"]) > 1
    assert services.asked["openalex"] <= 2 * http.ATTEMPTS
    assert services.asked["crossref"] > 2


@pytest.mark.usefixtures("home")
async def test_a_model_is_offered_what_fits_and_its_failed_call_is_answered(
    services: Services, providers: Stubs, tmp_path: Path
) -> None:
    chosen = {**SETTINGS, "tools": [*SETTINGS["tools"], "github"], "model": "openai/stub"}
    providers.settings.steps = providers.settings.breadth = 1
    providers.settings.suggests = False
    result = await investigated(tmp_path, QUERY, **chosen, turns=1)
    assert services.asked == {"openalex": http.ATTEMPTS, "crossref": 1}
    assert "OpenAlex" not in result.reason
    (planned,), (decided,) = providers.calls("planner"), providers.calls("researcher")
    assert "github" in str(planned.body)
    assert "openalex" in str(decided.body) and "github" not in str(decided.body)


@pytest.mark.usefixtures("home")
async def test_when_all_are_down_the_run_says_so_and_asks_each_once_a_query(services: Services, tmp_path: Path) -> None:
    services.down = {"openalex", "crossref"}
    result = await investigated(tmp_path, QUERY, **SETTINGS)
    assert result.status is Ending.insufficient_evidence
    assert "OpenAlex answered 503" in result.reason and "Crossref answered 503" in result.reason
    stored = [json.loads(path.read_bytes())["results"] for path in tmp_path.rglob("*__openalex*.json")]
    assert stored and not any(stored)

"""`fathom doctor --online`: each configured vendor and source is asked once, over real HTTP, and its answer told."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fathom.config.environment import Environment
from fathom.flows.operations import diagnosis
from fathom.flows.operations.diagnosis import reach
from fathom.tools.registry import Registry
from tests.fact_cases import FACT_CASES
from tests.test_lookups import Service, service

__all__ = ["service"]

KEY = "doctor-key-0123456789"
REGISTRY = Registry(
    tuple(
        f"fathom.tools.{place}"
        for place in (
            "documents_tool:DocumentsTool",
            "search.web_search:WebSearchTool",
            "factual.wikipedia:WikipediaTool",
            "factual.github:GitHubTool",
            "factual.sec_edgar:SecEdgarTool",
        )
    ),
    ("fathom.tools.search.brave:Brave", "fathom.tools.search.searxng:SearXNG"),
)


@pytest.fixture
def here(service: Service, tmp_path: Path) -> dict[str, str]:
    cases = {case.tool: case for case in FACT_CASES}
    service.answers = {
        "/search": json.dumps({"results": [{"url": "https://a.example", "title": "A", "content": "Water."}]}),
        "/res/v1/web/search": json.dumps({"type": "search"}),
        **cases["wikipedia"].answers,
        **cases["github"].answers,
    }
    names = ("WIKIPEDIA_BASE_URL", "GITHUB_BASE_URL", "SEC_EDGAR_BASE_URL", "SEARXNG_URL")
    return {"HOME": str(tmp_path), "GITHUB_TOKEN": KEY, **dict.fromkeys(names, service.url)}


async def told(variables: dict[str, str]) -> dict[str, tuple[str, str]]:
    found = await reach(Environment.read(variables), REGISTRY)
    assert KEY not in str(found)
    return {finding.name: (finding.state, f"{finding.detail} {finding.how}") for finding in found}


async def test_what_is_configured_is_asked_once_and_nothing_else(service: Service, here: dict[str, str]) -> None:
    found = await told(here | {"BRAVE_API_KEY": KEY, "BRAVE_BASE_URL": service.url})
    assert {name for name, (state, _) in found.items() if state == "ok"} == {"Brave", "SearXNG", "wikipedia", "github"}
    assert "at most $0.005" in found["Brave"][1] and "$" not in found["SearXNG"][1]
    assert sorted(request.path for request in service.requests) == [
        "/api.php", "/api.php", "/res/v1/web/search", "/search", "/search/repositories",
    ]  # fmt: skip


async def test_a_failure_says_why_and_how_to_mend_it(service: Service, here: dict[str, str]) -> None:
    service.fault, service.faults = (403, f"No, {KEY}."), 99
    found = await told({**here, "FATHOM_CONTACT": "me@example.org"})
    assert found["SearXNG"] == (
        "broken",
        "E3005 SearXNG answered 403. add json to search.formats in the settings.yml of the instance that SEARXNG_URL "
        "names",
    )
    assert found["github"] == ("off", "E3005 GitHub answered 403. check GITHUB_TOKEN")
    assert found["sec edgar"][0] == "broken"
    service.answers = {}
    assert (await told({**here, "SEARXNG_URL": "nowhere"})) == {
        "online": ("broken", "E4001 SEARXNG_URL is not a web address. set it to one such as http://localhost:8080")
    }


async def test_silence_is_not_waited_for(
    service: Service, here: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(diagnosis, "SECONDS", 0.05)
    service.pause = 60.0
    found = await told(here)
    assert {state for state, _ in found.values()} == {"broken", "off"}
    assert all("No answer within 0.05 seconds" in text for _, text in found.values())

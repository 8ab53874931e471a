"""Sources of facts beyond what every service is held to: kinds of input, languages, pauses, names of companies."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from fathom.config.environment import Environment
from fathom.config.settings import ResearchSettings, resolve
from fathom.errors import ToolRateLimited, ToolRejected
from fathom.tools.base import RunContext
from fathom.tools.factual.sec_edgar import Listed, named_in
from fathom.tools.lookup import LookupTool
from fathom.tools.registry import REGISTRY, configured_tools
from tests.fact_cases import FACT_CASES
from tests.test_lookups import Service, opened, service

__all__ = ["service"]

CASES = {case.tool: case for case in FACT_CASES}


def parameters(service: Service) -> list[dict[str, str]]:
    return [dict(request.query) for request in service.requests]


async def found(tool: LookupTool, query: str) -> list[tuple[str, str]]:
    return [(text.url, text.text) for text in (await tool.run(query)).results]


async def test_github_is_asked_for_what_the_input_begins_with(service: Service, tmp_path: Path) -> None:
    issue: dict[str, Any] = {
        "html_url": "https://github.com/fen/tides/issues/1",
        "title": "It leaks",
        "body": "Since 2.0.",
        "state": "closed",
        "user": {"login": "ada"},
        "created_at": "2024-01-02T00:00:00Z",
        "closed_at": "2024-02-03T00:00:00Z",
    }
    release = {
        "html_url": "https://github.com/fen/tides/releases/tag/v2.0",
        "tag_name": "v2.0",
        "name": None,
        "body": "It floods.",
        "author": {"login": "ada"},
        "published_at": "2024-05-06T00:00:00Z",
    }
    service.answers = {
        "/search/repositories": CASES["github"].answers["/search/repositories"],
        "/search/issues": json.dumps({"items": [issue]}),
        "/repos/fen/tides/releases": json.dumps([release]),
    }
    tool = opened(CASES["github"], service, tmp_path)
    assert await found(tool, "issues: leak repo:fen/tides") == [
        (issue["html_url"], "It leaks (closed, opened 2024-01-02, closed 2024-02-03)\n\nSince 2.0.")
    ]
    notes = [(release["html_url"], "fen/tides v2.0, released 2024-05-06\n\nIt floods.")]
    assert await found(tool, "Releases: fen/tides") == notes
    assert await found(tool, "releases: tides of lakes") == notes
    assert await found(tool, "releases: ../../user") == notes  # words to look for, and no path
    assert [p.get("q") for p in parameters(service)[:4]] == ["leak repo:fen/tides is:issue", None, "tides lakes", None]


async def test_a_site_of_stack_exchange_may_go_first_and_its_pauses_are_kept(service: Service, tmp_path: Path) -> None:
    service.answers = {"/search/advanced": '{"items": [], "backoff": 3600}'}
    tool = opened(CASES["stack_exchange"], service, tmp_path)
    await tool.run("math: primes in rings")
    assert (parameters(service)[0]["site"], parameters(service)[0]["q"]) == ("math", "primes rings")
    with pytest.raises(ToolRateLimited, match="asked not to be asked again"):
        await tool.run("another question")
    assert len(service.requests) == 1


@pytest.mark.parametrize(("code", "requests"), [("ratelimited", 3), ("cirrussearch-error", 3)])
async def test_an_error_of_a_wiki_is_one_although_its_status_is_200(
    service: Service, tmp_path: Path, code: str, requests: int
) -> None:
    service.answers = {"/api.php": json.dumps({"error": {"code": code, "info": "Please wait."}})}
    with pytest.raises(Exception, match=r"Wikipedia refused: Please wait\."):
        await opened(CASES["wikipedia"], service, tmp_path).run("tides")
    assert len(service.requests) == requests


def test_wikipedia_is_read_in_the_language_of_the_question(tmp_path: Path) -> None:
    environment = Environment.read({"HOME": str(tmp_path)})
    settings = ResearchSettings(tools=["wikipedia"])
    resolved = resolve(settings, environment, configured_tools(settings, environment))

    def place(question: str) -> str:
        tool = REGISTRY.tools["wikipedia"].open(RunContext(resolved, environment, query=question))
        assert isinstance(tool, LookupTool)
        return tool.place("/api.php")

    assert place("Wie hoch ist der Berg?") == "https://de.wikipedia.org/w/api.php"
    assert place("How high is the mountain?") == place("K2") == "https://en.wikipedia.org/w/api.php"


def test_edgar_needs_to_know_who_asks_and_asks_the_server_that_has_it(tmp_path: Path) -> None:
    environment = Environment.read({"HOME": str(tmp_path), "FATHOM_CONTACT": "me@example.org"})
    assert not REGISTRY.tools["sec_edgar"].is_configured(Environment.read({}))
    settings = ResearchSettings(tools=["sec_edgar"])
    resolved = resolve(settings, environment, configured_tools(settings, environment))
    tool = REGISTRY.tools["sec_edgar"].open(RunContext(resolved, environment))
    assert isinstance(tool, LookupTool)
    assert tool.place("/files/x.json") == "https://www.sec.gov/files/x.json"
    assert tool.place("/LATEST/search-index") == "https://efts.sec.gov/LATEST/search-index"
    assert tool.place("/submissions/x.json") == "https://data.sec.gov/submissions/x.json"


COMPANIES = [
    Listed(cik_str=1, ticker="FEN", title="Fen Inc."),
    Listed(cik_str=2, ticker="FL", title="FEN LAKE HOLDINGS CORP"),
    Listed(cik_str=3, ticker="F&L", title="Fen & Lake plc"),
    Listed(cik_str=4, ticker="T", title="Target Corp"),
]


@pytest.mark.parametrize(
    ("query", "company"),
    [
        ("Fen Lake's revenue in 2024", 2),
        ("What does Fen earn?", 1),
        ("10-K of FL", 2),
        ("the target price of FEN shares", 1),
        ("fens and their lakes", None),
        ("the target price", None),
    ],
)
def test_the_company_is_the_one_that_the_query_names(query: str, company: int | None) -> None:
    named = named_in(query, COMPANIES)
    assert (named and named.cik_str) == company


async def test_a_question_that_edgar_refuses_is_no_missing_figure(service: Service, tmp_path: Path) -> None:
    service.fault, service.faults = (403, "<html>Who are you?</html>"), 99
    with pytest.raises(ToolRejected, match="SEC EDGAR answered 403"):
        await opened(CASES["sec_edgar"], service, tmp_path).run("Fen Lake")

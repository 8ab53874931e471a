"""Public services asked over real HTTP: what is made of their documented answers, their etiquette, and every fault."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import pytest
from aiohttp import web

from fathom import network
from fathom.config.environment import Environment
from fathom.config.settings import ResearchSettings, resolve
from fathom.errors import (
    InvalidInput,
    ToolError,
    ToolRateLimited,
    ToolRejected,
    ToolTimeout,
    ToolUnavailable,
)
from fathom.models import Bibliographic, SourceText
from fathom.tools import http
from fathom.tools.base import RunContext
from fathom.tools.lookup import LookupTool
from fathom.tools.redact import redacted
from fathom.tools.registry import REGISTRY, configured_tools
from tests.fact_cases import FACT_CASES
from tests.listening import app_of, listening
from tests.lookup_cases import CASES, Case

KEY, CONTACT = "lookup-key-0123456789", "reader@example.org"
BOMB = (
    '<?xml version="1.0"?><!DOCTYPE feed [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;"><!ENTITY c "&b;&b;&b;&b;">'
    '<!ENTITY f SYSTEM "file:///etc/hostname">]>\n'
    '<feed xmlns="http://www.w3.org/2005/Atom"><title>&c;&f;</title></feed>'
)
FAULTS: dict[str, tuple[int, str, type[ToolError], int]] = {
    # by name: status, body, the error, requests
    "bad request": (400, "", ToolRejected, 1),
    "no key": (401, "", ToolRejected, 1),
    "forbidden": (403, "<html>No.</html>", ToolRejected, 1),
    "gone": (404, "", ToolRejected, 1),
    "elsewhere": (302, "", ToolRejected, 1),
    "too often": (429, "", ToolRateLimited, 3),
    "down": (503, "", ToolUnavailable, 3),
    "page": (200, "<!doctype html><title>Are you a person?</title>", ToolUnavailable, 3),
    "empty": (200, "", ToolUnavailable, 3),
    "cut off": (200, '{"results": [{"id"', ToolUnavailable, 3),
    "another shape": (200, '{"error": "no"}', ToolUnavailable, 3),
    "cut off XML": (200, '<feed xmlns="http://www.w3.org/2005/Atom"><entry>', ToolUnavailable, 3),
    "XML bomb": (200, BOMB, ToolUnavailable, 3),
    "deep JSON": (200, "[" * 200_000, ToolUnavailable, 3),
    "flood": (200, " " * (50 * 2**20), ToolRejected, 1),
}


class Service:
    """Answers as a case says; `fault` in its place, for as many requests as `faults`."""

    def __init__(self) -> None:
        self.url = ""
        self.answers: dict[str, str] = {}
        self.fault: tuple[int, str] | None = None
        self.faults = 0
        self.headers: dict[str, str] = {}
        self.hanging = asyncio.Event()
        self.requests: list[web.Request] = []
        self.at_once = self.most_at_once = 0
        self.pause = 0.0

    async def serve(self, request: web.Request) -> web.StreamResponse:
        self.requests.append(request)
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            await asyncio.sleep(self.pause)
        finally:
            self.at_once -= 1
        if self.faults and self.fault:
            self.faults -= 1
            status, body = self.fault
            return web.Response(status=status, text=body, headers=self.headers)
        body = next(body for question, body in self.answers.items() if asks(request, question))
        return web.Response(text=body, content_type="application/json" if body.startswith("{") else "text/xml")


def asks(request: web.Request, question: str) -> bool:
    """Whether a request is for a path, with the parameters that may follow it."""
    path, _, parameters = question.partition("?")
    return request.path == path and set(parse_qsl(parameters)) <= set(request.query.items())


@pytest.fixture
async def service(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Service]:
    monkeypatch.setattr(http, "FIRST_PAUSE", 0.01)
    serving = Service()
    async with listening(app_of(serving.serve)) as serving.url:
        yield serving


def opened(
    case: Case, service: Service, home: Path, *, apart: float = 0.0, key: str = KEY, **settings: Any
) -> LookupTool:
    """Open the tool of a case against the service, with a key and a contact address, in its own home."""
    kind = REGISTRY.tools[case.tool]
    base = next(name for name in kind.optional if name.endswith("_BASE_URL"))
    variables = {"HOME": str(home), base: service.url, "FATHOM_CONTACT": CONTACT}
    environment = Environment.read(variables | ({case.key_variable: key} if case.key_variable else {}))
    asked = ResearchSettings(tools=[case.tool], **settings)
    resolved = resolve(asked, environment, configured_tools(asked, environment))
    tool = kind.open(RunContext(resolved, environment))
    assert isinstance(tool, LookupTool)
    tool.seconds_between, tool.keyed_seconds_between = apart, None
    return tool


every = pytest.mark.parametrize("case", [*CASES, *FACT_CASES], ids=lambda case: case.tool)


@every
async def test_its_answer_becomes_sources(case: Case, service: Service, tmp_path: Path) -> None:
    service.answers = dict(case.answers)
    output = await opened(case, service, tmp_path).run(case.query)
    assert [_fields(text, expected) for text, expected in zip(output.results, case.found, strict=True)] == case.found
    scores = [text.score for text in output.results]
    assert scores == sorted(scores, reverse=True)
    assert not any(text.full for text in output.results) or case.tool in {fact.tool for fact in FACT_CASES}
    for question, parameters in case.asked.items():
        (sent,) = (request.query for request in service.requests if asks(request, question))
        assert {name: sent.get(name) for name in parameters} == parameters


def _fields(text: SourceText, expected: Any) -> dict[str, Any]:
    reference = (text.reference or Bibliographic()).model_dump()
    return {name: {**text.model_dump(), "reference": text.reference, **reference}[name] for name in expected}


@every
async def test_it_learns_who_asks(case: Case, service: Service, tmp_path: Path) -> None:
    service.answers = dict(case.answers)
    await opened(case, service, tmp_path).run(case.query)
    assert len(service.requests) == len(case.answers)
    for request in service.requests:
        assert request.headers["User-Agent"].startswith("fathom/")
        assert f"mailto:{CONTACT}" in request.headers["User-Agent"]
        assert not case.contact or request.query[case.contact] == CONTACT
        given = request.query.get(case.key, "") or request.headers.get(case.key, "")
        assert not case.key or given.removeprefix("Bearer ") == KEY


@every
async def test_finding_nothing_is_no_failure(case: Case, service: Service, tmp_path: Path) -> None:
    service.answers = dict(case.nothing)
    output = await opened(case, service, tmp_path).run(case.query)
    assert (output.results, output.failures) == ([], [])


@every
async def test_each_fault_is_named(case: Case, service: Service, tmp_path: Path) -> None:
    for fault in FAULTS.keys() - case.without:
        status, body, kind, requests = FAULTS[fault]
        service.fault, service.faults = (status, body), 99
        service.headers = {"Retry-After": "0"} if status == 429 else {}
        service.requests.clear()
        with pytest.raises(kind) as failed:
            await opened(case, service, tmp_path).run(case.query)
        assert type(failed.value) is kind, fault
        assert len(service.requests) == requests, fault
        said = f"{failed.value} {failed.value.next_step}"
        assert REGISTRY.tools[case.tool].__dict__["service"] in said
        assert KEY not in said and CONTACT not in said
        assert case.key_variable in failed.value.next_step or status not in (401, 403)


@every
async def test_a_fault_that_passes_is_survived_and_the_answer_kept(
    case: Case, service: Service, tmp_path: Path
) -> None:
    service.answers = dict(case.answers)
    service.fault, service.faults = (503, ""), 1
    output = await opened(case, service, tmp_path).run(case.query)
    assert len(output.results) == len(case.found)
    asked = len(service.requests)
    again = await opened(case, service, tmp_path).run(case.query)
    assert again.cached
    assert again.results == output.results
    assert len(service.requests) == asked


@every
async def test_silence_is_given_up(
    case: Case, service: Service, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http, "ATTEMPT_SECONDS", 0.05)
    service.answers, service.pause = dict(case.answers), 60.0
    with pytest.raises(ToolTimeout):
        await opened(case, service, tmp_path).run(case.query)


@every
async def test_it_is_asked_no_more_at_once_than_it_allows(case: Case, service: Service, tmp_path: Path) -> None:
    service.answers, service.pause = dict(case.answers), 0.03
    most = type(opened(case, service, tmp_path)).at_once

    def ask(number: int) -> None:  # as runs of one process do, each with a loop of its own
        asyncio.run(opened(case, service, tmp_path / str(number)).run(case.query))

    await asyncio.gather(*(asyncio.to_thread(ask, number) for number in range(most + 2)))
    assert len(service.requests) == (most + 2) * len(case.answers)
    assert service.most_at_once <= most


@every
async def test_its_declaration_keeps_its_rules(case: Case) -> None:
    kind = REGISTRY.tools[case.tool]
    assert kind.domains
    assert kind.group
    assert "FATHOM_CONTACT" in (*kind.variables, *kind.optional)
    assert kind.is_configured(Environment.read({})) or kind.variables
    assert case.tool not in configured_tools(ResearchSettings(), Environment.read({}))
    reachable = Environment.read({"FATHOM_CONTACT": CONTACT})
    assert case.tool in configured_tools(ResearchSettings(tools=[kind.group]), reachable)


async def test_requests_start_apart_and_a_rest_that_is_asked_for_is_kept(service: Service, tmp_path: Path) -> None:
    case = CASES[0]
    service.answers = dict(case.answers)
    tool = opened(case, service, tmp_path, apart=0.05)
    started = time.monotonic()
    await asyncio.gather(*(tool.run(f"{case.query} {number}") for number in range(4)))
    assert time.monotonic() - started >= 3 * 0.05
    service.fault, service.faults, service.headers = (429, ""), 1, {"Retry-After": "3600"}
    asked = len(service.requests)
    for _ in range(3):
        with pytest.raises(ToolRateLimited) as failed:
            await tool.run("another query")
        assert failed.value.retry_after and failed.value.retry_after > network.LONGEST_WAIT
    assert len(service.requests) == asked + 1


@pytest.mark.parametrize("case", [case for case in CASES if case.key_variable], ids=lambda case: case.tool)
async def test_who_asks_too_often_without_a_key_is_told_of_it(case: Case, service: Service, tmp_path: Path) -> None:
    service.fault, service.faults, service.headers = (429, ""), 9, {"Retry-After": "600"}
    with pytest.raises(ToolRateLimited) as failed:
        await opened(case, service, tmp_path, key="").run(case.query)
    assert case.key_variable in failed.value.next_step
    assert len(service.requests) == 1


async def test_a_query_whose_words_are_nowhere_together_is_asked_again_for_any_of_them(
    service: Service, tmp_path: Path
) -> None:
    case = next(case for case in CASES if case.tool == "europe_pmc")
    service.answers = dict(case.nothing)
    await opened(case, service, tmp_path).run("drinking from lakes")
    assert [request.query["query"] for request in service.requests] == ["drinking lakes", "drinking OR lakes"]


async def test_a_query_is_one_line_of_bounded_length_and_never_empty(service: Service, tmp_path: Path) -> None:
    case = next(case for case in CASES if case.tool == "crossref")
    service.answers = dict(case.nothing)
    tool = opened(case, service, tmp_path)
    for given in ("lakes\r\nHost: x\x00" * 99, "a" * 5_000, "AND OR", "((("):
        await tool.run(given)
    assert all(0 < len(r.query["query.bibliographic"]) <= 300 and r.query_string.isascii() for r in service.requests)
    assert not any("%0A" in request.query_string or "%00" in request.query_string for request in service.requests)
    for given in ("", " \n", "\x00\u202e"):
        with pytest.raises(ToolRejected, match="empty"):
            await tool.run(given)


async def test_the_rules_for_sources_hold(service: Service, tmp_path: Path) -> None:
    case = next(case for case in CASES if case.tool == "openalex")
    service.answers = dict(case.answers)
    output = await opened(case, service, tmp_path, sources={"block": ["doi.org"]}).run(case.query)
    assert [text.url for text in output.results] == ["https://openalex.org/W43"]
    rules = {"block": ["repository.example"]}
    (first, _) = (await opened(case, service, tmp_path, sources=rules).run(case.query)).results
    assert first.reference and first.reference.doi and not first.reference.full_text


@pytest.mark.parametrize("address", ["me", "me@host", "a@b.example\r\nX-Evil: 1", "a@b.example, c@d.example"])
def test_a_contact_address_that_is_none_is_refused(address: str) -> None:
    with pytest.raises(InvalidInput, match="FATHOM_CONTACT is not an e-mail address"):
        configured_tools(ResearchSettings(tools=["arxiv"]), Environment.read({"FATHOM_CONTACT": address}))


async def test_an_error_that_arxiv_answers_as_an_entry_is_an_error(service: Service, tmp_path: Path) -> None:
    service.answers = {
        "/query": '<feed xmlns="http://www.w3.org/2005/Atom"><entry><id>http://arxiv.org/api/errors#bad</id>'
        "<title>Error</title><summary>incorrect id format</summary></entry></feed>"
    }
    with pytest.raises(ToolRejected, match="incorrect id format"):
        await opened(CASES[0], service, tmp_path).run("lakes")


async def test_personal_data_leaves_a_reference_too(service: Service, tmp_path: Path) -> None:
    case = next(case for case in CASES if case.tool == "semantic_scholar")
    service.answers = {
        path: body.replace("Ada Brookfield", "Ada a.b@fen.example") for path, body in case.answers.items()
    }
    first = redacted(await opened(case, service, tmp_path).run(case.query)).results[0]
    assert first.reference and first.reference.authors == ["Ada [email]"]
    assert "fen.example" not in first.model_dump_json()


async def test_a_malformed_record_takes_no_other_with_it(service: Service, tmp_path: Path) -> None:
    case = next(case for case in CASES if case.tool == "crossref")
    ((path, body),) = case.answers.items()
    answer = json.loads(body)
    whole = answer["message"]["items"]
    answer["message"]["items"] = ["?", {"DOI": 5}, *whole]
    service.answers = {path: json.dumps(answer)}
    output = await opened(case, service, tmp_path).run(case.query)
    assert len(output.results) == len(case.found)
    answer["message"]["items"] = ["?"] * 3
    service.answers = {path: json.dumps(answer)}
    with pytest.raises(ToolUnavailable, match="unreadable"):
        await opened(case, service, tmp_path, fresh=True).run(case.query)


async def test_what_cannot_be_made_of_an_answer_is_a_failed_call(service: Service, tmp_path: Path) -> None:
    """Some shapes show only when the pages are made of them."""
    case = next(case for case in FACT_CASES if case.tool == "wikidata")
    service.answers = {question: body.replace('"mainsnak"', '"snak"') for question, body in case.answers.items()}
    with pytest.raises(ToolUnavailable, match="unreadable"):
        await opened(case, service, tmp_path).run(case.query)

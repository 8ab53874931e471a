"""The scripted providers, seen through the clients that talk to them in earnest."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import httpx
import litellm
import pytest
import tavily
from litellm.exceptions import (
    AuthenticationError,
    ContentPolicyViolationError,
    ContextWindowExceededError,
    InternalServerError,
    RateLimitError,
    Timeout,
)

from fathom.config.models import RoleModel
from fathom.llm.base import ModelCall
from fathom.llm.parsing import accept
from fathom.llm.prompts import messages
from fathom.models import Note, Plan, PlanStep, SourceText, ToolCall
from fathom.roles import (
    COMPRESSOR,
    CRITIC,
    OUTLINE,
    PLANNER,
    RESEARCHER,
    SECTION,
    Complaint,
    CompressRequest,
    OutlineRequest,
    PlanAnswer,
    PlanRequest,
    ReflectRequest,
    Request,
    ResearchRequest,
    RoleSpec,
    SectionRequest,
    Text,
)
from fathom.roles.reporter import OutlinedSection
from fathom.text.urls import source_ids
from tests.conftest import ROOT, ask_model
from tests.stubs import FACT, SENTINEL, Settings, Stubs
from tests.stubs.pages import SHARED_URL, page

QUERY = "How did offshore wind capacity grow in Europe?"
TODAY = "2026-11-22"


async def ask(stubs: Stubs, spec: RoleSpec[Any, Any], request: Request) -> tuple[Any, list[Complaint]]:
    """Put a role's real prompt to the stub; return the mended answer and what the role's rules say of it."""
    schema = None
    if spec.answer is not Text:
        wanted = spec.schema(request) if spec.schema else spec.answer.model_json_schema()
        schema = {"type": "json_schema", "json_schema": {"name": spec.name, "schema": wanted, "strict": True}}
    text = await complete(stubs, messages(ModelCall(spec, request, RoleModel(model="openai/stub"))), schema)
    answer = Text(text=text) if spec.answer is Text else spec.answer.model_validate_json(text)
    answer = spec.normalize(request, answer)
    return answer, spec.check(request, answer)


async def complete(stubs: Stubs, prompt: list[Any], response_format: dict[str, Any] | None = None) -> str:
    response = await litellm.acompletion(
        model="openai/stub",
        messages=prompt,
        response_format=response_format,
        api_base=stubs.llm_url,
        api_key="stub-key",
        max_retries=0,
        timeout=60,
    )
    assert response.usage.prompt_tokens > 10
    return str(response.choices[0].message.content)


async def search(stubs: Stubs, query: str, **options: Any) -> dict[str, Any]:
    async with httpx.AsyncClient(base_url=stubs.url) as client:
        found = await tavily.AsyncTavilyClient("tvly-stub", client=client).search(query, **options)
        return dict(found)


def step(number: int, title: str = "Growth of capacity") -> PlanStep:
    return PlanStep(step_id=number, title=title, description="Find the figures.", queries=["wind capacity figures"])


async def test_every_role_gets_an_answer_that_keeps_its_rules(stubs: Stubs) -> None:
    planned, complaints = await ask(
        stubs, PLANNER, PlanRequest(query=QUERY, today=TODAY, max_steps=5, tools={"web_search": "searches"})
    )
    plan: Plan = planned.plan()
    assert not complaints
    assert len(plan.steps) == 3
    assert all("wind" in query and len(query.split()) > 1 for s in plan.steps for query in s.queries)

    decision = ResearchRequest(
        query=QUERY,
        today=TODAY,
        step=plan.steps[0],
        breadth=2,
        tools={"web_search": "s", "artifact_grep": "g"},
        searching=["web_search"],
        notes=[],
        tried=[],
    )
    decided, complaints = await ask(stubs, RESEARCHER, decision)
    assert not complaints
    assert [call.input for call in decided.calls] == plan.steps[0].queries
    tried = [ToolCall(tool=call.tool, input=call.input) for call in decided.calls]

    raw = await search(stubs, decided.calls[0].input, include_raw_content=True, max_results=4)
    ids = source_ids([result["url"] for result in raw["results"]])
    texts = [
        SourceText(
            source_id=ids[r["url"]], url=r["url"], title=r["title"], kind="web", text=r["raw_content"] or r["content"]
        )
        for r in raw["results"]
    ]
    compress = CompressRequest(
        plan_title=plan.plan_title,
        step_title=plan.steps[0].title,
        step_description=plan.steps[0].description,
        tool_name="web_search",
        texts=texts,
        max_note_tokens=600,
    )
    note, complaints = await ask(stubs, COMPRESSOR, compress)
    assert not complaints
    assert note.is_useful
    assert [bullet.endswith(f"[{text.source_id}]") for bullet, text in zip(note.extraction, texts, strict=True)]
    assert not SENTINEL.search(note.model_dump_json())

    notes = [Note(step_id=1, artifact_file="a.json", source_ids=list(ids.values()), **note.model_dump())]
    done, _ = await ask(stubs, RESEARCHER, decision.model_copy(update={"notes": notes, "tried": tried}))
    assert done.done
    assert not done.calls

    reflect = ReflectRequest(query=QUERY, today=TODAY, plan=plan, round=1, max_follow_ups=3, notes=notes)
    first, complaints = await ask(stubs, CRITIC, reflect)
    assert not complaints
    assert (first.sufficiency_score, len(first.follow_up_steps)) == (5, 2)
    assert [str(verdict.step_id) for verdict in first.step_statuses] == ["1", "2", "3"]
    second, _ = await ask(stubs, CRITIC, reflect.model_copy(update={"round": 2}))
    assert (second.sufficiency_score, second.follow_up_steps) == (9, [])

    outline, complaints = await ask(stubs, OUTLINE, OutlineRequest(query=QUERY, today=TODAY, plan=plan, notes=notes))
    assert not complaints
    assert len(outline.sections) == 4
    section = SectionRequest(
        query=QUERY,
        today=TODAY,
        title=outline.title,
        headings=[s.heading for s in outline.sections],
        section=OutlinedSection.model_validate(outline.sections[0].model_dump()),
        position=0,
        notes=notes,
        written=[],
    )
    prose, complaints = await ask(stubs, SECTION, section)
    assert not complaints
    assert FACT.findall(prose.text) == [FACT.findall(bullet)[0] for bullet in note.extraction]

    asked = " ".join(record.role for record in stubs.calls("llm"))
    assert asked == "planner researcher compressor researcher critic critic outline section"


async def test_search_and_extract_show_the_same_pages(stubs: Stubs) -> None:
    stubs.settings = Settings(page_bytes=6_000, without_raw=0.5, fail_extract="/3$")
    found = await search(stubs, "offshore wind", include_raw_content=True, max_results=8)
    assert found == await search(stubs, "offshore wind", include_raw_content=True, max_results=8)
    other = await search(stubs, "onshore wind", include_raw_content=True, max_results=8)
    urls = [result["url"] for result in found["results"]]
    assert set(urls) & {result["url"] for result in other["results"]} == {SHARED_URL}

    raw = {result["url"]: result["raw_content"] for result in found["results"]}
    assert None in raw.values()
    async with httpx.AsyncClient(base_url=stubs.url) as client:
        extracted = await tavily.AsyncTavilyClient("tvly-stub", client=client).extract(urls)
    assert [failed["url"] for failed in extracted["failed_results"]] == [url for url in urls if url.endswith("/3")]
    for result in extracted["results"]:
        text = result["raw_content"]
        assert raw[result["url"]] in (None, text)
        assert len(text.encode()) == 6_000
        assert len(FACT.findall(text)) == 1
        assert len(SENTINEL.findall(text)) == len(set(SENTINEL.findall(text))) > 30


@pytest.mark.parametrize(
    ("behaviour", "error"),
    [
        ("429", RateLimitError),
        ("500", InternalServerError),
        ("401", AuthenticationError),
        ("context_limit", ContextWindowExceededError),
        ("content_policy", ContentPolicyViolationError),
        ("drop", InternalServerError),
        ("hang", Timeout),
    ],
)
async def test_model_faults_reach_the_client_as_what_they_are(
    stubs: Stubs, behaviour: str, error: type[Exception]
) -> None:
    stubs.settings.faults = {"section": [behaviour]}
    call = litellm.acompletion(
        model="openai/stub",
        messages=[{"role": "user", "content": "Question: why?"}],
        api_base=stubs.llm_url,
        api_key="stub-key",
        max_retries=0,
        timeout=3,
    )
    with pytest.raises(error) as caught:
        await call
    if behaviour == "429":
        assert vars(caught.value)["litellm_response_headers"]["retry-after"] == "1"
    assert "offshore" not in await complete(stubs, [{"role": "user", "content": "Question: why so fast and so far?"}])


@pytest.mark.parametrize(
    ("behaviour", "accepted"), [("untidy_json", True), ("broken_json", False), ("truncated", False), ("empty", False)]
)
async def test_spoilt_answers_are_as_spoilt_as_they_should_be(
    stubs: Stubs, behaviour: str, accepted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in stubs.env.items():
        monkeypatch.setenv(name, value)
    stubs.settings.faults = {"*": [f"{behaviour}*"]}
    request = PlanRequest(query=QUERY, today=TODAY, max_steps=5, tools={"web_search": "searches"})
    call = ModelCall(PLANNER, request, RoleModel(model="openai/stub"))
    completion = await ask_model(call)
    assert isinstance(accept(call, completion), PlanAnswer) is accepted


async def test_faults_are_used_up_in_order_and_the_last_may_stay(stubs: Stubs) -> None:
    stubs.settings.faults = {"search": ["empty", "429", "500*"], "extract": ["bad_json"]}
    assert (await search(stubs, "wind power"))["results"] == []
    async with httpx.AsyncClient(base_url=stubs.url) as client:
        api = tavily.AsyncTavilyClient("tvly-stub", client=client)
        with pytest.raises(tavily.UsageLimitExceededError):
            await api.search("wind power")
        for _ in range(2):
            with pytest.raises(httpx.HTTPStatusError):
                await api.search("wind power")
        with pytest.raises(json.JSONDecodeError):
            await api.extract("https://atlas.example/wind/1")
        anonymous = await client.post("/search", json={"query": "wind"}, headers={"Authorization": ""})
    assert anonymous.status_code == 401
    assert [record.status for record in stubs.calls("search")] == [200, 429, 500, 500, 401]


def test_noise_has_no_fact_and_keeps_its_size() -> None:
    noisy = page("https://atlas.example/wind-limits/1", 3_000, noise=True)
    assert len(noisy.text) == 3_000
    assert not FACT.search(noisy.text)
    assert not noisy.fact


def test_own_process_survives_its_client_and_logs_what_was_answered(tmp_path: Path) -> None:
    port_file, log = tmp_path / "port", tmp_path / "log.jsonl"
    command = [sys.executable, "-m", "tests.stubs", "--port-file", str(port_file), "--log", str(log)]
    options = ["--llm-delay", "0.2", "--faults", '{"planner": ["refusal"]}']
    server = subprocess.Popen([*command, *options], cwd=ROOT)
    try:
        deadline = time.monotonic() + 60
        while not port_file.exists() and time.monotonic() < deadline:
            time.sleep(0.02)
        url = f"http://127.0.0.1:{port_file.read_text()}"
        body = {"model": "stub", "messages": [{"role": "user", "content": "Question: why?"}]}
        with pytest.raises(httpx.ReadTimeout):
            httpx.post(f"{url}/v1/chat/completions", json=body, headers={"Authorization": "Bearer x"}, timeout=0.05)
        answered = httpx.post(f"{url}/v1/chat/completions", json=body, headers={"Authorization": "Bearer x"})
        assert answered.json()["choices"][0]["finish_reason"] == "stop"
    finally:
        server.terminate()
        assert server.wait(10) == 0
    events = [json.loads(line) for line in log.read_text().splitlines()]
    assert [(event["event"], event["n"]) for event in events] == [("start", 1), ("start", 2), ("end", 2)]
    assert events[0]["fingerprint"] == events[1]["fingerprint"]
    assert events[2]["time"] - events[1]["time"] >= 0.2
    assert events[2]["usage"]["prompt_tokens"] > 0


async def test_requests_overlap_and_can_be_waited_for(stubs: Stubs) -> None:
    stubs.settings.search_delay = 0.2
    calls = [asyncio.create_task(search(stubs, f"wind power {n}")) for n in range(5)]
    await asyncio.to_thread(stubs.wait_for, 5, "search")
    await asyncio.gather(*calls)
    records = stubs.calls("search")
    assert max(r.started for r in records) < min(r.ended or 0.0 for r in records)

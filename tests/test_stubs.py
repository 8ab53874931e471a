"""The scripted providers, seen through the clients that talk to them in earnest."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import AsyncIterator
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

from fathom.config.environment import Environment
from fathom.config.groups import RoleModel
from fathom.llm.base import ModelCall
from fathom.llm.dialects import Dialect
from fathom.llm.over_litellm import load_litellm
from fathom.llm.parsing import accept
from fathom.llm.prompts import messages, strict_schema
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
from fathom.text.urls import source_ids
from tests.conftest import ROOT, ask_model
from tests.stubs import FACT, SENTINEL, Settings, Stubs
from tests.stubs.behaviours import SECRET, THOUGHTS
from tests.stubs.ollama import NONSENSE
from tests.stubs.pages import SHARED_URL, page
from tests.stubs.streams import tokens
from tests.test_model_faults import close_litellm

QUERY = "How did offshore wind capacity grow in Europe?"
TODAY = "2026-11-22"


@pytest.fixture
async def stubs(stubs: Stubs) -> AsyncIterator[Stubs]:
    """The stubs; what litellm keeps open to them is closed while its event loop runs."""
    yield stubs
    await close_litellm()


async def ask(stubs: Stubs, spec: RoleSpec[Any, Any], request: Request) -> tuple[Any, list[Complaint]]:
    """Put a role's real prompt to the stub; return the mended answer and what the role's rules say of it."""
    schema = None
    if spec.answer is not Text:
        wanted = spec.schema(request) if spec.schema else spec.answer.model_json_schema()
        schema = {"type": "json_schema", "json_schema": {"name": spec.name, "schema": wanted, "strict": True}}
    text = await complete(stubs, messages(ModelCall(spec, request, RoleModel(model="openai/stub")), Dialect()), schema)
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
        page_tokens=600,
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
    (sent,) = stubs.calls("critic")
    schema = sent.body["response_format"]["json_schema"]["schema"]
    assert schema["properties"]["follow_up_steps"]["maxItems"] == 3, "a server that decodes by it allows no more either"
    second, _ = await ask(stubs, CRITIC, reflect.model_copy(update={"round": 2}))
    assert (second.sufficiency_score, second.follow_up_steps) == (9, [])

    outline, complaints = await ask(stubs, OUTLINE, OutlineRequest(query=QUERY, today=TODAY, plan=plan, notes=notes))
    assert not complaints
    assert len(outline.sections) == 4
    section = SectionRequest(
        query=QUERY,
        today=TODAY,
        title=outline.title,
        outlined=outline.sections,
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
        timeout=3 if behaviour == "hang" else 60,
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
    options = ["--llm-delay", "2", "--faults", '{"planner": ["refusal"]}']
    server = subprocess.Popen([*command, *options], cwd=ROOT)
    try:
        deadline = time.monotonic() + 60
        while not port_file.exists() and time.monotonic() < deadline:
            time.sleep(0.02)
        url = f"http://127.0.0.1:{port_file.read_text()}"
        body = {"model": "stub", "messages": [{"role": "user", "content": "Question: why?"}]}
        asked: dict[str, Any] = {
            "url": f"{url}/v1/chat/completions",
            "json": body,
            "headers": {"Authorization": "Bearer x"},
        }
        with pytest.raises(httpx.ReadTimeout):
            httpx.post(**asked, timeout=httpx.Timeout(60, read=1))
        answered = httpx.post(**asked, timeout=60)
        assert answered.json()["choices"][0]["finish_reason"] == "stop"
    finally:
        server.terminate()
        assert server.wait(10) == 0
    events = [json.loads(line) for line in log.read_text().splitlines()]
    assert [(event["event"], event["n"]) for event in events] == [("start", 1), ("start", 2), ("end", 2)]
    assert events[0]["fingerprint"] == events[1]["fingerprint"]
    assert events[2]["time"] - events[1]["time"] >= 2
    assert events[2]["usage"]["prompt_tokens"] > 0


async def test_requests_overlap_and_can_be_waited_for(stubs: Stubs) -> None:
    stubs.settings.search_delay = 0.2
    calls = [asyncio.create_task(search(stubs, f"wind power {n}")) for n in range(5)]
    await asyncio.to_thread(stubs.wait_for, 5, "search")
    await asyncio.gather(*calls)
    records = stubs.calls("search")
    assert max(r.started for r in records) < min(r.ended or 0.0 for r in records)


SYSTEM = "You help with research."
MESSAGES = [
    {"role": "system", "content": SYSTEM},
    {"role": "user", "content": f"Question:\n{QUERY}\n\nFACT-0badcafe: it grew fourfold in 2020. [S0123ab]"},
]
SCHEMA = strict_schema(PlanAnswer.model_json_schema(), bounds=False)
TYPED = {"type": "json_schema", "json_schema": {"name": "planner_answer", "schema": SCHEMA, "strict": True}}
BOUNDED = {
    **TYPED,
    "json_schema": {**TYPED["json_schema"], "schema": strict_schema(PlanAnswer.model_json_schema(), bounds=True)},  # type: ignore[dict-item]
}
KEYS = {"Authorization": "Bearer stub-key", "x-api-key": "stub-key"}
PATHS = {"openai": "/v1/chat/completions", "anthropic": "/v1/messages", "ollama": "/api/chat"}


def request_body(protocol: str, *, typed: bool = False) -> dict[str, Any]:
    """A request for prose or for a plan, as a service wants it."""
    if protocol == "anthropic":
        tool = {"tools": [{"name": "plan", "input_schema": SCHEMA}], "tool_choice": {"type": "tool", "name": "plan"}}
        body = {"model": "stub", "system": SYSTEM, "messages": MESSAGES[1:], "max_tokens": 500}
        return {**body, **tool} if typed else body
    wanted = {"format": SCHEMA} if protocol == "ollama" else {"response_format": TYPED}
    return {"model": "stub", "messages": MESSAGES, **(wanted if typed else {})}


async def asked(stubs: Stubs, protocol: str, body: dict[str, Any], most: int = 10_000) -> tuple[int, list[Any]]:
    """Post a request; return the status and the JSON of each line or event, of the first ones if there are many."""
    found: list[Any] = []
    async with (
        httpx.AsyncClient(base_url=stubs.url, headers=KEYS, timeout=60) as client,
        client.stream("POST", PATHS[protocol], json=body) as response,
    ):
        async for line in response.aiter_lines():
            data = line.removeprefix("data: ")
            if data and not data.startswith("event:"):
                found.append("[DONE]" if data == "[DONE]" else json.loads(data))
            if len(found) == most:
                break
    return response.status_code, found


def said(protocol: str, events: list[Any]) -> tuple[str, str]:
    """Return the thoughts and the answer that events or a whole answer tell."""
    pieces: list[dict[str, Any]] = []
    for event in events:
        if protocol == "openai":
            pieces += [c.get("delta", c.get("message")) for c in event["choices"]] if event != "[DONE]" else []
        elif protocol == "ollama":
            pieces.append(event["message"])
        else:
            pieces += [event["delta"]] if "delta" in event else event.get("content", [])
    thoughts = [piece.get("reasoning_content") or piece.get("thinking") or "" for piece in pieces]
    answers = [p.get("content") or p.get("text") or p.get("partial_json") or p.get("input") or "" for p in pieces]
    return "".join(thoughts), "".join(text if isinstance(text, str) else json.dumps(text) for text in answers)


@pytest.mark.parametrize("protocol", PATHS)
@pytest.mark.parametrize("typed", [False, True])
async def test_streamed_pieces_joined_are_the_whole_answer(stubs: Stubs, protocol: str, typed: bool) -> None:
    body = request_body(protocol, typed=typed)
    for behaviour in ("ok", "thinks", "empty", "json_prose"):
        stubs.settings.faults = {"*": [behaviour, behaviour]}
        _, whole = await asked(stubs, protocol, {**body, "stream": False})
        status, streamed = await asked(stubs, protocol, {**body, "stream": True})
        assert (status, len(whole)) == (200, 1)
        thoughts, answer = said(protocol, streamed)
        assert thoughts == said(protocol, whole)[0] == (THOUGHTS if behaviour == "thinks" else "")
        if behaviour != "empty":
            assert answer == said(protocol, whole)[1]
            assert ("plan_title" in answer) is typed
            assert len(streamed) > 10
        first, second = stubs.requests[-2:]
        assert (first.role, first.usage, first.status) == (second.role, second.usage, second.status)
        assert first.role == ("planner" if typed else "section")
        assert (first.tokens, second.tokens > 0) == (0, behaviour != "empty")


async def test_openais_models_use_the_tool_that_they_must_use(stubs: Stubs) -> None:
    function = {"type": "function", "function": {"name": "plan", "parameters": SCHEMA}}
    body = {**request_body("openai"), "tools": [function], "tool_choice": {**function, "function": {"name": "plan"}}}
    _, (whole,) = await asked(stubs, "openai", body)
    _, streamed = await asked(stubs, "openai", {**body, "stream": True})
    called = whole["choices"][0]["message"]["tool_calls"][0]["function"]
    deltas = [event["choices"][0]["delta"].get("tool_calls", [{}])[0] for event in streamed[:-1]]
    assert called["name"] == "plan"
    assert [delta["id"] for delta in deltas if "id" in delta] == ["call_stub"]
    assert "".join(delta.get("function", {}).get("arguments", "") for delta in deltas) == called["arguments"]
    assert (stubs.requests[0].role, "plan_title" in called["arguments"]) == ("planner", True)


async def test_a_stream_of_openai_has_the_form_of_openais(stubs: Stubs) -> None:
    stubs.settings.faults = {"*": ["ok", "ok", "truncated", "refusal", "no_usage", "no_choices", "thinks"]}
    body = {**request_body("openai"), "stream": True}
    options = {"stream_options": {"include_usage": True}}
    _, plain = await asked(stubs, "openai", body)
    assert plain[0]["choices"][0]["delta"] == {"role": "assistant", "content": ""}
    assert (plain[-1], plain[-2]["choices"][0]["finish_reason"]) == ("[DONE]", "stop")
    assert all(event["choices"] and "usage" not in event for event in plain[:-1])
    _, counted = await asked(stubs, "openai", {**body, **options})
    assert (counted[-2]["choices"], counted[-2]["usage"]) == ([], stubs.requests[-1].usage)
    _, truncated = await asked(stubs, "openai", body)
    assert truncated[-2]["choices"][0]["finish_reason"] == "length"
    _, refusal = await asked(stubs, "openai", body)
    assert "".join(e["choices"][0]["delta"].get("refusal", "") for e in refusal[:-1]).startswith("I'm sorry")
    _, uncounted = await asked(stubs, "openai", {**body, **options})
    assert all(event["usage"] is None for event in uncounted[:-1])
    _, nothing = await asked(stubs, "openai", body)
    assert all(event["choices"] == [] for event in nothing[:-1])
    _, thought = await asked(stubs, "openai", {**body, **options})
    used = thought[-2]["usage"]
    assert 0 < used["completion_tokens_details"]["reasoning_tokens"] < used["completion_tokens"]


@pytest.mark.parametrize(
    ("behaviour", "begins", "ends"),
    [
        ("think_tags", f"<think>\n{THOUGHTS}\n</think>", "[S0123ab]"),
        ("think_open", "<think>\nOkay", THOUGHTS[-20:]),
        ("thinks_only", "", ""),
        ("thinks_long", "", ""),
        ("json_prose", '{"summary_title": ', '"}'),
        ("fenced_json_prose", '```json\n{"summary_title": ', '"}\n```'),
        ("echo_prompt", SYSTEM, SYSTEM),
        ("debris", "<|im_start|>assistant\nFACT", "<|im_end|>\n"),
    ],
)
async def test_untidy_models_are_untidy(stubs: Stubs, behaviour: str, begins: str, ends: str) -> None:
    stubs.settings.faults = {"*": [behaviour, behaviour]}
    body = {**request_body("openai"), "stream": True}
    _, events = await asked(stubs, "openai", body)
    thoughts, answer = said("openai", events)
    assert answer.startswith(begins)
    assert answer.endswith(ends)
    assert bool(answer) is bool(begins)
    assert (SECRET in thoughts) is behaviour.startswith("thinks_")
    assert events[-2]["choices"][0]["finish_reason"] == ("length" if behaviour[5:] in ("_open", "s_long") else "stop")
    _, events = await asked(stubs, "openai", {**body, "max_completion_tokens": 8_001})
    assert bool(said("openai", events)[1]) is (behaviour != "thinks_only")


@pytest.mark.usefixtures("wide")
@pytest.mark.parametrize("protocol", PATHS)
async def test_streams_stop_stall_and_never_end(stubs: Stubs, protocol: str) -> None:
    body = {**request_body(protocol, typed=True), "stream": True}
    _, whole = await asked(stubs, protocol, body)
    answer, full = said(protocol, whole)[1], stubs.requests[0].tokens

    stubs.settings = Settings(faults={"*": ["slow", "cut_stream", "error_in_stream"]}, token_seconds=0.0001)
    assert said(protocol, (await asked(stubs, protocol, body))[1])[1] == answer
    with pytest.raises(httpx.RemoteProtocolError):
        await asked(stubs, protocol, body)
    _, failed = await asked(stubs, protocol, body)
    assert "error" in failed[-1]
    assert answer.startswith(said(protocol, failed[:-1])[1])
    cut, broken = stubs.requests[-2:]
    assert (cut.ended, cut.tokens) == (None, broken.tokens)
    assert broken.tokens == pytest.approx(full / 2, abs=1)

    stubs.settings.faults = {"*": ["silent", "repeats", "whitespace"]}
    await asked(stubs, protocol, body, most=full // 4)
    for window in ("".join(tokens(answer)[8:20]), "\n        "):
        _, events = await asked(stubs, protocol, body, most=80)
        assert said(protocol, events)[1].count(window) > 3
    silent, repeating, blank = stubs.requests[-3:]
    assert silent.tokens <= full / 3 + 1
    assert (silent.ended, repeating.ended, blank.ended) == (None, None, None)
    assert repeating.tokens > repeating.repeated > 40
    assert blank.tokens > blank.repeated > 40


async def test_whole_answers_fail_as_their_streams_do(stubs: Stubs) -> None:
    stubs.settings = Settings(faults={"*": ["repeats", "error_in_stream", "cut_stream", "silent"]})
    body = {**request_body("openai"), "max_tokens": 1_000}
    _, (endless,) = await asked(stubs, "openai", body)
    assert endless["choices"][0]["finish_reason"] == "length"
    assert endless["usage"]["completion_tokens"] > 500
    assert (await asked(stubs, "openai", body))[0] == 500
    with pytest.raises(httpx.RemoteProtocolError):
        await asked(stubs, "openai", body)


def loosened(change: dict[str, Any]) -> dict[str, Any]:
    """The schema of a plan, with a change to what it says of a step, deep inside it."""
    schema = json.loads(json.dumps(SCHEMA))
    schema["$defs"]["PlannedStep"].update(change)
    return {"response_format": {**TYPED, "json_schema": {**TYPED["json_schema"], "schema": schema}}}  # type: ignore[dict-item]


UNBOUNDED = {
    "type": "object",
    "properties": {"a": {"type": "string"}},
    "required": ["a"],
    "additionalProperties": False,
}
BARE = {"response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": UNBOUNDED, "strict": True}}}
JSON_MODE = {"response_format": {"type": "json_object"}}


@pytest.mark.parametrize(
    ("refusal", "offends", "fits", "says"),
    [
        (
            "bounds",
            {"response_format": BOUNDED},
            {"response_format": TYPED},
            "In context=('properties', 'plan_title'), 'minLength' is not permitted.",
        ),
        ("bounds", loosened({"maxLength": 9}), BARE, "is not permitted."),
        (
            "loose_schema",
            loosened({"additionalProperties": True}),
            {"response_format": TYPED},
            "'additionalProperties'",
        ),
        ("loose_schema", loosened({"required": []}), {"response_format": TYPED}, "Missing '"),
        ("response_format", JSON_MODE, {}, "Unrecognized request argument"),
        ("json_schema", {"response_format": TYPED}, {}, "This response_format type is unavailable now"),
        ("json_schema", JSON_MODE, {}, "must contain the word 'json'"),
        ("json_object", JSON_MODE, {"response_format": TYPED}, "must be 'json_schema' or 'text'"),
        ("system", {}, {"messages": MESSAGES[1:]}, "System role not supported"),
        ("temperature", {"temperature": 0.2}, {"temperature": 1}, "does not support 0.2 with this model"),
        ("max_tokens", {"max_tokens": 9}, {"max_completion_tokens": 9}, "Use 'max_completion_tokens' instead."),
        ("max_completion_tokens", {"max_completion_tokens": 9}, {"max_tokens": 9}, "'extra_forbidden'"),
        ("stream_options", {"stream_options": {"include_usage": True}}, {}, "Extra inputs are not permitted"),
        ("frequency_penalty", {"frequency_penalty": 0.1}, {}, "does not support parameter frequencyPenalty"),
    ],
)
async def test_a_server_refuses_what_it_does_not_take_and_nothing_else(
    stubs: Stubs, refusal: str, offends: dict[str, Any], fits: dict[str, Any], says: str
) -> None:
    plain = {**request_body("openai"), "stream": True}
    stubs.settings.refuses = {refusal}
    status, (error,) = await asked(stubs, "openai", {**plain, **offends})
    assert status == (422 if refusal == "stream_options" else 400)
    assert says in json.dumps(error)
    assert (await asked(stubs, "openai", {**plain, **fits}))[0] == 200


async def test_a_server_that_does_not_stream_answers_whole(stubs: Stubs) -> None:
    stubs.settings.refuses = {"stream"}
    status, (answer,) = await asked(stubs, "openai", {**request_body("openai"), "stream": True})
    assert (status, answer["object"]) == (200, "chat.completion")


@pytest.mark.parametrize("style", ["openai", "llama.cpp", "vllm"])
async def test_a_refused_prompt_is_told_the_window(stubs: Stubs, style: str) -> None:
    body = {**request_body("openai"), "max_tokens": 2_000}
    _, (answer,) = await asked(stubs, "openai", body)
    tokens = answer["usage"]["prompt_tokens"]
    stubs.settings = Settings(context_window=tokens - 1, window_style=style)
    status, (error,) = await asked(stubs, "openai", body)
    assert status == 400
    if style == "llama.cpp":
        assert (error["error"]["n_ctx"], error["error"]["n_prompt_tokens"]) == (tokens - 1, tokens)
    else:
        assert f"maximum context length is {tokens - 1} tokens" in json.dumps(error)
    stubs.settings.context_window = tokens + 1_000
    assert (await asked(stubs, "openai", body))[0] == (400 if style == "vllm" else 200)
    stubs.settings.context_window = tokens + 2_000
    assert (await asked(stubs, "openai", body))[0] == 200


async def test_servers_tell_of_their_models(stubs: Stubs) -> None:
    stubs.settings.faults = {"*": ["500"]}
    async with httpx.AsyncClient(base_url=stubs.url, headers=KEYS) as client:
        assert (await client.get("/v1/models")).status_code == 404
        stubs.settings.models = {"object": "list", "data": [{"id": "stub", "max_model_len": 8_192}]}
        assert (await client.get("/v1/models")).json() == stubs.settings.models
        stubs.settings.faults["models"] = ["401"]
        assert (await client.get("/v1/models")).status_code == 401
        shown = (await client.post("/api/show", json={"model": "stub"})).json()
        assert shown["model_info"]["llama.context_length"] == 32_768
        stubs.settings.ollama_context = 0
        assert (await client.post("/api/show", json={"model": "stub"})).status_code == 404
    assert (stubs.calls("llm"), len(stubs.calls("models")), stubs.settings.faults["*"]) == ([], 3, ["500"])


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"response_format": TYPED}, "response_format: Extra inputs are not permitted"),
        ({"output_format": {}}, "output_format: Extra inputs are not permitted"),
        ({"frequency_penalty": 0.1}, "frequency_penalty: Extra inputs are not permitted"),
        ({"messages": MESSAGES}, "The Messages API accepts a top-level `system` parameter"),
        ({"max_tokens": None}, "max_tokens: Field required"),
    ],
)
async def test_anthropic_refuses_what_is_openais(stubs: Stubs, change: dict[str, Any], says: str) -> None:
    body = {name: value for name, value in {**request_body("anthropic"), **change}.items() if value is not None}
    status, (error,) = await asked(stubs, "anthropic", body)
    assert (status, error["type"], error["error"]["type"]) == (400, "error", "invalid_request_error")
    assert says in error["error"]["message"]
    async with httpx.AsyncClient(base_url=stubs.url) as client:
        anonymous = await client.post("/v1/messages", json=request_body("anthropic"))
    assert (anonymous.status_code, anonymous.json()["error"]["type"]) == (401, "authentication_error")


async def test_ollama_forgets_the_beginning_of_a_long_prompt(stubs: Stubs) -> None:
    body = {**request_body("ollama", typed=True), "stream": False}
    body["messages"] = [*MESSAGES, {"role": "user", "content": "more " * 4_000}]
    _, (forgetful,) = await asked(stubs, "ollama", body)
    assert (forgetful["message"]["content"], forgetful["prompt_eval_count"]) == (NONSENSE, 4_096)
    _, (answer,) = await asked(stubs, "ollama", {**body, "options": {"num_ctx": 16_384}})
    assert "plan_title" in answer["message"]["content"]


@pytest.mark.parametrize("model", ["anthropic/claude-sonnet-4-5", "ollama_chat/stub"])
@pytest.mark.parametrize("behaviour", ["ok", "thinks"])
async def test_litellm_reads_every_stream(stubs: Stubs, model: str, behaviour: str) -> None:
    client = load_litellm(Environment.read())  # which keeps connections beyond the event loop of a test
    stubs.settings.faults = {"*": [f"{behaviour}*"]}
    function = {"type": "function", "function": {"name": "plan", "parameters": SCHEMA}}
    tool = {"tools": [function], "tool_choice": {"type": "function", "function": {"name": "plan"}}}
    for typed in ({}, tool if model.startswith("anthropic") else {"response_format": TYPED}):
        stream = await client.acompletion(
            model=model, messages=MESSAGES, api_base=stubs.url, api_key="stub-key", max_retries=0, timeout=60,
            extra_headers={"Connection": "close"}, max_tokens=500, stream=True, stream_options={"include_usage": True},
            **typed,
        )  # fmt: skip
        answer, thoughts, usage = "", "", None
        async for chunk in stream:
            usage = getattr(chunk, "usage", None) or usage
            for choice in chunk.choices:
                calls = choice.delta.tool_calls or []
                answer += (choice.delta.content or "") + "".join(call.function.arguments or "" for call in calls)
                thoughts += getattr(choice.delta, "reasoning_content", None) or ""
        record = stubs.requests[-1]
        assert (record.role, "plan_title" in answer) == (("planner", True) if typed else ("section", False))
        assert usage
        assert (usage.prompt_tokens, usage.completion_tokens) == tuple(record.usage.values())[:2]
        assert thoughts == (THOUGHTS if behaviour == "thinks" else "")


async def test_a_prompt_is_understood_without_a_system_message(stubs: Stubs) -> None:
    schema = json.dumps(PlanAnswer.model_json_schema())
    question = f"Question:\n{QUERY}"
    merged = [{"role": "user", "content": f"{SYSTEM} Cite as [S1a2b3c].\n{schema}\n\n{question}"}]
    _, (plan,) = await asked(stubs, "openai", {"model": "stub", "messages": merged})
    assert json.loads(plan["choices"][0]["message"]["content"])["plan_title"].startswith("Offshore wind")
    prose = [{"role": "user", "content": f"{SYSTEM} Cite as [S1a2b3c].\n\n{question}\n\nA note [S0123ab]."}]
    _, (answer,) = await asked(stubs, "openai", {"model": "stub", "messages": prose})
    assert answer["choices"][0]["message"]["content"] == "One source treats the question [S0123ab]."


@pytest.mark.usefixtures("wide")
async def test_other_tools_find_pages_and_near_texts(stubs: Stubs) -> None:
    """What gpt-researcher asks of them: whole pages, vectors, and what the script says word for word."""
    stubs.settings.says = {r"\d search queries": '["a", "b"]', "agent_role": "{}"}
    async with httpx.AsyncClient(base_url=stubs.url, headers={"Authorization": "Bearer stub"}) as client:
        found = (await client.get("/pages", params={"query": "wind capacity"})).json()
        assert len(found) == 5 and all(len(one["raw_content"]) >= 4_000 for one in found)
        texts = ["wind capacity in Europe", "capacity of wind in Europe", "a bowl of soup"]
        embedded = (await client.post("/v1/embeddings", json={"model": "stub", "input": texts})).json()["data"]
        first, near, far = (one["embedding"] for one in embedded)

        def cosine(other: list[float]) -> float:
            return float(sum(a * b for a, b in zip(first, other, strict=True)))

        assert cosine(first) == pytest.approx(1) and cosine(near) > 0.8 > cosine(far)
        asked = {"model": "stub", "messages": [{"role": "user", "content": "Write 3 search queries on agent_role."}]}
        said = (await client.post("/v1/chat/completions", json=asked)).json()
        assert said["choices"][0]["message"]["content"] == '["a", "b"]'
    assert [len(stubs.calls(kind)) for kind in ("pages", "embeddings", "llm")] == [1, 1, 1]

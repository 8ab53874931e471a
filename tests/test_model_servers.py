"""Each provider is asked as it takes it, and not more than its model holds: known before, refused, or told."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fathom.config.environment import Environment
from fathom.config.groups import RoleModel, StructuredOutput
from fathom.config.secrets import Scrubber
from fathom.config.settings import ResearchSettings, resolve
from fathom.errors import InvalidInput, ModelRejected, RequestRejected
from fathom.llm.base import Completion, CutOff, InvalidAnswer, ModelCall
from fathom.llm.client import ModelBackend
from fathom.llm.dialects import CONCESSIONS, OLLAMA_WINDOW, TABLE, Dialect, conceded, dialect_of
from fathom.llm.listening import listen
from fathom.llm.model_checks import check_models
from fathom.llm.openai_chat import OpenAIChat
from fathom.llm.parsing import accept
from fathom.llm.prompts import GO_ON, REPETITIONS, request_options
from fathom.llm.services import Pulse
from fathom.llm.windows import LEAST_SHARE, OLLAMA_DEFAULT, Learnt, sent_tokens, shrunk
from fathom.models import Ending, Note, PlanStep, SourceText, Usage
from fathom.roles import (
    CLARIFIER,
    COMPRESSOR,
    PLANNER,
    RESEARCHER,
    ClarifyRequest,
    PlanAnswer,
    PlanRequest,
    ResearchRequest,
)
from fathom.telemetry.progress import Event
from fathom.telemetry.progress import listen as hear
from tests.conftest import ask_model, new_ledger
from tests.inprocess import QUERY, investigated
from tests.stubs import Stubs
from tests.stubs.behaviours import SECRET
from tests.stubs.ollama import NONSENSE
from tests.stubs.streams import tokens
from tests.test_model_faults import PATIENCE, SMALL, close_litellm, compress_request, section_call

CUT_SHORT = InvalidAnswer(complaints=["The answer was cut off."], cut_off=CutOff.limit)


@pytest.fixture
async def servers(providers: Stubs, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Stubs]:
    """The stubs as every provider, for a small run."""
    providers.settings.steps, providers.settings.breadth, providers.settings.results = 3, 1, 2
    providers.settings.follow_ups, providers.settings.page_bytes = 0, 2_000
    for name in ("HOSTED_VLLM", "DEEPSEEK", "XAI", "OPENROUTER"):
        monkeypatch.setenv(f"{name}_API_BASE", providers.llm_url)
        monkeypatch.setenv(f"{name}_API_KEY", "stub-key")
    monkeypatch.setenv("ANTHROPIC_BASE_URL", providers.url)
    monkeypatch.setenv("ANTHROPIC_API_KEY", "stub-key")
    monkeypatch.setenv("OLLAMA_API_BASE", providers.url)
    yield providers
    await close_litellm()


def plan_call(model: str = "openai/stub", invalid: InvalidAnswer | None = None, **options: Any) -> ModelCall:
    request = PlanRequest(query=QUERY, today="2026-11-22", max_steps=3, tools={"web_search": "searches"})
    return ModelCall(PLANNER, request, RoleModel(model=model, temperature=0.4, **options), invalid)


def clarify_call(model: str) -> ModelCall:
    return ModelCall(CLARIFIER, ClarifyRequest(query=QUERY, today="2026-11-22", tools={}), RoleModel(model=model))


def backend() -> aclosing[ModelBackend]:
    return aclosing(ModelBackend(Environment.read(), new_ledger(), PATIENCE))


def bodies(stubs: Stubs) -> list[dict[str, Any]]:
    return [record.body for record in stubs.calls("llm")]


# -- known before


@dataclass(frozen=True)
class Case:
    """A model of a line of the table, and what its provider does not take.

    Attributes:
        line: words of the line's source.
        has, lacks: what a request has; words of its JSON.
    """

    line: str
    model: str
    refuses: frozenset[str] = frozenset()
    behaviour: str = "ok"
    own_server: bool = True
    has: tuple[str, ...] = ()
    lacks: tuple[str, ...] = ()


STRICT = frozenset({"bounds", "loose_schema"})
CASES = [
    Case("max_tokens is deprecated", "openai/gpt-4.1", STRICT | {"max_tokens"}, own_server=False),
    Case(
        "sampling parameters and max_tokens are refused",
        "openai/gpt-5-mini",
        STRICT | {"max_tokens", "temperature", "frequency_penalty"},
        "thinks_long",
        own_server=False,
    ),
    Case("the schema becomes a grammar", "openai/stub", frozenset({"max_completion_tokens"}), has=('"maxItems": 3',)),
    Case("and the two above", "hosted_vllm/stub", frozenset({"max_completion_tokens"}), has=('"maxItems": 3',)),
    Case("the start of a longer prompt", "ollama_chat/stub", has=(f'"num_ctx": {OLLAMA_WINDOW}', '"maxItems": 3')),
    Case("a forced tool has a schema", "anthropic/claude-sonnet-4-5", has=('"tool_choice"',), lacks=("maxItems",)),
    Case("combined into one", "anthropic/claude-haiku-4-5"),
    Case("the cache has what is marked", "openrouter/anthropic/claude-sonnet-4.5", lacks=("cache_control",)),  # short
    Case("only json_object", "deepseek/deepseek-chat", frozenset({"json_schema"}), lacks=("maxItems",)),
    Case("only the roles user and model", "openai/gemma-3-4b-it", frozenset({"system"})),
    Case("guides/reasoning_model", "openai/Qwen/Qwen3-8B", behaviour="thinks_long"),
    Case("on unless it is turned off", "xai/grok-4.3", frozenset({"frequency_penalty"}), "thinks_long"),
]


def test_every_line_of_the_table_has_a_case() -> None:
    assert [[line.source for line in TABLE if case.line in line.source] for case in CASES] == [
        [line.source] for line in TABLE
    ]


async def completed(call: ModelCall, *, own_server: bool) -> Completion:
    """Ask a model; with `own_server` False as if its provider's own address led to the stubs."""
    if own_server:
        return await ask_model(call, calls=PATIENCE)
    environment, model = Environment.read(), call.model.model
    async with aclosing(OpenAIChat(environment, Scrubber(environment.secrets))) as transport:
        dialect = dialect_of(model, own_server=False)
        most = Learnt(dialect, None, None).answer_tokens(call.model)
        pieces = transport.send(model, dialect, request_options(call, dialect), most)
        reply = await listen(pieces, model, silence=30, left=60, most=most, pulse=Pulse())
    return Completion(text=reply.text or "", usage=Usage(), model=model, cut_off=reply.cut_off)


@pytest.mark.parametrize("invalid", [None, CUT_SHORT], ids=["first", "asked again"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.model)
async def test_each_provider_answers_at_the_first_request(
    servers: Stubs, case: Case, invalid: InvalidAnswer | None
) -> None:
    servers.settings.refuses, servers.settings.faults = set(case.refuses), {"*": [f"{case.behaviour}*"]}
    call = plan_call(case.model, invalid)
    answer = accept(call, await completed(call, own_server=case.own_server))
    assert isinstance(answer, PlanAnswer)
    (body,) = bodies(servers)
    sent = json.dumps(body)
    assert [words for words in case.has if words not in sent] == []
    assert [words for words in case.lacks if words in sent] == []
    assert QUERY in sent and "You are the planner" in sent  # the question, and what the system message says


async def test_anthropics_thoughts_are_no_part_of_its_answer(servers: Stubs) -> None:
    servers.settings.faults = {"*": ["thinks*"]}
    async with backend() as models:
        for call in (plan_call("anthropic/claude-sonnet-4-5"), section_call()):
            asked = replace(call, model=RoleModel(model="anthropic/claude-sonnet-4-5"))
            completion = await models.complete(asked)
            assert completion.text and SECRET not in completion.text
    planner, section = bodies(servers)
    assert planner["tool_choice"]["name"] == planner["tools"][0]["name"] == "planner_answer"
    assert "tools" not in section
    assert section["max_tokens"] > planner["max_tokens"], "there is room for thoughts now"


@pytest.mark.parametrize(("trained", "window"), [(32_768, OLLAMA_WINDOW), (8_192, 8_192), (0, OLLAMA_WINDOW)])
async def test_ollama_is_asked_for_a_window_and_keeps_the_whole_prompt(
    servers: Stubs, trained: int, window: int
) -> None:
    """A prompt that fits its window, or its model's if that is smaller: it would lose its beginning otherwise."""
    servers.settings.ollama_context = trained
    call = compress_call(40_000)
    completion = await ask_model(replace(call, model=RoleModel(model="ollama_chat/stub")), calls=PATIENCE)
    (record,) = servers.calls("llm")
    assert record.body["options"]["num_ctx"] == window
    assert completion.text != NONSENSE
    assert record.body["messages"][0]["role"] == "system"
    assert record.usage["prompt_tokens"] + record.body["options"]["num_predict"] <= window
    assert len(record.body["messages"][1]["content"]) > window


# -- refused


@dataclass(frozen=True)
class Refusal:
    """What a server refuses, and what the requests of a model then have: one entry a request, the last is answered."""

    refuses: set[str]
    asked: list[Any]
    model: str = "openai/stub"
    invalid: InvalidAnswer | None = None
    options: dict[str, Any] = field(default_factory=dict)

    def shows(self, body: dict[str, Any]) -> Any:
        """Return the part of a request that its server refuses, or what stands in its place."""
        if "system" in self.refuses:
            return body["messages"][0]["role"]
        if "bounds" in self.refuses:
            return "maxItems" in json.dumps(body)
        if limits := self.refuses & {"max_tokens", "max_completion_tokens"}:
            return next(name for name in ("max_tokens", "max_completion_tokens") if name in body) if limits else None
        if self.refuses & {"json_schema", "json_object", "response_format"}:
            return (body.get("response_format") or {}).get("type")
        (name,) = self.refuses
        return name in body


REFUSED = [
    Refusal({"stream_options"}, [True, False]),
    Refusal({"frequency_penalty"}, [True, False], invalid=CUT_SHORT),
    Refusal({"temperature"}, [True, False]),
    Refusal({"max_tokens"}, ["max_tokens", "max_completion_tokens"]),
    Refusal({"max_completion_tokens"}, ["max_completion_tokens", "max_tokens"], model="openai/gpt-5-mini"),
    Refusal({"system"}, ["system", "user"]),
    Refusal({"bounds"}, [True, False]),
    Refusal({"json_schema"}, ["json_schema", "json_object"]),
    Refusal({"json_schema", "json_object"}, ["json_schema", "json_object", None]),
    Refusal({"response_format"}, ["json_schema", "json_object", None]),
    Refusal({"json_object"}, ["json_object", None], options={"structured_output": StructuredOutput.json_object}),
]


def without(body: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in body.items() if name not in names}


@pytest.mark.parametrize("refusal", REFUSED, ids=lambda refusal: "+".join(sorted(refusal.refuses)))
async def test_what_is_refused_is_left_out_from_then_on(servers: Stubs, refusal: Refusal) -> None:
    servers.settings.refuses = refusal.refuses
    call = plan_call(refusal.model, refusal.invalid, **refusal.options)
    shown: list[Event] = []
    with hear(shown.append):
        async with backend() as models:
            for _ in range(2):
                assert isinstance(accept(call, await models.complete(call)), PlanAnswer)
    assert list(map(refusal.shows, bodies(servers))) == [*refusal.asked, refusal.asked[-1]]
    warned = [event.message for event in shown if event.kind == "warning"]
    assert len(warned) == len(set(warned)) >= 1  # one server says the same of two forms
    assert all("asked in another form" in message and "litellm" not in message for message in warned)
    *refused, _answered, _again = servers.calls("llm")
    assert len({record.fingerprint for record in refused}) == len(refused)
    if refusal.refuses & {"stream_options", "frequency_penalty", "temperature"}:
        (name,) = refusal.refuses
        first, second, _ = bodies(servers)
        assert without(first, name) == second, "nothing else is given up"


async def test_a_server_that_refuses_much_is_learnt_once(servers: Stubs) -> None:
    servers.settings.refuses = {"stream_options", "temperature", "max_tokens", "system", "bounds", "json_schema"}
    async with backend() as models:
        assert isinstance(accept(plan_call(), await models.complete(plan_call())), PlanAnswer)
        assert len(servers.calls("llm")) == len(servers.settings.refuses) + 1
        assert len({record.fingerprint for record in servers.calls("llm")}) == len(servers.settings.refuses) + 1
        assert (await models.complete(section_call())).text
    assert [record.status for record in servers.calls("llm")][-2:] == [200, 200]


async def test_calls_that_are_refused_at_once_are_all_asked_in_the_other_form(servers: Stubs) -> None:
    """What is refused of the second is no longer what the model is asked for: the first has learnt it."""
    servers.settings.refuses, servers.settings.llm_delay = {"temperature", "json_schema"}, 0.2
    async with backend() as models:
        calls = [plan_call(max_tokens=2_000 + n) for n in range(4)]
        completions = await asyncio.gather(*map(models.complete, calls))
    assert all(isinstance(accept(plan_call(), completion), PlanAnswer) for completion in completions)
    forms = [body["response_format"]["type"] for body in bodies(servers)]
    assert forms[-1] == "json_object"
    assert max(map(forms.count, set(forms))) <= 2 * len(calls)


@pytest.mark.parametrize("model", ["openai/stub", "hosted_vllm/stub"])
async def test_a_refusal_that_names_nothing_of_the_request_ends_the_call(servers: Stubs, model: str) -> None:
    servers.settings.refuses = {"model"}
    with pytest.raises(RequestRejected, match="Failed to load model") as failure:
        await ask_model(plan_call(model))
    assert "litellm" not in str(failure.value)
    assert isinstance(failure.value, ModelRejected) and "--model" in failure.value.next_step
    assert len(servers.calls("llm")) == 1


def test_no_concession_is_made_twice() -> None:
    for concession in CONCESSIONS:
        changed = replace(Dialect(), **concession.differs)
        assert conceded(changed, "It is what it is.") is None
    dialect, forms = Dialect(structured=StructuredOutput.tool), list[StructuredOutput]()
    while following := conceded(dialect, "tools are not supported"):
        dialect = following
        forms.append(dialect.structured)
    assert forms == [StructuredOutput.json_object, StructuredOutput.prompt]


# -- notes

TURNS = [
    ("anthropic/claude-sonnet-4-5", (), True),
    ("openrouter/anthropic/claude-sonnet-4.5", ("neighbours",), True),
    ("openai/gemma-3-4b-it", ("neighbours", "system"), True),
    ("openai/mistral", ("neighbours",), True),  # which is learnt from the refusal
    ("openai/stub", (), False),
]


@pytest.mark.parametrize(("model", "refuses", "turns"), TURNS, ids=[model for model, *_ in TURNS])
async def test_each_useful_note_is_one_assistant_message(
    servers: Stubs, model: str, refuses: tuple[str, ...], turns: bool
) -> None:
    servers.settings.refuses = set(refuses)
    call = research_call(3, model)
    async with backend() as models:
        assert (await models.complete(call)).text
    *refused, body = bodies(servers)
    assert len(refused) == (model == "openai/mistral")
    blocks = [(message["role"], message["content"]) for message in body["messages"]]
    told = [(role, [text] if isinstance(text, str) else [block["text"] for block in text]) for role, text in blocks]
    assert isinstance(call.request, ResearchRequest)
    notes = [note.message().model_dump_json() for note in call.request.notes]
    assert [texts for role, texts in told if role == "assistant"] == [[note] for note in notes]
    between = [texts for role, texts in told if texts == [GO_ON]]
    assert len(between) == (len(notes) - 1 if turns else 0)
    assert not turns or all(one != other for (one, _), (other, _) in pairwise(told))


# -- the provider's cache


def research_call(notes: int, model: str = "anthropic/claude-sonnet-4-5") -> ModelCall:
    """A call whose instructions are long, with some notes of 400 tokens each."""
    step = PlanStep(step_id=1, title="Tides", description="Find how tides form.")
    taken = [
        Note(
            step_id=1,
            summary_title=f"Note {n}",
            summary="Tides form. " * 130,
            extraction=[],
            is_useful=True,
            artifact_file=f"{n}.json",
            source_ids=[],
        )
        for n in range(notes)
    ]
    request = ResearchRequest(
        query=QUERY,
        today="2026-11-22",
        step=step,
        breadth=2,
        tools={"web_search": "Finds pages of any kind. " * 300},
        searching=["web_search"],
        notes=taken,
        tried=[],
    )
    return ModelCall(RESEARCHER, request, RoleModel(model=model))


def marked(body: dict[str, Any]) -> list[str]:
    """Return the beginnings of the texts that a request marks for a cache, in any protocol."""
    system = body.get("system") or []
    parts = [system, *(message["content"] for message in body["messages"])]
    blocks = [block for part in parts if not isinstance(part, str) for block in part]
    assert {json.dumps(block["cache_control"]) for block in blocks if "cache_control" in block} <= {
        '{"type": "ephemeral"}'
    }
    return [block["text"][:17] for block in blocks if "cache_control" in block]


@pytest.mark.parametrize("model", ["anthropic/claude-sonnet-4-5", "openrouter/anthropic/claude-sonnet-4.5"])
async def test_what_calls_share_is_marked_for_the_cache(servers: Stubs, model: str) -> None:
    async with backend() as models:
        for call in (research_call(1, model), research_call(3, model), clarify_call(model)):
            await models.complete(call)
    first, second, short = map(marked, bodies(servers))
    assert [len(first), len(second), short] == [2, 2, []]
    assert first[0] == second[0] == "You are a researc"
    assert [first[1], second[1]] == ['{"summary_title":', '{"summary_title":']


async def test_what_is_in_the_cache_is_read_and_costs_less(servers: Stubs) -> None:
    asked = [research_call(1), research_call(3), research_call(3)]
    ledger = new_ledger()
    async with aclosing(ModelBackend(Environment.read(), ledger, PATIENCE)) as models:
        first, second, third = [(await models.complete(call)).usage for call in asked]
    assert (first.cached_tokens, first.cache_write_tokens > 1_024) == (0, True)
    assert (second.cached_tokens, second.cache_write_tokens > 0) == (first.cache_write_tokens, True)
    assert (third.cached_tokens, third.cache_write_tokens) == (second.cached_tokens + second.cache_write_tokens, 0)
    sent = [record.usage["prompt_tokens"] for record in servers.calls("llm")]
    assert [usage.prompt_tokens for usage in (first, second, third)] == sent
    for usage in (first, second, third):
        fresh = usage.prompt_tokens - usage.cached_tokens - usage.cache_write_tokens
        dollars = fresh * 3 + usage.cached_tokens * 0.3 + usage.cache_write_tokens * 3.75 + usage.completion_tokens * 15
        assert usage.cost_usd == pytest.approx(dollars / 1_000_000)
    assert ledger.account.usd == pytest.approx(sum(u.cost_usd or 0 for u in (first, second, third)))
    assert ledger.account.tokens == sum(u.prompt_tokens + u.completion_tokens for u in (first, second, third))


@pytest.mark.parametrize("model", ["anthropic/claude-sonnet-4-5", "openrouter/anthropic/claude-sonnet-4.5"])
async def test_a_server_that_takes_no_marks_gets_none(servers: Stubs, model: str) -> None:
    servers.settings.refuses = {"cache_control"}
    async with backend() as models:
        for _ in range(2):
            assert (await models.complete(research_call(1, model))).text
    assert [len(marked(body)) for body in bodies(servers)] == [2, 0, 0]


@pytest.mark.parametrize(
    ("model", "from_tokens"),
    [
        ("anthropic/claude-haiku-4-5", 4_096),
        ("bedrock/anthropic.claude-sonnet-4-20250514-v1:0", 1_024),
        ("vertex_ai/claude-haiku-4-5", 4_096),
        ("openrouter/anthropic/claude-sonnet-4.5", 1_024),
        ("bedrock/amazon.nova-pro-v1:0", None),  # these have a cache of their own, or none
        ("openrouter/openai/gpt-5-mini", None),
        ("openai/gpt-5-mini", None),
        ("deepseek/deepseek-chat", None),
        ("gemini/gemini-2.5-pro", None),
    ],
)
def test_a_beginning_is_marked_from_the_length_that_its_model_keeps(model: str, from_tokens: int | None) -> None:
    dialect = dialect_of(model, own_server=False)
    assert dialect.marked_from == from_tokens
    sent = request_options(research_call(8, model), dialect)["messages"]
    assert [n for n, message in enumerate(sent) if "cache_control" in message] == {
        None: [],
        1_024: [0, len(sent) - 2],
        4_096: [len(sent) - 2],
    }[from_tokens]


@pytest.mark.parametrize("model", ["openai/stub", "openai/deepseek-v3", "deepseek/deepseek-chat", "hosted_vllm/stub"])
async def test_what_a_provider_reads_from_its_own_cache_is_counted(servers: Stubs, model: str) -> None:
    servers.settings.cached = 0.5
    usage = (await ask_model(research_call(1, model), calls=PATIENCE)).usage
    (record,) = servers.calls("llm")
    assert usage.prompt_tokens == record.usage["prompt_tokens"]
    assert usage.cached_tokens == usage.prompt_tokens // 2 > 0
    assert usage.cache_write_tokens == 0


# -- streams that litellm reads


OVER_LITELLM = ["hosted_vllm/stub", "anthropic/claude-sonnet-4-5", "ollama_chat/stub"]


@pytest.mark.parametrize("model", OVER_LITELLM)
@pytest.mark.parametrize("behaviour", ["error_in_stream", "cut_stream"])
async def test_an_answer_that_breaks_off_over_litellm_is_asked_for_again(
    servers: Stubs, model: str, behaviour: str
) -> None:
    servers.settings.faults = {"planner": [behaviour]}
    shown: list[Event] = []
    with hear(shown.append):
        completion = await ask_model(plan_call(model), calls=PATIENCE)
    assert isinstance(accept(plan_call(model), completion), PlanAnswer)
    broken, whole = servers.calls("llm")
    assert 0 < broken.tokens < whole.tokens
    (warned,) = [event.message for event in shown if event.kind == "warning"]
    assert "litellm." not in warned and "Exception -" not in warned, warned


@pytest.mark.parametrize("model", OVER_LITELLM)
async def test_a_silence_and_a_repetition_over_litellm_end_the_answer(servers: Stubs, model: str) -> None:
    servers.settings.faults = {"planner": ["silent", *["repeats"] * REPETITIONS]}
    completion = await ask_model(plan_call(model), calls=PATIENCE.model_copy(update={"seconds": 3.0}))
    assert completion.cut_off is CutOff.repetition
    assert len(tokens(completion.text)) <= 8 + 12 + 50
    silent, *_, repeating = servers.calls("llm")
    for _ in range(600):  # it writes to nobody until it notices, and then no more
        seen = repeating.repeated
        await asyncio.sleep(0.1)
        if repeating.repeated == seen:
            break
    assert (repeating.repeated, repeating.ended, silent.ended) == (seen, None, None)


@pytest.mark.usefixtures("home", "short_rests")
@pytest.mark.parametrize("fault", ["500*", "drop*", "404*"])
async def test_no_message_names_the_inside_of_litellm(servers: Stubs, tmp_path: Path, fault: str) -> None:
    servers.settings.faults = {"stub": [fault]}
    shown: list[Event] = []
    chosen = {"model": "hosted_vllm/stub", **SMALL}
    with hear(shown.append):
        if fault == "404*":
            with pytest.raises(ModelRejected) as failure:
                await investigated(tmp_path, **chosen)
            shown.append(Event("warning", str(failure.value)))
        else:
            assert (await investigated(tmp_path, **chosen)).status is Ending.degraded
    warned = [event.message for event in shown if event.kind == "warning"]
    assert warned and len(warned) == len(set(warned))
    assert not any("litellm." in message or "Exception -" in message or "Error:" in message for message in warned)


# -- windows


def compress_call(characters: int, texts: int = 4, model: str = "openai/stub", **options: Any) -> ModelCall:
    """A call whose material has about so many characters."""
    sentence = "Paragraph {} of text {} treats methane seas and their tides in some detail.\n\n"
    most = characters // texts // len(sentence)
    bodies = ["".join(sentence.format(n, number) for n in range(most)) for number in range(texts)]
    sources = [
        SourceText(source_id=f"S{n:06x}", url=f"https://x.example/{n}", title="T", kind="web", text=body or "Seas.")
        for n, body in enumerate(bodies)
    ]
    request = compress_request(sources)
    return ModelCall(COMPRESSOR, request, RoleModel(model=model, **options))


@pytest.mark.parametrize(
    ("entry", "window"),
    [
        ({"id": "stub", "meta": {"n_ctx": 5_000, "n_ctx_train": 9_000}}, 5_000),  # llama.cpp
        ({"id": "other.gguf", "meta": {"n_ctx": 5_000}}, 5_000),  # llama.cpp, which answers to any name
        ({"id": "stub", "object": "model", "max_model_len": 6_000}, 6_000),  # vLLM, SGLang
        ({"id": "stub", "loaded_context_length": 4_000, "max_context_length": 9_000}, 4_000),  # LM Studio
        ({"id": "stub", "context_length": 7_000}, 7_000),  # OpenRouter, Together
        ({"id": "stub", "context_window": 8_000}, 8_000),  # Groq
        ({"id": "stub", "object": "model", "owned_by": "library"}, OLLAMA_DEFAULT),  # Ollama, behind /v1
        ({"id": "stub", "object": "model", "owned_by": "me"}, None),
        ({"id": "stub", "max_model_len": "many"}, None),
    ],
)
async def test_a_server_tells_the_window_of_its_model(
    servers: Stubs, entry: dict[str, Any], window: int | None
) -> None:
    servers.settings.models = {"object": "list", "data": [entry]}
    environment = Environment.read()
    async with aclosing(OpenAIChat(environment, Scrubber(environment.secrets))) as transport:
        assert await transport.window("openai/stub") == window
        others = [{"id": "another", "context_length": 1_000}, {**entry, "id": "stub"}]
        servers.settings.models = {"object": "list", "data": others}
        assert await transport.window("openai/stub") == window
        servers.settings.faults["models"] = ["500", "html", "hang"]
        assert await transport.window("openai/stub") is None


@pytest.mark.usefixtures("home")
@pytest.mark.parametrize("style", ["llama.cpp", "vllm"])
async def test_a_run_keeps_to_the_window_that_the_server_tells(servers: Stubs, tmp_path: Path, style: str) -> None:
    servers.settings.context_window, servers.settings.window_style = 4_096, style
    servers.settings.page_bytes = 20_000
    told = {"meta": {"n_ctx": 4_096}} if style == "llama.cpp" else {"max_model_len": 4_096}
    servers.settings.models = {"object": "list", "data": [{"id": "stub", **told}]}
    result = await investigated(tmp_path, **SMALL)
    assert result.status is Ending.complete, result.reason
    assert [record.status for record in servers.calls("llm") if record.status != 200] == []
    assert len(servers.calls("models")) == 1


@pytest.mark.usefixtures("home")
@pytest.mark.parametrize("style", ["llama.cpp", "vllm", "openai"])
async def test_a_run_learns_the_window_from_one_refusal(servers: Stubs, tmp_path: Path, style: str) -> None:
    servers.settings.context_window, servers.settings.window_style = 4_096, style
    servers.settings.page_bytes = 20_000
    result = await investigated(tmp_path, **SMALL)
    assert result.status is Ending.complete, result.reason
    assert [record.status for record in servers.calls("llm")].count(400) <= 1


def test_a_model_that_nobody_has_is_refused_with_what_to_write() -> None:
    environment = Environment.read({})
    with pytest.raises(InvalidInput, match="no model 'nonsense'") as refused:
        check_models(resolve(ResearchSettings(model="nonsense"), environment, []), environment)
    assert "openai/" in refused.value.next_step


@given(
    characters=st.integers(0, 200_000),
    texts=st.integers(1, 8),
    window=st.integers(1_024, 40_000),
    most=st.integers(64, 8_000),
    thinks=st.booleans(),
)
def test_a_request_fits_or_has_nothing_left_to_leave_out(
    characters: int, texts: int, window: int, most: int, thinks: bool
) -> None:
    learnt = Learnt(Dialect(thinks=thinks), window, None)
    call = compress_call(characters, texts, max_tokens=most)
    fitting = learnt.fit(call)
    options, answer = learnt.asks(fitting)
    assert options == request_options(fitting, learnt.dialect)
    if sent_tokens(options) + answer > window:
        assert shrunk(fitting.request, LEAST_SHARE) is None
    if sent_tokens(request_options(call, learnt.dialect)) + learnt.answer_tokens(call.model) <= window:
        assert fitting is call

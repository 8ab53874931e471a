"""A model that fails, over real HTTP: how each run ends, how often it asks, and that the client keeps its bounds."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Coroutine
from contextlib import aclosing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from typing import Any

import litellm
import pytest
from litellm.llms.custom_httpx.async_client_cleanup import close_litellm_async_clients

from fathom.budget.ledger import Cost, Ledger
from fathom.config.environment import Environment
from fathom.config.groups import Budget, ModelCallSettings, RoleModel
from fathom.config.secrets import Scrubber
from fathom.errors import (
    AnswerInvalid,
    AnswerTooLarge,
    CircuitOpen,
    ContextOverflow,
    ModelError,
    ModelRejected,
    ModelTimeout,
    ModelUnreachable,
    ProviderFailed,
    RateLimited,
    Refused,
)
from fathom.llm import services
from fathom.llm.base import Completion, ModelCall
from fathom.llm.client import ModelBackend
from fathom.llm.dialects import dialect_of
from fathom.llm.listening import listen
from fathom.llm.openai_chat import OpenAIChat, speaks_openai_chat
from fathom.llm.over_litellm import LiteLLM
from fathom.llm.prompts import request_options
from fathom.llm.services import (
    FAILURES,
    LONGEST_REST,
    MAX_WAIT,
    REST_SECONDS,
    Circuit,
    Pulse,
    Spacing,
    circuit_of,
    slots,
)
from fathom.llm.windows import shrunk
from fathom.models import Ending, Note, SourceText
from fathom.network import retry_after
from fathom.roles import COMPRESSOR, SECTION, CompressRequest, SectionRequest, ShortAnswerRequest
from fathom.roles.reporter import OutlinedSection
from fathom.storage.store import ArtifactStore
from fathom.text.tokens import count_tokens
from tests.conftest import FathomCLI, PrefectServer, ask_model, new_ledger, quiet_port
from tests.fault_matrix import CHECKED, REQUESTS, WRITTEN, Cell, runs
from tests.generated import errors
from tests.inprocess import QUERY, investigated, kept, research
from tests.stubs import Stubs, serving
from tests.stubs.floods import FLOOD

PATIENCE = ModelCallSettings(seconds=30.0, backoff_seconds=0.01)
IMPATIENCE = {
    "hangs once": 2.0,
    "hangs always": 0.5,
    "falls silent in the middle once": 2.0,
    "falls silent in the middle always": 0.5,
}  # seconds; in the first case it must answer afterwards


async def close_litellm() -> None:
    """Close the connections that litellm keeps beyond the event loop of a test, Anthropic's in a client of its own."""
    await close_litellm_async_clients()
    litellm.in_memory_llm_clients_cache.flush_cache()
    await litellm.module_level_aclient.client._transport.aclose()


@pytest.fixture
async def providers(providers: Stubs) -> AsyncIterator[Stubs]:
    """The providers, for a small run in which every role is asked."""
    providers.settings.suggests = False
    providers.settings.steps, providers.settings.breadth, providers.settings.results = 3, 1, 2
    providers.settings.follow_ups, providers.settings.page_bytes = 0, 2_000
    yield providers
    await close_litellm()


SMALL: dict[str, Any] = {
    "depth": 2,
    "turns": 1,
    "max_results": 2,
    "model_calls": PATIENCE,
    "execution": "sequential",
}
"""Settings of a run that asks as often as `REQUESTS` says, and as `WRITTEN` does where every sentence is quoted."""


def asked(failing: set[str]) -> set[str]:
    """Return which of the roles that fail are asked: a plan made without a model has queries, which nobody chooses."""
    return failing - {"researcher"} if "planner" in failing else failing


def name_of(cells: list[Cell]) -> str:
    return f"{cells[0].fault.name}-{cells[0].role if len(cells) == 1 else 'every role'}"


@pytest.mark.usefixtures("home", "short_rests")
@pytest.mark.parametrize("cells", list(runs()), ids=name_of)
async def test_each_fault_ends_as_declared(providers: Stubs, tmp_path: Path, cells: list[Cell]) -> None:
    fault = cells[0].fault
    patience = PATIENCE.model_copy(update={"seconds": IMPATIENCE.get(fault.name, PATIENCE.seconds)})
    providers.settings.faults = {cell.role: fault.script_for(cell.role) for cell in cells}
    providers.settings.context_window, providers.settings.retry_after = fault.context_window, fault.retry_after
    providers.settings.refuses = set(fault.refuses)
    if any(cell.role in CHECKED for cell in cells):  # else the sections quote, and there is nothing to judge
        providers.settings.section = "It was counted in other words. [ID]"
        providers.settings.replacement = "It was counted in words."
        providers.settings.verdicts = {"in other words": "contradicted", "in words": "supported"}
    if fault.ending == "failed":
        with pytest.raises(ModelRejected) as failure:
            await investigated(tmp_path, **SMALL | {"model_calls": patience})
        assert "OPENAI_API_KEY" in str(failure.value)
    else:
        result = await investigated(tmp_path, **SMALL | {"model_calls": patience})
        degraded = {cell.role for cell in cells if f"{cell.role}: answered without the model" in result.reason}
        assert degraded == asked({cell.role for cell in cells if cell.ending == "degraded"}), result.reason
        assert result.status is (Ending.degraded if degraded else Ending.complete)
        assert "[1]" in Path(result.report or "").read_text()
    made = {role: len(providers.calls(role)) for role in REQUESTS}
    assert {cell.role: made[cell.role] for cell in cells if made[cell.role] > cell.requests} == {}
    too_long = [record.fingerprint for record in providers.calls("llm") if record.behaviour == "context_limit"]
    assert len(too_long) == len(set(too_long)), "a prompt that was too long is not sent again"


@pytest.mark.usefixtures("home", "quiet")
async def test_a_wrong_key_stops_parallel_steps_at_once(providers: Stubs, tmp_path: Path) -> None:
    providers.settings.faults = {"researcher": ["401*"]}
    with pytest.raises(ModelRejected):
        await research(tmp_path, **SMALL | {"execution": "parallel"})
    made = len(providers.calls("llm"))
    await asyncio.sleep(0.3)
    assert len(providers.calls("llm")) == made <= 1 + 3


def test_a_wrong_key_is_exit_code_1_and_names_the_variable(
    providers: Stubs, prefect_server: PrefectServer, fathom_cli: FathomCLI
) -> None:
    providers.settings.faults = {"*": ["401*"]}
    done = fathom_cli(["research", QUERY, "--model", "openai/stub"], {**prefect_server.env, **providers.env})
    assert done.returncode == 1, done.stderr
    assert "E2005" in done.stderr
    assert "OPENAI_API_KEY" in done.stderr
    assert "Traceback" not in done.stderr
    assert len(providers.calls("llm")) == 1


@pytest.mark.usefixtures("home")
@pytest.mark.parametrize("execution", ["sequential", "parallel"])
async def test_one_prompt_that_always_fails_costs_its_own_answer_only(
    providers: Stubs, tmp_path: Path, execution: str
) -> None:
    # A request for another step may name this one too, where both have found the same page.
    providers.settings.poison = "compressor .*Step: Effects of"
    result = await investigated(tmp_path, **SMALL | {"execution": execution})
    assert result.reason.count("answered without the model") == 1, result.reason
    failed = [record for record in providers.calls("llm") if record.status == 500]
    assert [len(failed), len({record.fingerprint for record in failed})] == [FAILURES, 1]
    answered = [record.role for record in providers.calls("llm") if record.status == 200]
    expected = WRITTEN | {"compressor": WRITTEN["compressor"] - 1}
    assert {role: answered.count(role) for role in WRITTEN} == expected


@pytest.mark.usefixtures("home", "short_rests")
@pytest.mark.parametrize("execution", ["sequential", "parallel"])
async def test_a_provider_that_is_down_costs_few_requests(providers: Stubs, tmp_path: Path, execution: str) -> None:
    providers.settings.faults = {"stub": ["500*"]}
    results = await asyncio.gather(
        *(investigated(tmp_path / name, **SMALL | {"execution": execution}) for name in ("a", "b"))
    )
    for result in results:
        assert result.status is Ending.degraded
        assert all(f"{role}: answered without the model" in result.reason for role in asked(set(WRITTEN)))
    # Five attempts of the calls that find out, four at once at most; then a probe for each rest.
    assert len(providers.calls("llm")) <= FAILURES * PATIENCE.at_once + 2 * sum(WRITTEN.values())


@pytest.mark.usefixtures("home")
async def test_a_fallback_model_answers_and_is_not_asked_again(providers: Stubs, tmp_path: Path) -> None:
    """It answers at once while the other rests: nobody waits for a service that can be replaced."""
    providers.settings.faults = {"stub": ["500*"]}
    result = await kept(tmp_path, run_key="spare", **SMALL, fallback_models=["openai/spare"])
    assert result.status is Ending.complete, result.reason
    asked = [record.body["model"] for record in providers.calls("llm")]
    assert asked.count("stub") == FAILURES + 1, "the first call, and one more request: then its circuit is open"
    assert asked.count("spare") == sum(WRITTEN.values())
    await kept(tmp_path, run_key="spare", **SMALL, fallback_models=["openai/spare"])
    assert len(providers.calls("llm")) == len(asked)


SECTION_REQUEST = SectionRequest(
    query=QUERY,
    today="2026-11-22",
    title="Tides",
    outlined=[OutlinedSection(heading="Seas", focus="What the seas are made of.")],
    position=0,
    notes=[],
    written=[],
)


def section_call(title: str = "Tides", **options: Any) -> ModelCall:
    request = SECTION_REQUEST.model_copy(update={"title": title})
    return ModelCall(SECTION, request, RoleModel(model="openai/stub", **options))


def answer_to(call: ModelCall, ledger: Ledger | None = None, **calls: Any) -> Coroutine[Any, Any, Completion]:
    return ask_model(call, ledger, PATIENCE.model_copy(update=calls))


@pytest.mark.parametrize("model", ["openai/stub", "hosted_vllm/stub"], ids=["directly", "over litellm"])
@pytest.mark.parametrize(
    ("fault", "error"),
    [
        ("ok", None),
        ("401", ModelRejected),
        ("404", ModelRejected),
        ("429", RateLimited),
        ("quota", ModelRejected),
        ("500", ProviderFailed),
        ("drop", ProviderFailed),
        ("html", ProviderFailed),
        ("no_choices", ProviderFailed),
        ("context_limit", ContextOverflow),
        ("content_policy", Refused),
        ("refusal", Refused),
    ],
)
async def test_every_protocol_tells_failures_apart_alike(
    providers: Stubs, monkeypatch: pytest.MonkeyPatch, model: str, fault: str, error: type[ModelError] | None
) -> None:
    monkeypatch.setenv("HOSTED_VLLM_API_BASE", providers.llm_url)
    monkeypatch.setenv("HOSTED_VLLM_API_KEY", "stub")
    providers.settings.faults, providers.settings.retry_after = {"*": [f"{fault}*"]}, 300
    environment = Environment.read()
    protocol = OpenAIChat if speaks_openai_chat(model) else LiteLLM
    call = section_call()
    call = replace(call, model=RoleModel(model=model, temperature=0.5))
    async with aclosing(protocol(environment, Scrubber(environment.secrets))) as transport:
        dialect = dialect_of(model, own_server=True)
        pieces = transport.send(model, dialect, request_options(call, dialect), 500)
        asked = listen(pieces, model, silence=10, left=60, most=500, pulse=Pulse())
        if error is None:
            reply = await asked
            assert (bool(reply.text), reply.refused, reply.cut_off) == (True, False, None)
            assert reply.prompt_tokens and reply.completion_tokens
            sent = providers.calls("llm")[-1].body
            assert (sent["model"], sent["max_tokens"], sent["temperature"]) == ("stub", 500, 0.5)
        elif fault in ("no_choices", "refusal"):
            reply = await asked
            # litellm drops a refusal from a stream: what is left is an empty answer.
            refused = fault == "refusal" and protocol is OpenAIChat
            assert (reply.text, reply.refused) == (None if fault == "no_choices" else "", refused)
        else:
            with pytest.raises(error) as failure:
                await asked
            assert type(failure.value) is error
            assert failure.value.retry_after == (300 if error is RateLimited else None)
            assert str(failure.value).startswith(f"{error.code} {model}: ") and "\n" not in str(failure.value)
    assert len(providers.calls("llm")) == 1


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("OPENAI_BASE_URL", "http://[::1/v1"),
        ("OPENAI_BASE_URL", "localhost:8000/v1"),
        ("OPENAI_API_KEY", "sk-pasted\u2026"),
        ("OPENAI_API_KEY", ""),
    ],
)
async def test_a_wrong_address_or_key_is_for_the_user_to_correct(
    providers: Stubs, monkeypatch: pytest.MonkeyPatch, variable: str, value: str
) -> None:
    monkeypatch.setenv(variable, value)
    with pytest.raises(ModelRejected) as failure:
        await answer_to(section_call())
    assert variable in failure.value.next_step
    assert providers.calls("llm") == []


@pytest.mark.parametrize(("model", "variable"), [("openai/x", "OPENAI_BASE_URL"), ("ollama/x", "OLLAMA_API_BASE")])
@pytest.mark.parametrize("host", ["127.0.0.1", "nowhere.invalid"])
async def test_a_model_without_a_server_is_tried_twice(
    monkeypatch: pytest.MonkeyPatch, model: str, variable: str, host: str
) -> None:
    address = f"http://{host}:{quiet_port()}"
    monkeypatch.setenv("OPENAI_API_KEY", "any")
    monkeypatch.setenv(variable, address)
    ledger, call = new_ledger(), section_call()
    with pytest.raises(ModelUnreachable) as failure:
        await answer_to(replace(call, model=RoleModel(model=model)), ledger)
    assert address in failure.value.message and variable in failure.value.next_step
    assert (ledger.total.calls, ledger.total.tokens) == (2, 0)
    await close_litellm()


@pytest.mark.parametrize("model", ["openai/stub", "hosted_vllm/stub"], ids=["directly", "over litellm"])
async def test_a_server_that_has_answered_is_waited_for(monkeypatch: pytest.MonkeyPatch, model: str) -> None:
    ledger, call = new_ledger(), replace(section_call(), model=RoleModel(model=model))
    with serving() as running:
        for name, value in {**running.env, "HOSTED_VLLM_API_BASE": running.llm_url}.items():
            monkeypatch.setenv(name, value)
        models = ModelBackend(Environment.read(), ledger, PATIENCE)
        await models.complete(call)
    async with aclosing(models):
        with pytest.raises(ProviderFailed, match="connection refused"):
            await models.complete(call)
    assert ledger.total.calls == 1 + FAILURES
    await close_litellm()


def test_a_run_without_a_model_server_ends_with_its_address(
    providers: Stubs, prefect_server: PrefectServer, fathom_cli: FathomCLI
) -> None:
    gone = {"OPENAI_BASE_URL": f"http://127.0.0.1:{quiet_port()}/v1"}
    done = fathom_cli(["research", QUERY, "--model", "openai/stub"], {**prefect_server.env, **providers.env, **gone})
    assert done.returncode == 1, done.stderr
    assert gone["OPENAI_BASE_URL"].removesuffix("/v1") in (last := done.stderr[done.stderr.rindex("fathom: E2009") :])
    assert "OPENAI_BASE_URL" in last and "fathom resume" in last
    assert done.stderr.count("tries again") == 1
    assert providers.calls("tavily") == [], "nothing is researched for a model that is not there"


@pytest.mark.usefixtures("home")
@pytest.mark.parametrize("fallback", ["openai/stub", "extractive"])
async def test_a_fallback_answers_for_a_model_without_a_server(
    providers: Stubs, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, fallback: str
) -> None:
    monkeypatch.setenv("HOSTED_VLLM_API_BASE", f"http://127.0.0.1:{quiet_port()}")
    result = await investigated(tmp_path, **SMALL, model="hosted_vllm/gone", fallback_models=[fallback])
    assert result.status is (Ending.degraded if fallback == "extractive" else Ending.complete), result.reason
    assert "[1]" in Path(result.report or "").read_text()
    asked = {record.body["model"] for record in providers.calls("llm")}
    assert asked == (set() if fallback == "extractive" else {"stub"})


def test_names_tell_which_models_are_asked_directly() -> None:
    direct = ("openai/gpt-5-mini", "gpt-5-mini", "openai/stub", "openai/Qwen/Qwen3-8B")
    assert all(map(speaks_openai_chat, direct))
    others = ("anthropic/claude-sonnet-4-5", "ollama/qwen3", "hosted_vllm/openai/stub", "openai/o1-pro", "openai/", "x")
    assert not any(map(speaks_openai_chat, others))


async def test_no_more_calls_than_allowed_are_under_way(providers: Stubs) -> None:
    providers.settings.held = "section"
    answering = asyncio.gather(*(answer_to(section_call(), at_once=3) for _ in range(10)))
    await asyncio.to_thread(providers.wait_for, 3, "section", ended=False)
    providers.settings.held = ""
    await answering
    moments = sorted(
        (moment, change) for r in providers.calls("llm") for moment, change in ((r.started, 1), (r.ended, -1))
    )
    under_way = [sum(change for _, change in moments[: n + 1]) for n in range(len(moments))]
    assert max(under_way) == 3


async def test_calls_wait_as_long_as_the_service_asked_one_of_them_to(providers: Stubs) -> None:
    providers.settings.faults, providers.settings.retry_after = {"section": ["429"]}, 1
    first = asyncio.create_task(answer_to(section_call()))
    await asyncio.to_thread(providers.wait_for, 1, "section")
    await asyncio.sleep(0.5)
    await asyncio.gather(first, *(answer_to(section_call()) for _ in range(3)))
    limited, *others = providers.calls("section")
    assert limited.ended is not None
    assert len(others) == 4
    assert min(record.started for record in others) >= limited.ended + 0.95


@pytest.mark.usefixtures("short_rests")
async def test_a_dead_service_is_probed_after_each_rest(providers: Stubs) -> None:
    providers.settings.faults = {"section": ["500*"]}
    with pytest.raises(ProviderFailed):
        await answer_to(section_call("the first"))
    with pytest.raises(CircuitOpen):
        await answer_to(section_call("the second"))
    assert len(providers.calls("llm")) == FAILURES + 1 + 2, (
        "what opens the circuit, and a probe after each of two rests"
    )
    waiting = (answer_to(section_call(f"number {n}")) for n in range(10))
    refused = await asyncio.gather(*waiting, return_exceptions=True)
    assert {type(error) for error in refused} <= {CircuitOpen, ProviderFailed}
    assert len(providers.calls("llm")) <= FAILURES + 3 + 1


async def test_a_call_waits_for_a_rest_without_a_slot_or_money(
    providers: Stubs, monkeypatch: pytest.MonkeyPatch
) -> None:
    now, circuit = time.monotonic(), circuit_of(f"openai/stub at {providers.llm_url}")
    monkeypatch.setattr(circuit, "_clock", lambda: now)  # the rest lasts until the test ends it
    for request in range(FAILURES):
        with pytest.raises(ProviderFailed), circuit.attempt(request):
            raise ProviderFailed("down")
    ledger, alone = new_ledger(), PATIENCE.model_copy(update={"at_once": 1})
    waits = asyncio.create_task(ask_model(section_call(), ledger, alone))
    await asyncio.sleep(0.1)
    assert (ledger.total, slots(1).locked(), providers.calls("llm"), waits.done()) == (Cost(), False, [], False)
    now += services.REST_SECONDS
    assert (await waits).text
    assert ledger.total.calls == 1


async def test_no_rest_is_waited_for_beyond_the_time_of_the_budget(providers: Stubs) -> None:
    providers.settings.faults = {"section": ["500*"]}
    for title in ("the first", "the second"):
        ledger = Ledger(Budget(max_seconds=20), ArtifactStore("memory://time"), "ledger")
        with pytest.raises((ProviderFailed, CircuitOpen)) as failure:
            await answer_to(section_call(title), ledger)
    assert isinstance(failure.value, CircuitOpen), "the rest takes 30 s"
    assert len(providers.calls("llm")) == FAILURES + 1


@pytest.mark.parametrize("behaviour", ["flood", "json_flood", "bomb"])
@pytest.mark.parametrize("model", ["openai/stub", "anthropic/claude-sonnet-4-5"])
async def test_an_answer_without_end_is_not_read(
    providers: Stubs, monkeypatch: pytest.MonkeyPatch, behaviour: str, model: str
) -> None:
    """litellm would search the whole of it for secrets, while the event loop stands still."""
    monkeypatch.setenv("ANTHROPIC_API_KEY", "stub-key")
    monkeypatch.setenv("ANTHROPIC_BASE_URL", providers.url)
    providers.settings.faults = {"*": [f"{behaviour}*"]}
    call = section_call()
    with pytest.raises(AnswerTooLarge, match=" KB"):
        await answer_to(replace(call, model=RoleModel(model=model)))
    assert len(providers.calls("llm")) == 2
    assert max(record.sent for record in providers.calls("llm")) < FLOOD // 2


async def test_an_answer_that_drips_for_ever_ends_with_the_time_limit(providers: Stubs) -> None:
    providers.settings.faults = {"section": ["drip*"]}
    with pytest.raises(ModelTimeout):
        await answer_to(section_call(), seconds=0.5)
    assert len(providers.calls("llm")) == 2


async def test_an_answer_as_long_as_asked_for_is_read(providers: Stubs) -> None:
    providers.settings.echo = "".join(map(chr, range(0x20000, 0x20000 + 4_000)))
    assert len((await answer_to(section_call())).text) > 4_000


@pytest.mark.parametrize(("fault", "setting"), [("401", "OPENAI_API_KEY"), ("404", "--model"), ("quota", "quota")])
async def test_what_only_the_user_can_correct_is_not_tried_again(providers: Stubs, fault: str, setting: str) -> None:
    providers.settings.faults = {"section": [f"{fault}*"]}
    with pytest.raises(ModelRejected) as failure:
        await answer_to(section_call(fallbacks=["openai/spare"]))
    assert setting in failure.value.next_step
    assert len(providers.calls("llm")) == 1


@pytest.mark.parametrize("seconds", [5, 0, -5])
def test_retry_after_may_be_a_date(seconds: int) -> None:
    now = datetime(2026, 11, 22, 12, tzinfo=UTC)
    date = format_datetime(now + timedelta(seconds=seconds), usegmt=True)
    assert retry_after({"retry-after": date}, now) == max(0, seconds)
    assert retry_after({"retry-after": str(seconds)}, now) == max(0, seconds)
    assert retry_after({"retry-after-ms": "250", "retry-after": "1"}, now) == 0.25
    assert retry_after({"retry-after": "soon"}, now) is None
    assert retry_after({}, now) is None


class Clock:
    """A clock that a test turns."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


ONE, OTHER = 1, 2
"""Requests; a circuit opens on failures of different ones."""


async def attempt(circuit: Circuit, error: ModelError | None = None, request: int = ONE, seconds: float = 1e9) -> None:
    await circuit.ready(request, max(circuit.rests, 1), seconds)
    with circuit.attempt(request):
        if error:
            raise error


async def fail(circuit: Circuit, times: int, request: int = ONE) -> None:
    for _ in range(times):
        with pytest.raises(ProviderFailed):
            await attempt(circuit, ProviderFailed("down"), request)


async def resting(clock: Clock) -> Circuit:
    circuit = Circuit("a service", clock)
    await fail(circuit, FAILURES - 1)
    await fail(circuit, 1, OTHER)
    return circuit


async def test_a_circuit_opens_after_five_failures_of_different_requests() -> None:
    circuit = Circuit("a service", Clock())
    await fail(circuit, 2 * FAILURES)  # one request that always fails says nothing about the others
    await attempt(circuit, request=OTHER)  # a success: the count starts again
    await fail(circuit, FAILURES - 2)
    with pytest.raises(AnswerInvalid):
        await attempt(circuit, AnswerInvalid("it is there"), OTHER)
    await fail(circuit, FAILURES - 1)
    await fail(circuit, 1, OTHER)
    assert circuit.rests == 1
    with pytest.raises(CircuitOpen):
        await attempt(circuit, seconds=REST_SECONDS - 1)  # as much as is left of the budget
    with pytest.raises(CircuitOpen), circuit.attempt(ONE):
        raise AssertionError("no request is made")


async def test_requests_wait_for_the_rest_and_then_for_the_probe() -> None:
    clock = Clock()
    circuit = await resting(clock)
    waiting = [asyncio.create_task(attempt(circuit, request=request)) for request in range(3, 8)]
    await asyncio.sleep(0.1)
    assert not any(task.done() for task in waiting)
    clock.now += REST_SECONDS
    with circuit.attempt(OTHER):
        await asyncio.sleep(0.1)
        assert not any(task.done() for task in waiting)
    await asyncio.gather(*waiting)
    assert circuit.rests == 0


async def test_a_failed_probe_refuses_those_that_wait_and_doubles_the_rest() -> None:
    clock = Clock()
    circuit = await resting(clock)
    for seconds in (2 * REST_SECONDS, 4 * REST_SECONDS, 8 * REST_SECONDS, LONGEST_REST, LONGEST_REST):
        waiting = [asyncio.create_task(attempt(circuit, request=request)) for request in range(3, 8)]
        await asyncio.sleep(0.1)
        clock.now += LONGEST_REST
        with pytest.raises(ProviderFailed), circuit.attempt(ONE):
            await asyncio.sleep(0)
            raise ProviderFailed("down")
        refused = await asyncio.gather(*waiting, return_exceptions=True)
        assert [type(error) for error in refused] == [CircuitOpen] * len(waiting)
        clock.now += min(seconds, LONGEST_REST) - 1
        with pytest.raises(CircuitOpen), circuit.attempt(ONE):
            raise AssertionError("no request is made")
        assert (circuit.rests <= 2) == (seconds <= MAX_WAIT)
    clock.now += 1
    await attempt(circuit)
    assert circuit.rests == 0


async def test_a_request_that_never_failed_is_the_probe() -> None:
    clock = Clock()
    circuit = await resting(clock)
    waiting = [asyncio.create_task(attempt(circuit, request=request)) for request in (ONE, OTHER)]
    waiting.append(asyncio.create_task(attempt(circuit, request=3)))
    await asyncio.sleep(0.1)
    clock.now += REST_SECONDS
    done, _ = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    assert done == {waiting[2]}
    await asyncio.gather(*waiting)


async def test_a_cancelled_probe_leaves_room_for_the_next() -> None:
    clock = Clock()
    circuit = await resting(clock)
    clock.now += REST_SECONDS + 1
    with pytest.raises(asyncio.CancelledError), circuit.attempt(ONE):
        raise asyncio.CancelledError
    assert circuit.rests == 1
    await attempt(circuit)


async def test_requests_begin_evenly_spaced() -> None:
    spacing, asked, began = Spacing(), time.monotonic(), list[float]()

    async def request() -> None:
        await spacing.turn(1_200)
        began.append(time.monotonic() - asked)

    await asyncio.gather(*(request() for _ in range(5)))
    assert all(after > n * 0.0499 for n, after in enumerate(began)), began
    with pytest.raises(StopIteration):  # it ends without having waited for anything
        spacing.turn(None).send(None)


async def test_after_silences_a_service_rests_for_twice_as_long_as_they_took() -> None:
    """A request to it takes that long to fail: otherwise one would follow upon the other."""
    clock = Clock()
    circuit, silence = Circuit("a service", clock), 2 * REST_SECONDS

    async def be_silent(request: int) -> None:
        with pytest.raises(ModelTimeout), circuit.attempt(request):
            clock.now += silence
            raise ModelTimeout("was silent")

    for n in range(FAILURES):
        await be_silent(n)
    for _ in range(2):
        clock.now += 2 * silence - 1
        with pytest.raises(CircuitOpen), circuit.attempt(ONE):
            raise AssertionError("no request is made")
        clock.now += 1
        await be_silent(OTHER)
    assert circuit.rests == 3


async def test_requests_that_fail_together_are_one_mishap() -> None:
    clock = Clock()
    circuit = Circuit("a service", clock)
    together = asyncio.Event()

    async def failing(request: int) -> None:
        with circuit.attempt(request):
            await together.wait()
            clock.now += 1
            raise ModelTimeout("down")

    under_way = [asyncio.create_task(failing(request)) for request in range(3 * FAILURES)]
    await asyncio.sleep(0.01)
    together.set()
    await asyncio.gather(*under_way, return_exceptions=True)
    await attempt(circuit)


def text(number: int, words: str) -> SourceText:
    body = "\n\n".join(f"Paragraph {n} of text {number} treats {words} in some detail." for n in range(40))
    return SourceText(source_id=f"S{number:06x}", url=f"https://x.example/{number}", title="T", kind="web", text=body)


def compress_request(texts: list[SourceText]) -> CompressRequest:
    return CompressRequest(
        plan_title="Tides",
        step_title="Methane seas",
        step_description="Find the depth of methane seas.",
        tool_name="web_search",
        texts=texts,
        page_tokens=600,
    )


def note(number: int, words: str) -> Note:
    return Note(
        step_id=1,
        summary_title=words,
        summary=f"A note on {words}.",
        extraction=[],
        is_useful=True,
        artifact_file=f"{number}.json",
        source_ids=[],
        tokens=100,
    )


def test_a_request_shrinks_to_half_and_keeps_what_matters() -> None:
    request = compress_request([text(1, "gardens"), text(2, "methane seas")])
    size = sum(count_tokens(t.text) for t in request.texts)
    smaller = shrunk(request)
    assert isinstance(smaller, CompressRequest)
    assert sum(count_tokens(t.text) for t in smaller.texts) <= size // 2
    assert sum("methane" in t.text for t in smaller.texts) == 1
    notes = [note(1, "gardens"), note(2, "methane seas"), note(3, "the depth of methane seas"), note(4, "cars")]
    asked: Any = ShortAnswerRequest(query="How deep are methane seas?", today="2026-11-22", notes=notes)
    asked = shrunk(asked)
    assert [n.artifact_file for n in asked.notes] == ["2.json", "3.json"]
    asked = shrunk(asked)
    assert len(asked.notes) == 1
    assert shrunk(asked) is None
    step = SECTION_REQUEST.model_copy(update={"written": ["First.", "Second.", "Third."]})
    halved: Any = shrunk(step)
    assert halved.written == ["Third."]
    assert shrunk(SECTION_REQUEST) is None


async def test_the_answer_of_a_prompt_that_was_halved_is_kept(providers: Stubs) -> None:
    providers.settings.context_window = 1_000
    texts = [text(n, "methane seas") for n in range(1, 5)]
    request = compress_request(texts)
    completion = await answer_to(ModelCall(COMPRESSOR, request, RoleModel(model="openai/stub")))
    assert isinstance(completion, Completion)
    *refused, answered = providers.calls("llm")
    assert 1 <= len(refused) <= 4
    assert [record.status for record in refused] == [400] * len(refused)
    assert answered.usage["prompt_tokens"] <= 1_000


def test_every_error_has_a_code_of_its_own() -> None:
    codes = [kind.code for kind in errors() if "code" in vars(kind)]  # a narrower kind may share its parent's
    assert len(codes) == len(set(codes)) > 15

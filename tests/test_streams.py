"""Answers as they arrive: how long one is waited for, what is cut off, and what is no part of it."""

from __future__ import annotations

import asyncio
import json
import re
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fathom.budget.ledger import Ledger
from fathom.config.environment import Environment
from fathom.config.groups import Budget, RoleModel
from fathom.errors import ModelTimeout
from fathom.evidence.claims import MARKS
from fathom.llm.base import CutOff, InvalidAnswer, ModelCall
from fathom.llm.client import ModelBackend
from fathom.llm.listening import Repetition
from fathom.llm.parsing import accept
from fathom.llm.prompts import PENALTY, REPETITIONS, WARMER
from fathom.models import Ending, RunResult, Verdict
from fathom.roles import PLANNER, PlanAnswer, PlanRequest
from fathom.storage.store import ArtifactStore
from fathom.telemetry.progress import Event, listen
from tests.conftest import ROOT, new_ledger
from tests.fault_matrix import WRITTEN
from tests.inprocess import QUERY, investigated
from tests.stubs import FACT, Stubs
from tests.stubs.behaviours import SECRET
from tests.stubs.streams import tokens
from tests.test_model_faults import PATIENCE, SMALL, answer_to, asked


@pytest.fixture
def model(providers: Stubs) -> Stubs:
    """The providers, for a small run in which every role is asked."""
    providers.settings.suggests = False
    providers.settings.steps, providers.settings.breadth, providers.settings.results = 3, 1, 2
    providers.settings.follow_ups, providers.settings.page_bytes = 0, 2_000
    return providers


def plan_call(invalid: InvalidAnswer | None = None) -> ModelCall:
    """A call whose answer has more than 150 tokens."""
    request = PlanRequest(query=QUERY, today="2026-11-22", max_steps=3, tools={"web_search": "searches"})
    return ModelCall(PLANNER, request, RoleModel(model="openai/stub", temperature=0.4), invalid)


def text_of(result: RunResult) -> str:
    return Path(result.report or "").read_text(encoding="utf-8")


# -- how long an answer is waited for


async def test_a_slow_answer_is_not_given_up(model: Stubs) -> None:
    model.settings.token_seconds, model.settings.faults = 0.04, {"planner": ["slow"]}
    completion = await answer_to(plan_call(), seconds=3)
    (record,) = model.calls("llm")
    assert record.ended and record.ended - record.started > 3
    assert completion.text.endswith("}")
    assert completion.pace and completion.pace.tokens_per_second < 50


@pytest.mark.parametrize(("behaviour", "says"), [("silent*", "sent nothing more for 0.3 s"), ("hang*", "was silent")])
async def test_a_silence_is_given_up_and_tried_once_more(model: Stubs, behaviour: str, says: str) -> None:
    model.settings.faults = {"planner": [behaviour]}
    with pytest.raises(ModelTimeout, match=says):
        await answer_to(plan_call(), seconds=0.3)
    assert len(model.calls("llm")) == 2


async def test_requests_in_a_queue_wait_while_others_are_answered(model: Stubs) -> None:
    model.settings.one_at_a_time = True
    model.settings.token_seconds, model.settings.faults = 0.01, {"planner": ["slow*"]}
    completions = await asyncio.gather(*(answer_to(plan_call(), at_once=4, seconds=3) for _ in range(4)))
    assert all(completion.text.endswith("}") for completion in completions)
    first, *_, last = sorted(model.calls("llm"), key=lambda record: record.started)
    assert last.started - first.started > 3, "the last waited for longer than a silence may take"
    assert len(model.calls("llm")) == 4


async def test_the_time_of_the_budget_ends_a_slow_answer(model: Stubs) -> None:
    model.settings.token_seconds, model.settings.faults = 0.2, {"planner": ["slow*"]}
    ledger = Ledger(Budget(max_seconds=2), ArtifactStore("memory://slow"), "ledger")
    with pytest.raises(ModelTimeout, match="time of the budget"):
        await answer_to(plan_call(), ledger)
    (record,) = model.calls("llm")
    assert 0 < record.tokens < 100


@pytest.mark.parametrize("behaviour", ["error_in_stream", "cut_stream"])
async def test_an_answer_that_breaks_off_is_asked_for_again(model: Stubs, behaviour: str) -> None:
    model.settings.faults = {"planner": [behaviour]}
    call = plan_call()
    assert isinstance(accept(call, await answer_to(call)), PlanAnswer)
    broken, whole = model.calls("llm")
    assert 0 < broken.tokens < whole.tokens
    assert broken.fingerprint == whole.fingerprint


@pytest.mark.usefixtures("home")
async def test_a_server_that_does_not_stream_is_no_worse(model: Stubs, tmp_path: Path) -> None:
    model.settings.refuses = {"stream"}
    result = await investigated(tmp_path, **SMALL)
    assert result.status is Ending.complete, result.reason
    assert len(model.calls("llm")) == sum(WRITTEN.values())


@pytest.mark.usefixtures("home")
async def test_a_run_says_once_how_fast_its_model_is(model: Stubs, tmp_path: Path) -> None:
    model.settings.token_seconds, model.settings.faults = 0.02, {"planner": ["slow"], "critic": ["slow"]}
    shown: list[Event] = []
    with listen(shown.append):
        await investigated(tmp_path, **SMALL)
    (speed,) = [event.message for event in shown if event.kind == "speed"]
    assert "tokens a second" in speed and "minutes" in speed


# -- what only repeats itself


@pytest.mark.parametrize("behaviour", ["repeats", "whitespace"])
async def test_a_repetition_is_cut_off_and_asked_for_otherwise(model: Stubs, behaviour: str) -> None:
    model.settings.faults = {"planner": [behaviour] * REPETITIONS}
    call = plan_call()
    async with aclosing(ModelBackend(Environment.read(), new_ledger(), PATIENCE)) as models:
        completion = await models.complete(call)
        assert completion.cut_off is CutOff.repetition
        said = tokens(completion.text)
        assert len(said) <= 8 + 12 + 50
        outcome = accept(call, completion)
        assert isinstance(outcome, InvalidAnswer)
        assert isinstance(accept(call, await models.complete(replace(call, invalid=outcome))), PlanAnswer)
    bodies = [record.body for record in model.calls("llm")]
    warmer = [body["temperature"] - bodies[0]["temperature"] for body in bodies]
    assert warmer == pytest.approx([0, WARMER, 2 * WARMER])
    assert [body.get("frequency_penalty") for body in bodies] == [None, PENALTY, PENALTY]
    assert len({str(body["messages"]) for body in bodies}) == 1, "it would repeat what speaks of the repetition"
    cut = model.calls("llm")[0]
    for _ in range(600):  # it writes to nobody until it notices, and then no more
        seen = cut.repeated
        await asyncio.sleep(0.1)
        if cut.repeated == seen:
            break
    assert (cut.repeated, cut.ended) == (seen, None)


async def test_an_answer_that_was_cut_at_the_limit_is_not_shown_to_the_model(model: Stubs) -> None:
    model.settings.faults = {"planner": ["truncated"]}
    call = plan_call()
    completion = await answer_to(call)
    outcome = accept(call, completion)
    assert isinstance(outcome, InvalidAnswer)
    assert outcome.cut_off is CutOff.limit
    await answer_to(replace(call, invalid=outcome))
    _, second = (record.body for record in model.calls("llm"))
    assert [message["role"] for message in second["messages"]] == ["system", "user"]
    assert outcome.complaints[0] in second["messages"][-1]["content"]
    assert "plan_title" in completion.text and completion.text[:40] not in json.dumps(second["messages"])


def cut_after(pieces: list[str]) -> int | None:
    """Return after how many pieces an answer is cut off."""
    repetition = Repetition()
    return next((n for n, piece in enumerate(pieces, 1) if repetition.found(piece)), None)


PIECES = st.text(st.characters(codec="utf-8"), min_size=1, max_size=8)


WINDOWS = st.lists(PIECES, min_size=1, max_size=20).filter(lambda pieces: any(map(str.isalpha, "".join(pieces))))


@given(before=st.lists(PIECES, max_size=60), window=WINDOWS)
def test_a_repetition_is_found_within_fifty_tokens(before: list[str], window: list[str]) -> None:
    again = window * 51
    found = cut_after([*before, *window, *again[:50]])
    assert found is not None
    assert found <= len(before) + len(window) + 50


@pytest.mark.parametrize(
    "row", ["| " + "0 | " * 40, "|" + "---|" * 30, "| " + " | ".join(["-" * 32] * 8) + " |", "0" * 64]
)
def test_rules_and_rows_of_zeros_are_no_repetition(row: str) -> None:
    assert cut_after(re.findall(r"\d|\s?[^\w\s]{1,4}|\s?\w+|\s+", f"A table:\n\n{row}\n")) is None


@pytest.mark.parametrize("window", [" ", "\n", "\n\n  ", "2026-11-22 ", "ha"])
def test_white_space_and_dates_are(window: str) -> None:
    assert cut_after(list(window * 100)) is not None


def in_fours(text: str, offset: int) -> list[str]:
    """Return a text in tokens of four characters; the first has as many as the offset."""
    return [text[:offset]] * bool(offset) + [text[n : n + 4] for n in range(offset, len(text), 4)]


DOCUMENTS = [*sorted((ROOT / "docs").glob("*.md")), ROOT / "README.md"]
CODE = sorted(path for room in ("fathom", "flows", "tasks") for path in (ROOT / room).rglob("*.py"))


def test_no_document_and_no_code_of_ours_is_cut_off() -> None:
    for number, path in enumerate([*DOCUMENTS, *CODE[::4]]):
        assert cut_after(in_fours(path.read_text(encoding="utf-8"), number % 4)) is None, path.name


WORDS = st.sampled_from(["sea", "tide", "methane", "moon", "depth", "of", "the", "1,024", "Titan", "how", "wide"])
PHRASES = st.lists(WORDS, min_size=2, max_size=12).map(" ".join)
STEPS = st.fixed_dictionaries(
    {
        "title": PHRASES,
        "description": PHRASES,
        "queries": st.lists(PHRASES, min_size=1, max_size=4, unique=True),  # four times the same one is a repetition
        "priority": st.sampled_from(["high", "medium"]),
        "depends_on": st.lists(st.integers(1, 5), max_size=2),
    }
)


@given(steps=st.lists(STEPS, min_size=1, max_size=8), indent=st.sampled_from([None, 1, 2, 4, 8]))
def test_no_plan_is_cut_off_however_it_is_indented(steps: list[dict[str, Any]], indent: int | None) -> None:
    plan = {"plan_title": "Tides", "steps": [{"step_id": n, **step} for n, step in enumerate(steps, 1)]}
    for offset in range(4):
        assert cut_after(in_fours(json.dumps(plan, indent=indent), offset)) is None


CELLS = st.sampled_from(["-", "0", "n/a", "yes", "unknown", "complete, 1", "1,024", "[S1a2b3c]"])


@given(data=st.data(), columns=st.integers(2, 12), rows=st.integers(1, 12), alike=st.booleans())
def test_no_table_of_up_to_twelve_columns_is_cut_off(data: st.DataObject, columns: int, rows: int, alike: bool) -> None:
    """Nor one whose cells say the same all along a row."""
    lines = ["| " + " | ".join(f"column {n}" for n in range(columns)) + " |", "|" + "---|" * columns]
    for row in range(rows):
        cells = [data.draw(CELLS)] * columns if alike else [data.draw(CELLS) for _ in range(columns)]
        lines.append("| " + " | ".join([f"row {row}", *cells[1:]]) + " |")
    for offset in range(4):
        assert cut_after(in_fours("\n".join(lines), offset)) is None


# -- thoughts


@pytest.mark.usefixtures("home")
@pytest.mark.parametrize(
    ("behaviour", "ending", "more"),
    [
        ("thinks", Ending.complete, 0),
        ("think_tags", Ending.complete, 0),
        ("think_open", Ending.degraded, None),
        ("thinks_only", Ending.degraded, None),
        ("thinks_long", Ending.complete, 1),
    ],
)
async def test_thoughts_are_paid_for_and_kept_nowhere(
    model: Stubs, tmp_path: Path, behaviour: str, ending: Ending, more: int | None
) -> None:
    model.settings.faults = {role: [f"{behaviour}*"] for role in WRITTEN}
    result = await investigated(tmp_path, **SMALL)
    assert result.status is ending, result.reason
    assert SECRET not in text_of(result)
    assert [path for path in tmp_path.rglob("*") if path.is_file() and SECRET.encode() in path.read_bytes()] == []
    calls = model.calls("llm")
    assert result.metrics.completion_tokens == sum(record.usage["completion_tokens"] for record in calls)
    if more is not None:
        assert len(calls) == sum(WRITTEN.values()) + more
    if behaviour == "thinks_long":
        first, second = (record.body["max_tokens"] for record in calls[:2])
        assert second > 8_000 > first


# -- what is no prose


DEBRIS = ("summary_title", "<|im_", "You write one section", "```json", "\\u", '"summary"')


@pytest.mark.usefixtures("home")
@pytest.mark.parametrize("always", [False, True], ids=["once", "always"])
@pytest.mark.parametrize("behaviour", ["json_prose", "fenced_json_prose", "echo_prompt", "debris"])
async def test_nothing_but_prose_is_in_the_report(model: Stubs, tmp_path: Path, behaviour: str, always: bool) -> None:
    model.settings.faults = {"section": [f"{behaviour}*" if always else behaviour]}
    result = await investigated(tmp_path, **SMALL)
    usable = not always or behaviour == "debris"  # its first turn is the answer
    assert result.status is (Ending.complete if usable else Ending.degraded), result.reason
    report = text_of(result)
    assert [words for words in DEBRIS if words in report] == []
    assert FACT.search(report)


@pytest.mark.usefixtures("home", "short_rests")
@pytest.mark.parametrize("correction", ["broken_json*", "empty*", "500*"])
async def test_a_correction_that_fails_leaves_the_sentence_marked(
    model: Stubs, tmp_path: Path, correction: str
) -> None:
    model.settings.faults = {"section": ["half_false", "ok*"], "correction": [correction]}
    result = await investigated(tmp_path, **SMALL)
    assert result.status is Ending.degraded, result.reason
    assert result.reason.count("correction: answered without the model") == 1
    report = text_of(result)
    assert f"zeppelins did it in 1899 [1]. {MARKS[Verdict.not_stated]}" in report
    sections = json.loads((Path(result.report or "").parent / "report.json").read_text())["sections"]
    assert all(FACT.search(section["markdown"]) for section in sections)


# -- warnings


@pytest.mark.usefixtures("home", "short_rests")
@pytest.mark.parametrize("fault", ["500*", "hang*", "error_in_stream*"])
async def test_a_cause_is_warned_of_once(model: Stubs, tmp_path: Path, fault: str) -> None:
    model.settings.faults = {"stub": [fault]}
    shown: list[Event] = []
    with listen(shown.append):
        result = await investigated(tmp_path, **SMALL | {"model_calls": PATIENCE.model_copy(update={"seconds": 0.3})})
    assert result.status is Ending.degraded
    warned = [event.message for event in shown if event.kind == "warning"]
    again = [message.split()[0] for message in warned if "tries again" in message]
    assert len(again) == len(set(again)) == 1, warned
    without = [message.partition(" after ")[0] for message in warned if "answered without the model" in message]
    assert set(without) == {f"{role}: answered without the model" for role in asked(set(WRITTEN))}
    assert len(without) <= 2 * len(WRITTEN)  # the failure itself, and that the service rests
    assert len(warned) == len(again) + len(without)
    assert not any("litellm." in message or "Exception -" in message for message in warned)

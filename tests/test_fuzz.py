"""Whatever models, files, servers and users hand in: an answer or an error with a code, nothing else."""

from __future__ import annotations

import asyncio
import copy
import json
import string
import tempfile
import time
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from fathom.config.environment import Environment
from fathom.config.given import settings_from, table_from
from fathom.config.groups import RoleModel
from fathom.config.inputs import check_query
from fathom.config.settings import ResearchSettings, resolve
from fathom.errors import AnswerInvalid, FathomError, InvalidInput, StoreError, ToolRejected
from fathom.flows.runs.stored import find, load
from fathom.llm.base import CutOff, InvalidAnswer, ModelCall
from fathom.llm.parsing import accept
from fathom.models import (
    Ending,
    Metrics,
    Note,
    Plan,
    PlanStep,
    RunResult,
    Source,
    SourceText,
    ToolOutput,
)
from fathom.roles import (
    ANSWER,
    COMPRESSOR,
    CRITIC,
    OUTLINE,
    PLANNER,
    RESEARCHER,
    SPECS,
    CompressRequest,
    OutlineRequest,
    PlanRequest,
    ReflectRequest,
    Request,
    ResearchRequest,
    ShortAnswerRequest,
)
from fathom.storage.cache import TimedCache
from fathom.storage.names import artifact_name, folder_name
from fathom.storage.runs import runs
from fathom.storage.store import ArtifactStore, RunFolder
from fathom.text.urls import canonical_url, source_ids, urls_in
from fathom.tools.artifacts import ArtifactGrepTool, ArtifactReadTool
from fathom.tools.fetch.web import Page
from tests.conftest import FathomCLI
from tests.test_parsing import answered

FUZZ = settings(suppress_health_check=[HealthCheck.too_slow])

# -- what comes in ------------------------------------------------------------------------------------------------

TEXT = st.text(st.characters(), max_size=40)  # with lone surrogates, as broken JSON has them
WORDS = st.sampled_from(["", " ", "S1a2b3c", "[S1a2b3c]", "1", "-1", "done", "documents", "http://[", "a b", "\0", "]"])
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | WORDS | TEXT
JUNK = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4), max_leaves=8
)
NESTED = "[" * 100_000


@st.composite
def mutated(draw: st.DrawFn, valid: Any) -> Any:
    """JSON data with a few parts replaced, doubled or taken out."""
    root = [copy.deepcopy(valid)]
    for _ in range(draw(st.integers(0, 3))):
        places = list(_places(root))
        container, key = places[draw(st.integers(0, len(places) - 1))]
        if (change := draw(st.sampled_from(["replace", "double", "remove"]))) == "replace" or container is root:
            container[key] = draw(JUNK)
        elif change == "remove":
            del container[key]
        elif isinstance(container, list):
            container.append(container[key])
        else:
            container[draw(TEXT)] = container[key]
    return root[0]


def _places(node: Any) -> Any:
    for key in range(len(node)) if isinstance(node, list) else list(node):
        yield node, key
        if isinstance(node[key], (list, dict)):
            yield from _places(node[key])


@st.composite
def damaged(draw: st.DrawFn, valid: bytes) -> bytes:
    """Bytes with a stretch replaced, doubled or taken out."""
    data = valid
    for _ in range(draw(st.integers(0, 3))):
        at, length = draw(st.integers(0, len(data))), draw(st.integers(0, 200))
        middle = draw(st.just(b"") | st.just(data[at : at + length] * 2) | st.binary(max_size=40))
        data = data[:at] + middle + data[at + length :]
    return data


def documents(valid: Any) -> st.SearchStrategy[bytes]:
    """Files of JSON: mutated, damaged, or anything."""
    dumped = mutated(valid).map(lambda data: json.dumps(data).encode())
    return dumped | dumped.flatmap(damaged) | st.binary(max_size=80) | st.just(NESTED[:5_000].encode())


# -- models -------------------------------------------------------------------------------------------------------

STEP = PlanStep(step_id=1, title="Oceans", description="Find whether Mars has oceans.")
PLAN = Plan(plan_title="Tides on Mars", steps=[STEP])
NOTE = Note(
    step_id=1, summary_title="Oceans", summary="None.", extraction=["None [S1a2b3c]."], is_useful=True,
    artifact_file="tides_on_mars__step1_oceans__documents.json", source_ids=["S1a2b3c"],
)  # fmt: skip
READ = SourceText(source_id="S1a2b3c", url="https://a.example", title="A", kind="web", text="Mars has no seas.")
ASKED = {"query": "Are there tides on Mars?", "today": "2026-01-01"}
STEPS = [{"step_id": 1, "title": "Oceans", "description": "Find oceans.", "queries": ["Mars oceans"], "depends_on": []}]
CALLS: dict[str, tuple[Request, Any]] = {
    PLANNER.name: (PlanRequest(**ASKED, max_steps=3, tools={}), {"plan_title": "Tides", "steps": STEPS}),
    RESEARCHER.name: (
        ResearchRequest(
            **ASKED,
            step=STEP,
            breadth=2,
            tools={"documents": "search"},
            searching=["documents"],
            notes=[NOTE],
            tried=[],
        ),
        {"done": False, "calls": [{"tool": "documents", "input": "Mars oceans"}]},
    ),
    COMPRESSOR.name: (
        CompressRequest(
            plan_title="p", step_title="s", step_description="d", tool_name="t", texts=[READ], page_tokens=300
        ),
        {"summary_title": "Mars has no seas at all", "summary": "No. " * 3, "extraction": ["a"], "is_useful": True},
    ),
    CRITIC.name: (
        ReflectRequest(**ASKED, plan=PLAN, round=1, max_follow_ups=2, notes=[NOTE]),
        {
            "sufficiency_score": 4,
            "reasoning": "Little.",
            "step_statuses": [{"step_id": 1, "status": "done"}],
            "gaps": [{"description": "Depth.", "severity": "minor", "suggested_query": "Mars depth"}],
            "contradictions": [{"claim_a": "a", "claim_b": "b", "source_ids": ["S1a2b3c"]}],
            "follow_up_steps": STEPS,
        },
    ),
    OUTLINE.name: (
        OutlineRequest(**ASKED, plan=PLAN, notes=[NOTE]),
        {"title": "Tides", "sections": [{"heading": "Seas", "focus": "None.", "step_ids": [1]}]},
    ),
    ANSWER.name: (ShortAnswerRequest(**ASKED, notes=[NOTE]), {"answer": "No [S1a2b3c].", "confidence": 0.7}),
}  # fmt: skip
WRAPPINGS = ["{}", "```json\n{}\n```", "<think>{}</think>{}", "Sure: {}", "{}</think>", "<THINK>{}"]


@FUZZ
@given(st.sampled_from(sorted(CALLS)), st.data())
def test_any_answer_is_taken_rejected_or_a_typed_failure(name: str, data: st.DataObject) -> None:
    request, valid = CALLS[name]
    dumped = mutated(valid).map(json.dumps)
    broken = dumped.flatmap(lambda text: damaged(text.encode())).map(lambda raw: raw.decode(errors="surrogateescape"))
    text = data.draw(st.sampled_from(WRAPPINGS)).replace("{}", data.draw(dumped | broken | TEXT))
    call = ModelCall(
        SPECS[name],
        request,
        RoleModel(model="m"),
        data.draw(st.sampled_from([None, InvalidAnswer(complaints=[])])),
    )
    try:
        outcome = accept(call, answered(text, data.draw(st.sampled_from([None, *CutOff]))))
    except AnswerInvalid:
        assert call.invalid
    else:
        assert isinstance(outcome, (InvalidAnswer, SPECS[name].answer))


@pytest.mark.parametrize("text", [NESTED, '{"a":' * 50_000, "<think>" * 20_000, "</think>" + "<think>" * 20_000])
def test_no_answer_exhausts_the_ladder(text: str) -> None:
    request, _ = CALLS[PLANNER.name]
    began = time.process_time()
    outcome = accept(ModelCall(PLANNER, request, RoleModel(model="m")), answered(text))
    assert isinstance(outcome, InvalidAnswer)
    assert time.process_time() - began < 60


# -- users --------------------------------------------------------------------------------------------------------

DEFAULTS = ResearchSettings().model_dump(mode="json")


@FUZZ
@given(mutated(DEFAULTS), st.dictionaries(st.sampled_from([*DEFAULTS, "x"]), JUNK, max_size=4))
def test_any_options_are_settings_or_refused(nearly: Any, options: dict[str, Any]) -> None:
    for wanted in (options, nearly if isinstance(nearly, dict) else {}):
        try:
            chosen = settings_from({str(name): value for name, value in wanted.items()})
        except InvalidInput as error:
            assert error.wrong and str(error).startswith("E4001 ")
            assert json.dumps([asdict(one) for one in error.wrong], allow_nan=False, ensure_ascii=False).encode()
        else:
            dumped = resolve(chosen, Environment.read({"HOME": "/"}), []).model_dump_json()
            assert json.loads(dumped)
            assert ResearchSettings.model_validate_json(chosen.model_dump_json()) == chosen


@given(TEXT, st.lists(st.text("=,.e-1 an\0") | TEXT, max_size=3), st.dictionaries(TEXT, TEXT))
def test_any_words_of_a_user_are_parsed_or_refused(query: str, pairs: list[str], variables: dict[str, str]) -> None:
    for parse in (
        lambda: check_query(query),
        lambda: table_from("role_models", pairs),
        lambda: table_from("prices", pairs),
    ):
        try:
            parse()
        except InvalidInput as error:
            assert error.next_step
    Environment.read({"HOME": "/", **variables})


@given(TEXT, st.integers() | TEXT, TEXT, TEXT, st.integers(1, 99))
def test_names_of_any_plan_are_paths_of_the_store(plan: str, step_id: str | int, step: str, tool: str, n: int) -> None:
    names = [folder_name(plan), artifact_name(plan, step_id, step, tool, n, "json")]
    store = ArtifactStore("memory://names")
    for name in names:
        assert set(name) <= {*string.ascii_lowercase, *string.digits, "_", "."}
        assert not asyncio.run(store.exists(f"research_artifacts/{name}"))


@given(st.lists(st.sampled_from(["http", "s", "://", "[", "]", ":", "@", "/", "%", "?", "a", "1", ".", "\0"]) | TEXT))
@example(["http://[x"])
@example(["http://a:99999999"])
def test_any_address_has_an_id(parts: list[str]) -> None:
    address = "".join(parts).encode(errors="replace").decode()
    assert canonical_url(canonical_url(address)) == canonical_url(address)
    for url in (address, *urls_in(address)):
        assert source_ids([url])[url].startswith("S")


# -- what a run, or somebody else, left behind --------------------------------------------------------------------

RAW = ToolOutput(results=[READ])
RESULT = RunResult(
    run_id="0123abcd", status=Ending.complete, plan_title="Tides", artifacts="memory://x", report=None,
    sources=[Source(**READ.source().model_dump())],
    metrics=Metrics(
        llm_calls=1, tool_calls=1, raw_tokens=1, context_tokens=1, narrowed_tokens=0, context_reduction=0,
        prompt_tokens=1, completion_tokens=1, cost_usd=0, seconds=1,
    ),
)  # fmt: skip
MANIFEST = {"run_id": "0123abcd", "run_key": "key", "query": "q", "plan_title": "Tides", "started": "2026-01-01"}


def store_of(files: dict[str, bytes]) -> ArtifactStore:
    """Return a store with one run of these files and none of others."""
    store = ArtifactStore("memory://fuzz")
    for name, data in files.items():
        asyncio.run(store.write(f"research_artifacts/tides/{name}", data))
    return store


@FUZZ
@given(
    documents(MANIFEST),
    documents(PLAN.model_dump(mode="json")),
    documents(RESULT.model_dump(mode="json")),
    st.binary(max_size=20),
)
def test_any_run_folder_is_listed_and_shown_or_said_to_be_damaged(
    manifest: bytes, plan: bytes, result: bytes, report: bytes
) -> None:
    store = store_of({"run.json": manifest, "plan.json": plan, "result.json": result, "report.md": report})

    async def show() -> None:
        [found] = await runs(store)
        assert isinstance(found.query.encode(), bytes)
        run = await load(await find(store, "tides"))
        assert run.model_dump_json().encode()

    try:
        asyncio.run(show())
    except FathomError as error:
        assert str(error).encode()


@FUZZ
@given(
    documents(RAW.model_dump(mode="json")),
    st.binary(max_size=99),
    st.text("ab.*+?()[]{}|^$\\1RP<>&#,Sx", max_size=20) | TEXT,
)
def test_any_artifact_is_read_and_searched_or_said_to_be_damaged(raw: bytes, text: bytes, wanted: str) -> None:
    names = ["tides__step1_a__documents.json", "tides__step1_a__fetch.txt"]
    folder = RunFolder(store_of(dict(zip(names, (raw, text), strict=True))), "research_artifacts/tides")
    read, grep = ArtifactReadTool(folder).run, ArtifactGrepTool(folder).run
    readings = [partial(folder.read, name) for name in names] + [partial(read, f"{name}#{wanted}") for name in names]
    for reading in [*readings, partial(read, wanted), partial(grep, wanted)]:
        try:
            assert isinstance(asyncio.run(reading()), ToolOutput)
        except (StoreError, ToolRejected) as error:
            assert str(error)


@given(TEXT, TEXT, documents(Page(title="t", published="", text="x").model_dump()))
def test_a_cache_returns_what_was_put_or_nothing(key: str, text: str, found: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        cache = TimedCache(Path(folder), 60)
        assert cache.get(key) is None
        cache.put(key, text)
        assert cache.get(key) == text.encode("utf-8", "replace").decode()
        [entry] = Path(folder).iterdir()
        entry.write_bytes(found)
        assert isinstance(cache.get(key), str | None)
        assert isinstance(cache.load(key, Page), Page | None)


def test_damaged_runs_are_listed_beside_the_others_and_shown_with_what_to_do(
    fathom_cli: FathomCLI, tmp_path: Path
) -> None:
    left = {
        "whole": {"result.json": RESULT.model_dump_json().encode()},
        "started": {},
        "cut": {"result.json": b'{"status": "comp'},
        "nested": {"result.json": NESTED.encode()},
        "odd": {"result.json": b"[1]"},
        "bytes": {"report.md": b"\xff\xfe\xff"},
        "surrogate": {"run.json": b'{"run_id": "f", "query": "\\ud800"}'},
    }
    for name, files in left.items():
        folder = tmp_path / "artifacts" / "research_artifacts" / name
        folder.mkdir(parents=True)
        manifest = json.dumps({**MANIFEST, "run_id": name, "plan_title": name}).encode()
        for file, data in {"run.json": manifest, **files}.items():
            (folder / file).write_bytes(data)
    listed = fathom_cli(["runs", "--json"])
    assert listed.returncode == 0, listed.stderr
    # A Prefect server on this machine may know more; the id of one of these cannot be read.
    states = {row["run_id"]: row["state"] for row in json.loads(listed.stdout) if row["run_id"] in {*left, ""}}
    assert states.keys() == {*left, ""} - {"surrogate"}
    assert [name for name, state in states.items() if state == "complete"] == ["whole"]
    assert {name for name, state in states.items() if state == "unreadable"} == {"cut", "nested", "odd", ""}
    for name in ("cut", "nested", "odd", "bytes"):
        shown = fathom_cli(["show", name])
        assert (shown.returncode, shown.stdout, shown.stderr.count("\n")) == (1, "", 1), name
        assert shown.stderr.startswith("fathom: E6001 "), shown.stderr

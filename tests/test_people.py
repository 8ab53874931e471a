"""Questions to people: asked when they should be, answered wherever somebody is, recorded, and never asked twice."""

from __future__ import annotations

import asyncio
import json
import os
import pty
from collections.abc import Awaitable, Callable, Iterator
from contextlib import nullcontext
from datetime import UTC, datetime, timedelta
from io import StringIO
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from prefect.client.orchestration import get_client
from prefect.client.schemas.filters import FlowRunFilter, FlowRunFilterName
from prefect.client.schemas.objects import FlowRun, StateType
from prefect.exceptions import Abort
from prefect.states import Scheduled
from rich.console import Console
from starlette.datastructures import FormData

from fathom.budget.ledger import Ledger
from fathom.config.groups import Budget
from fathom.errors import InvalidInput, RunNotFound
from fathom.extractive.clarifier import clarify
from fathom.extractive.planner import plan
from fathom.flows.deep_research import deep_research
from fathom.flows.execution import resuming
from fathom.flows.execution.deploying import deploy
from fathom.flows.execution.resuming import recover
from fathom.flows.execution.worker import Worker, serving
from fathom.flows.replay import replay
from fathom.flows.runs import answering
from fathom.flows.runs.answering import Waiting
from fathom.interfaces.cli.dialogue import Dialogue
from fathom.interfaces.page.forms import plan_of
from fathom.models import (
    Asked,
    Clarification,
    Depth,
    Document,
    Matter,
    OpenQuestion,
    Plan,
    PlanStep,
    Reply,
    ReportPreferences,
    RunResult,
)
from fathom.roles import OUTLINE, ClarifyRequest, OutlineAnswer, OutlineRequest, PlanRequest
from fathom.roles.reporter import OutlinedSection
from fathom.run.checklist import as_yaml, from_yaml
from fathom.storage.pruning import survey
from fathom.storage.runs import runs
from fathom.storage.store import ArtifactStore
from tests.conftest import FathomCLI, Forked, PrefectServer, base_env
from tests.inprocess import investigated, research
from tests.processes import asking, finish
from tests.stubs import Stubs

ASK_BACK = {"Which period?": "the last ten years", "Which region?": "worldwide"}
QUICK: dict[str, Any] = {"profile": "quick", "fresh": True}
PLAN = Plan(
    plan_title="Tides",
    steps=[
        PlanStep(step_id=1, title="Causes", description="Find causes.", queries=["tide causes"], tools=["fetch"]),
        PlanStep(step_id="b", title="Effects", description="Find effects.", depends_on=[1]),
    ],
)


@pytest.fixture
def providers(providers: Stubs) -> Stubs:
    """The providers, for a small run, with a model that asks back."""
    providers.settings.page_bytes = 2_000
    providers.settings.steps, providers.settings.breadth = 2, 1
    providers.settings.ask_back = ASK_BACK
    return providers


# -- what is asked ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("query", "titles", "asked"),
    [
        ("What is Mercury?", ["Mercury (planet)", "Mercury (element)", "Venus"], True),
        ("Mercury", ["Mercury, planet", "Mercury – element"], True),
        ("What is Mercury?", ["Mercury in space", "Missions to Mercury", "Mercury (planet)"], False),
        ("How heavy is the planet Mercury?", ["Mercury (planet)", "Mercury (element)"], False),
        ("What is Mercury?", ["Mercury", "Mercury (element)"], False),
        ("What is Mercury?", ["Mercury (planet)", "Mercury: planet"], False),
        ("Compare Mercury and Venus", ["Mercury and Venus in orbit", "Mercury and Venus by mass"], False),
        ("What is Mercury?", [], False),
    ],
)
def test_without_a_model_only_titles_that_fit_equally_well_are_asked_about(
    query: str, titles: list[str], asked: bool
) -> None:
    documents = [Document(title=title) for title in titles]
    answer = clarify(ClarifyRequest(query=query, today="2026-11-23", tools={}, documents=documents))
    assert answer.ambiguous is asked
    assert all("planet" in found.question and found.default == "both" for found in answer.questions)


@pytest.mark.parametrize(
    ("people", "back", "asked"),
    [
        ({}, ASK_BACK, []),
        ({"clarify": "auto"}, {}, ["clarifier"]),
        ({"clarify": "auto"}, ASK_BACK, ["clarifier"]),
    ],
)
async def test_an_assumption_stands_in_everything_that_the_run_leaves(
    providers: Stubs, tmp_path: Path, people: dict[str, Any], back: dict[str, str], asked: list[str]
) -> None:
    providers.settings.ask_back = back
    result = await investigated(tmp_path, people={**people, "wait_minutes": 0}, **QUICK)
    assert [record.role for record in providers.calls("clarifier")] == asked
    assumed = [{"question": q, "answer": a, "assumed": True} for q, a in back.items()] if asked else []
    files = {name: Path(result.artifacts, name).read_text() for name in ("plan.json", "run.json", "report.md")}
    files["report.html"] = Path(result.artifacts, "report.html").read_text()
    for name in ("plan.json", "run.json"):
        said = json.loads(files[name]).get("clarifications", [])
        assert [{key: found[key] for key in ("question", "answer", "assumed")} for found in said] == assumed
    assert [name for name in ("report.md", "report.html") if "nobody answered" in files[name]] == (
        ["report.md", "report.html"] if assumed else []
    )
    assert ("Which period? the last ten years (assumed)" in str(providers.calls("planner")[0].body)) is bool(assumed)


def test_a_request_of_a_run_that_asks_nobody_is_as_it_always_was() -> None:
    request = PlanRequest(query="Why?", today="2026-11-23", max_steps=3, tools={})
    assert set(request.model_dump()) == {"query", "today", "max_steps", "tools", "documents"}
    assert set(PLAN.model_dump()) == {"plan_title", "steps"}


def test_without_a_model_words_become_steps() -> None:
    request = PlanRequest(query="What is Mercury?", today="2026-11-23", max_steps=3, tools={})
    said = [Clarification(question="?", answer=a, assumed=a == "both") for a in ("Mercury (planet)", "both")]
    assert plan(request.model_copy(update={"clarifications": said})).steps[0].title == "Mercury (planet)"
    both = [Clarification(question="?", answer=answer) for answer in ("the planet", "since 2010", "in Europe")]
    steps = plan(request.model_copy(update={"clarifications": both, "questions": ["Who found it?"]})).steps
    assert [step.title for step in steps] == ["The planet, since 2010, in Europe", "What is Mercury?", "Who found it?"]
    changed = plan(request.model_copy(update={"draft": PLAN, "remark": "Please also look at its moons"}))
    assert [step.step_id for step in changed.steps] == [1, "b", 2]
    assert (changed.steps[-1].title, changed.steps[-1].queries[0]) == ("Look at its moons", "look at its moons Mercury")


# -- a plan that a person edits ----------------------------------------------------------------------------------------


def test_an_edited_plan_keeps_what_was_not_edited() -> None:
    assert from_yaml(as_yaml(PLAN), PLAN) is PLAN
    text = as_yaml(PLAN).replace("title: Effects", "title: Sizes").replace("step_id: 1", "step_id: '1'")
    changed = from_yaml(text, PLAN)
    assert [step.title for step in changed.steps] == ["Causes", "Sizes"]
    assert (changed.steps[0].step_id, changed.steps[0].tools, changed.steps[1].depends_on) == (1, ["fetch"], [1])
    wanted = PLAN.model_copy(update={"preferences": ReportPreferences(reader="sailors", depth=Depth.brief)})
    other = from_yaml(as_yaml(wanted).replace("language: ''", "language: German").replace("sailors", "''"), wanted)
    assert other == PLAN.model_copy(update={"preferences": ReportPreferences(language="German", depth=Depth.brief)})


@pytest.mark.parametrize(("place", "titles"), [("0.5", ["Effects", "Causes"]), ("²", ["Causes", "Effects"])])
def test_steps_of_a_form_have_the_order_of_their_numbers(place: str, titles: list[str]) -> None:
    form = FormData({"title-0": "Causes", "place-0": "1", "title-1": "Effects", "place-1": place})
    assert [step.title for step in plan_of(form, PLAN).steps] == titles


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("plan_title: [", "not YAML"),
        ("", "valid dictionary"),
        ("plan_title: x\nsteps: []", "at least 1"),
        (
            "plan_title: x\nsteps: [{step_id: 1, title: a, description: b, colour: red}]",
            "step 1: colour is no field of a step",
        ),
        ("plan_title: x\nsteps: [{step_id: 1, title: a, description: b, queries: [one]}]", "one-word query"),
        ("preferences: {depth: deep}", "preferences, depth: .*'brief' or 'thorough'"),
        ("preferences: {tone: dry}", "preferences: tone is no field of a plan; its fields are reader, words"),
        ("plan_title: x\nsteps: [{step_id: 1, title: a, description: b, depends_on: [7]}]", "step 7, which the plan"),
        ("plan_title: x\nsteps: [{step_id: 1, title: a, description: b, depends_on: [1]}]", "in a circle"),
        ("plan_title: x\nsteps: [" + "{step_id: 1, title: a, description: b}, " * 2 + "]", "used twice"),
        ("plan_title: x\nsteps: [" + "{step_id: 1, title: a, description: b}, " * 11 + "]", "at most 10"),
    ],
)
def test_an_edited_plan_keeps_the_rules(text: str, complaint: str) -> None:
    with pytest.raises(InvalidInput, match=complaint):
        from_yaml(text, PLAN)


def test_waiting_for_a_person_is_no_work() -> None:
    now = [0.0]
    ledger = Ledger(Budget(max_seconds=60), ArtifactStore("memory://waiting"), "ledger", clock=lambda: now[0])
    now[0] = 10
    with ledger.resting():
        now[0] = 5_000
    now[0] = 5_001
    assert (ledger.seconds, ledger.rested) == (11, 4_990)
    assert ledger.seconds_left(research=False) == 49


# -- runs that wait ----------------------------------------------------------------------------------------------------

on_server = pytest.mark.usefixtures("prefect_server", "home")


async def waits(query: str, matter: Matter, number: int = 1, *, other_than: str = "") -> Waiting:
    """Wait until the run of a query asks about a matter."""
    named = FlowRunFilter(name=FlowRunFilterName(any_=[query]))
    async with get_client() as client, asyncio.timeout(120):
        while True:
            for found in await client.read_flow_runs(flow_run_filter=named):
                if answering.key_of(found.state) not in ("", other_than):
                    asked = await answering.waiting(found.id)
                    if (asked.asked.matter, asked.asked.number) == (matter, number):
                        return asked
            await asyncio.sleep(0.1)


async def until(run_id: UUID, *names: str) -> FlowRun:
    """Wait until a run is in one of some states."""
    async with get_client() as client, asyncio.timeout(120):
        while (found := await client.read_flow_run(run_id)).state_name not in names:  # noqa: ASYNC110 - no event
            await asyncio.sleep(0.1)
    return found


async def submitted(pool: str, query: str, store: Path, **settings: Any) -> UUID:
    """Schedule a run on a pool of its own."""
    deployment = await deploy(pool, deep_research, pool=pool)
    chosen = {"model": "openai/stub", "artifacts": str(store), **QUICK, **settings}
    async with get_client() as client:
        run = await client.create_flow_run_from_deployment(
            deployment, parameters={"query": query, "settings": chosen}, state=Scheduled()
        )
    return run.id


@on_server
async def test_the_first_answer_counts_and_a_replay_takes_it(
    providers: Stubs, tmp_path: Path, prefect_server: PrefectServer
) -> None:
    query = "How large are the tides of the seventh moon?"
    people = {"clarify": "auto", "approve": "plan"}
    running: Awaitable[RunResult] = asyncio.create_task(research(tmp_path, query, people=people, **QUICK))
    question = await waits(query, Matter.question)
    assert [found.question for found in question.asked.questions] == list(ASK_BACK)
    with asking(prefect_server.api_url) as api:
        refused = api.post(f"/flow_runs/{question.run_id}/resume", json={"run_input": {"answer_1": 7}})
        assert (refused.status_code, refused.json()["status"]) == (200, "REJECT")
    await answering.answer(question, Reply(answers=["since 1900", "worldwide"], by="Ada"))
    with pytest.raises(InvalidInput, match="no longer waits for this answer"):
        await answering.answer(question, Reply(answers=["never", "nowhere"], by="Bob"))

    first = await waits(query, Matter.plan)
    with pytest.raises(InvalidInput, match="no longer waits for this answer"):
        await answering.answer(question, Reply(answers=["never", "nowhere"], by="Bob"))
    await answering.answer(first, Reply(remark="the costs as well", by="Ada"))
    second = await waits(query, Matter.plan, 2)
    assert second.asked.plan and "costs as well" in second.asked.plan.steps[-1].title
    alone = second.asked.plan.model_copy(update={"steps": second.asked.plan.steps[:1]})
    await answering.answer(second, Reply(plan=alone, by="Ada"))
    result = await running

    kept = Plan.model_validate_json(Path(result.artifacts, "plan.json").read_bytes())
    assert [step.title for step in kept.steps] == [alone.steps[0].title]
    assert [(said.answer, said.by) for said in kept.clarifications] == [("since 1900", "Ada"), ("worldwide", "Ada")]
    assert [len(providers.calls(role)) for role in ("clarifier", "planner")] == [1, 2]
    asked = len(providers.requests)
    store = ArtifactStore(str(tmp_path))
    assert {file.state for file in await replay((await runs(store))[0])} == {"same"}
    assert len(providers.requests) == asked


SAID: dict[str, Any] = {
    "goals": ["How high the tides are"],
    "constraints": {"timeframe": "since 1900", "scope": None, "excludes": []},
    "preferences": {"reader": "sailors", "words": 300, "language": None, "depth": "shallow"},
}


@on_server
async def test_a_plan_that_takes_most_of_the_budget_is_shown_with_what_the_report_is_to_be_like(
    providers: Stubs, tmp_path: Path
) -> None:
    query = "How large are the tides of the twelfth moon?"
    providers.settings.ask_back, providers.settings.judged = {}, SAID
    running = asyncio.create_task(
        research(
            tmp_path,
            query,
            people={"clarify": "auto"},
            budget={"max_calls": 16},
            report={"judge": "always"},
            **QUICK,
        )
    )
    waiting = await waits(query, Matter.plan)
    plan = waiting.asked.plan
    assert plan and waiting.asked.optional and "of 16 allowed model calls" in waiting.complaint
    told = answering.described(waiting.asked, waiting.complaint)
    assert all(said in told for said in ("high the tides", "since 1900", "reader: sailors", "about 300 words", "usual"))
    german = plan.preferences.model_copy(update={"language": "German"})
    await answering.answer(waiting, Reply(plan=plan.model_copy(update={"preferences": german}), by="Ada"))
    result = await running
    kept = Plan.model_validate_json(Path(result.artifacts, "plan.json").read_bytes())
    assert (kept.preferences, kept.goals, kept.constraints.timeframe) == (german, SAID["goals"], "since 1900")
    written = [str(call.body) for role in ("outline", "section") for call in providers.calls(role)]
    assert all("- reader: sailors" in said and "- language: German" in said for said in written)
    assert "of about 300 words" in written[0]
    store = ArtifactStore(str(tmp_path))
    assert {file.state for file in await replay((await runs(store))[0])} == {"same"}


async def test_a_plan_of_too_many_steps_is_sent_back_and_what_is_left_out_is_said(
    providers: Stubs, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    providers.settings.steps = 5  # of at most three
    result = await investigated(tmp_path, budget={"max_calls": 16}, report={"judge": "always"}, **QUICK)
    first, again = (str(call.body) for call in providers.calls("planner"))
    assert "The plan has 5 steps; at most 3 are allowed" in again and "5 steps" not in first
    kept = Plan.model_validate_json(Path(result.artifacts, "plan.json").read_bytes())
    assert (len(kept.steps), len(kept.left_out)) == (3, 2)
    assert kept.left_out[0] in Path(result.artifacts, "report.md").read_text()
    assert "of 16 allowed model calls" in caplog.text  # and nobody is asked


def test_a_title_in_the_wanted_language_needs_no_word_of_the_question() -> None:
    wanted = PLAN.model_copy(update={"preferences": ReportPreferences(language="German")})
    answer = OutlineAnswer(title="Gezeiten", sections=[OutlinedSection(heading="Ursachen", focus="")])
    request = OutlineRequest(query="What are tides, in German?", today="2026-11-23", plan=wanted, notes=[])
    assert OUTLINE.normalize(request, answer).title == "Gezeiten"
    assert OUTLINE.normalize(request.model_copy(update={"plan": PLAN}), answer).title == request.query


@on_server
async def test_a_suspended_run_holds_no_slot_and_goes_on_when_it_is_answered(providers: Stubs, tmp_path: Path) -> None:
    query = "How large are the tides of the eighth moon?"
    run_id = await submitted(
        "suspended", query, tmp_path, people={"clarify": "auto", "approve": "plan", "wait_minutes": 0}
    )
    with serving(Worker("suspended", limit=1)):
        question = await waits(query, Matter.question)
        assert (await until(run_id, "Suspended")).state_type is StateType.PAUSED
        old = await survey(ArtifactStore(str(tmp_path)), datetime.now(UTC) + timedelta(days=1))
        assert not old.runs and "waits for an answer" in old.kept[0].reason
        other = await submitted("suspended", "What else is there?", tmp_path, people={"wait_minutes": 0})
        await until(other, "Completed")  # in the only slot
        await answering.answer(question, Reply(answers=list(ASK_BACK.values()), by="Ada"))
        broken = await waits(query, Matter.plan)
        async with get_client() as client:  # as the form in the UI sends it, which cannot check a plan
            await client.resume_flow_run(run_id, {"plan": "plan_title: x\nsteps: []"})
        await until(run_id, "Running", "Scheduled", "Pending")
        again = await waits(query, Matter.plan)
        assert again.key != broken.key and "at least 1 item" in again.complaint
        await answering.answer(again, Reply(by="Ada"))
        await until(run_id, "Completed")
    assert len(providers.calls("clarifier")) == 1
    assert len([call for call in providers.calls("planner") if "eighth" in str(call.body)]) == 1


@on_server
async def test_a_run_of_a_deployment_waits_in_its_process_for_a_while(providers: Stubs, tmp_path: Path) -> None:
    query = "How large are the tides of the ninth moon?"
    run_id = await submitted("patient", query, tmp_path, people={"approve": "plan", "wait_minutes": 0.03})
    with serving(Worker("patient")):
        await until(run_id, "Paused")
        await until(run_id, "Suspended")
        await answering.answer(await waits(query, Matter.plan), Reply(stop=True, by="Ada"))
        ended = await until(run_id, "Cancelled")
    assert "fathom resume" in str(ended.state and ended.state.message)
    assert not providers.calls("search")


@on_server
async def test_a_run_that_was_stopped_asks_again_and_a_report_is_written_again(
    providers: Stubs, tmp_path: Path
) -> None:
    query = "How large are the tides of the tenth moon?"
    running = asyncio.create_task(research(tmp_path, query, people={"approve": "report"}, **QUICK))
    draft = await waits(query, Matter.report)
    assert draft.asked.report.startswith("# ")
    assert not list(tmp_path.rglob("report.md"))
    await answering.answer(draft, Reply(stop=True, by="Ada"))
    with pytest.raises(Abort, match="stopped by Ada"):
        await running
    asked = len(providers.requests)
    continued = asyncio.create_task(resuming.finish(await resuming.find(str(draft.run_id), str(tmp_path))))
    await answering.answer(await waits(query, Matter.report), Reply(remark="Say it in short.", by="Ada"))
    await answering.answer(await waits(query, Matter.report, 2), Reply(by="Ada"))
    result = await continued
    assert result and list(tmp_path.rglob("report.md"))
    repeated = providers.requests[asked:]
    assert {record.role for record in repeated} == {"outline", "section"}
    assert all("Say it in short." in str(record.body) for record in repeated)


# -- `fathom answer` ---------------------------------------------------------------------------------------------------


@on_server
async def test_what_waits_is_listed_shown_and_answered(
    providers: Stubs, tmp_path: Path, prefect_server: PrefectServer, fathom_cli: FathomCLI
) -> None:
    query = "How large are the tides of the eleventh moon?"
    env = {**prefect_server.env, **providers.env, "FATHOM_ARTIFACTS": str(tmp_path)}

    async def command(*arguments: str) -> tuple[int, str]:
        done = await asyncio.to_thread(fathom_cli, arguments, env)
        return done.returncode, done.stdout + done.stderr

    running = asyncio.create_task(research(tmp_path, query, people={"clarify": "always", "approve": "plan"}, **QUICK))
    run = str((await waits(query, Matter.question)).run_id)[:8]
    assert "  waiting  " in (await command("runs"))[1]
    code, shown = await command("answer", run, "--json")
    assert (code, json.loads(shown)["questions"][0]["question"]) == (0, "Which period?")
    for arguments, said in {
        ("answer", run, "--answer", "3=x"): "N from 1 to 2",
        ("answer", "ffffffff", "--accept"): "is known",
    }.items():
        code, shown = await command(*arguments)
        assert (code, said in shown) == (2, True), shown
    assert (await command("answer", run, "--answer", "2=Europe"))[0] == 0
    await waits(query, Matter.plan)
    edited = tmp_path / "plan.yaml"
    edited.write_text("plan_title: Mine\nsteps: [{step_id: 1, title: Costs, description: Find costs.}]")
    assert (await command("answer", run, "--file", str(edited)))[0] == 0
    result = await running
    assert result.plan_title == "Mine"
    code, shown = await command("answer", run)
    assert (code, "is not waiting for an answer: it is completed" in shown) == (2, True)
    kept = Plan.model_validate_json(Path(result.artifacts, "plan.json").read_bytes())
    assert [said.answer for said in kept.clarifications] == ["the last ten years", "Europe"]


@on_server
async def test_an_answer_to_a_run_that_is_gone_says_so() -> None:
    with pytest.raises(RunNotFound):
        await answering.waiting(UUID(int=7))


# -- processes that are killed -----------------------------------------------------------------------------------------


@pytest.fixture
def env(providers: Stubs, prefect_server: PrefectServer, home: Path, tmp_path: Path) -> dict[str, str]:
    """A process's environment: the session's server, the stubs, an empty home."""
    own = {"HOME": str(home), "FATHOM_ARTIFACTS": str(tmp_path / "store")}
    return {**base_env(), **prefect_server.env, **providers.env, **own}


async def test_a_run_that_is_killed_while_it_waits_and_when_it_was_answered_repeats_nothing(
    providers: Stubs, env: dict[str, str], forked: Forked
) -> None:
    query = "How large are the tides of the twelfth moon?"
    asks = (
        "--clarify",
        "auto",
        "--approve",
        "plan",
        "--model",
        "openai/stub",
        "--profile",
        "quick",
        "--fresh",
        "--json",
    )
    process = forked(env, "research", query, *asks)
    question = await waits(query, Matter.question)
    process.kill()
    process.wait()
    run = str(question.run_id)
    assert (await answering.waiting(question.run_id)).gone
    process = forked(env, "resume", run, "--json")
    again = await waits(query, Matter.question, other_than=question.key)
    assert again.asked == question.asked
    await answering.answer(again, Reply(answers=["since 1900", "worldwide"], by="Ada"))
    process.kill()  # before it can look for the answer
    process.wait()
    process = forked(env, "resume", run, "--json")
    waiting = await waits(query, Matter.plan)
    await answering.answer(waiting, Reply(by="Ada"))
    result = RunResult.model_validate(await asyncio.to_thread(finish, process))
    kept = Plan.model_validate_json(Path(result.artifacts, "plan.json").read_bytes())
    assert [said.answer for said in kept.clarifications] == ["since 1900", "worldwide"]
    prints = [record.fingerprint for record in providers.requests if record.kind != "models"]
    assert len(prints) == len(set(prints))


async def test_a_worker_that_is_killed_while_a_run_is_suspended_leaves_it_to_be_asked_once(
    providers: Stubs, env: dict[str, str], forked: Forked, tmp_path: Path
) -> None:
    query = "How large are the tides of the thirteenth moon?"
    people = {"clarify": "auto", "wait_minutes": 0}
    run_id = await submitted("killed", query, tmp_path / "store", people=people)
    worker = forked(env, "worker", "--pool", "killed")
    while not [*tmp_path.glob("store/.results/*/model_call-*")]:  # noqa: ASYNC110 - another process stores it
        await asyncio.sleep(0.01)
    worker.kill()
    worker.wait()
    async with get_client() as client:
        await recover(client, "killed")
    with serving(Worker("killed")):
        await answering.answer(await waits(query, Matter.question), Reply(answers=list(ASK_BACK.values()), by="Ada"))
        await until(run_id, "Completed")
    prints = [record.fingerprint for record in providers.requests if record.kind != "models"]
    assert len(prints) == len(set(prints))


# -- in a terminal -----------------------------------------------------------------------------------------------------


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], None]]:
    """A terminal as this process's input, and a function that types into it."""
    keyboard, line = pty.openpty()
    with os.fdopen(keyboard, "w") as typed, os.fdopen(line) as screen:
        monkeypatch.setattr("sys.stdin", screen)
        yield lambda text: print(text, file=typed, end="", flush=True)


async def test_a_plan_is_edited_until_it_can_be_used(
    terminal: Callable[[str], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    editor, good = tmp_path / "editor", tmp_path / "good.yaml"
    good.write_text(as_yaml(PLAN).replace("title: Effects", "title: Sizes"))
    editor.write_text(
        f'#!/bin/sh\ngrep -q "step_id: b" "$1" && sed -i "s/step_id: b/step_id: 1/" "$1" || cp {good} "$1"'
    )
    editor.chmod(0o755)
    monkeypatch.setenv("EDITOR", str(editor))
    shown = StringIO()
    ask = Dialogue(lambda: nullcontext(Console(file=shown, width=100)))
    asked = Asked(matter=Matter.plan, query="Tides?", plan=PLAN)
    terminal("e\n")
    talk = asyncio.create_task(ask(asked))
    while "used twice" not in shown.getvalue():  # noqa: ASYNC110 - the screen tells nobody
        await asyncio.sleep(0.02)
    terminal("\n")
    while "Sizes" not in shown.getvalue():  # noqa: ASYNC110 - the screen tells nobody
        await asyncio.sleep(0.02)
    terminal("leave out the causes\n")
    reply = await talk
    assert reply and reply.plan and [step.title for step in reply.plan.steps] == ["Causes", "Sizes"]
    assert (reply.remark, reply.stop) == ("leave out the causes", False)


async def test_who_is_asked_may_be_interrupted_or_leave(terminal: Callable[[str], None]) -> None:
    shown = StringIO()
    ask = Dialogue(lambda: nullcontext(Console(file=shown, width=100)))
    asked = Asked(matter=Matter.question, query="Tides?", questions=[OpenQuestion(question="When?", default="now")])
    talk = asyncio.create_task(ask(asked))
    await asyncio.sleep(0)
    talk.cancel()
    await asyncio.wait([talk])
    assert talk.cancelled() and "No longer asked." in shown.getvalue()
    terminal("\n")
    reply = await ask(asked)
    assert reply and reply.answers == ["now"]
    terminal("\x04")
    assert await ask(asked) is None

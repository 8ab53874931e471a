"""A word to a run that is going on: taken up or refused, recorded, and the same after a kill and in a replay."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from fathom.errors import InvalidInput
from fathom.flows.runs.steering import check_author, check_remark, say
from fathom.models import Ending, RunResult
from fathom.run.engine import Engine
from fathom.storage.steering import Steer, Steering, SteeringEntry
from fathom.storage.store import ArtifactStore, RunFolder
from fathom.tasks.people import hear
from tests.conftest import FathomCLI, Forked, PrefectServer, base_env
from tests.inprocess import QUERY, investigated
from tests.processes import Kills, finish, flow_runs
from tests.stubs import Stubs
from tests.stubs.reading import Prompt

REMARK = "look at the 2025 figures too"


@pytest.fixture
def slow(providers: Stubs) -> Stubs:
    """The providers, slow enough to be told something meanwhile."""
    providers.settings.llm_delay = 0.15
    providers.settings.breadth, providers.settings.page_bytes = 1, 2_000
    return providers


async def told(providers: Stubs, root: Path, kind: Steer, text: str = "", **settings: Any) -> RunResult:
    """Research, and say something to the run while its first note is written."""
    providers.settings.held = "compressor"
    run = asyncio.create_task(investigated(root, **settings))
    await asyncio.to_thread(lambda: providers.wait_for(1, "compressor", ended=False))
    (folder,) = (root / "research_artifacts").iterdir()
    await asyncio.to_thread(say, folder.name, kind, text, "ann", str(root))
    providers.settings.held = ""
    return await run


@pytest.mark.parametrize("profile", ["quick", "standard"])
async def test_a_remark_has_a_round_of_its_own_and_is_on_record(slow: Stubs, tmp_path: Path, profile: str) -> None:
    slow.settings.score = 9  # the evidence would suffice without it
    result = await told(slow, tmp_path, Steer.tell, REMARK, profile=profile)
    assert result.status is Ending.complete, result.reason
    first, *_ = slow.calls("critic")
    assert f"- {REMARK}" in Prompt(first.body).user
    folder = Path(result.artifacts)
    plan = json.loads((folder / "plan.json").read_text())
    assert [(step["step_id"], step["status"]) for step in plan["steps"][-2:]] == [("R2_1", "done"), ("R2_2", "done")]
    assert [(remark["text"], remark["author"]) for remark in plan["remarks"]] == [(REMARK, "ann")]
    events = [json.loads(line) for line in (folder / "audit.jsonl").read_text().splitlines()]
    (event,) = [event for event in events if event["type"] == "steered"]
    assert (event["actor"], event["action"], event["details"]["author"]) == ("user", REMARK, "ann")
    assert f"UTC: {REMARK}" in Path(str(result.report)).read_text()
    with pytest.raises(InvalidInput, match="ended its research"):
        await asyncio.to_thread(say, folder.name, Steer.tell, "more", "ann", str(tmp_path))


@pytest.mark.parametrize("profile", ["quick", "standard"])  # whose first round is the last one, and is not
async def test_a_remark_is_taken_back_until_the_run_takes_it_up(
    slow: Stubs, tmp_path: Path, fathom_cli: FathomCLI, profile: str
) -> None:
    slow.settings.held = "compressor"
    run = asyncio.create_task(investigated(tmp_path, profile=profile))
    await asyncio.to_thread(lambda: slow.wait_for(1, "compressor", ended=False))
    (folder,) = (tmp_path / "research_artifacts").iterdir()
    root = ["--artifacts", str(tmp_path)]

    def tell(*args: str) -> tuple[int, str]:
        done = fathom_cli(["tell", folder.name, *args, *root])
        return done.returncode, done.stdout + done.stderr

    for args in [(REMARK,), ("and Europe",)]:
        assert (await asyncio.to_thread(tell, *args))[0] == 0
    assert await asyncio.to_thread(tell, "--take-back") == (0, "Taken back: and Europe\n")
    slow.settings.held = "critic"
    await asyncio.to_thread(lambda: slow.wait_for(1, "critic", ended=False))
    code, said = await asyncio.to_thread(tell, "--take-back")
    slow.settings.held = ""
    assert (code, "it has taken up what it was told" in said) == (2, True)
    assert (await asyncio.to_thread(tell, "more", "--take-back"))[0] == 2
    result = await run
    prompts = [Prompt(call.body).user for call in slow.requests]
    assert any(REMARK in prompt for prompt in prompts) and not any("and Europe" in prompt for prompt in prompts)
    plan = json.loads(Path(result.artifacts, "plan.json").read_text())
    assert [remark["text"] for remark in plan["remarks"]] == [REMARK]


async def test_without_a_model_a_remark_is_a_query(tmp_path: Path) -> None:
    """It is told before the run begins, as to one that waits for a worker."""
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "lakes.md").write_text("# Lakes\n\nThe lakes of the north hold 40 cubic kilometres of water.\n")
    (docs / "ferries.md").write_text(
        "# Ferries\n\nThe ferry sails on Mondays at seven. In winter the ferry sails at nine.\n"
    )

    async def tell(engine: Engine) -> None:
        await engine.steering.add(entry(engine.start.run_id, Steer.tell, "When does the ferry sail?"))

    result = await investigated(
        tmp_path / "store", "How much water do the lakes hold?", tell, model=None, docs=[str(docs)]
    )
    steps = json.loads(Path(result.artifacts, "plan.json").read_text())["steps"]
    assert steps[-1]["queries"] == ["When does the ferry sail?"]
    assert "sails on Mondays" in Path(str(result.report)).read_text()


async def test_a_stop_ends_the_research_with_what_there_is(slow: Stubs, tmp_path: Path) -> None:
    slow.settings.suggests = False
    result = await told(slow, tmp_path, Steer.stop, execution="sequential")
    assert result.status is Ending.degraded
    assert result.reason.startswith("stopped by ann at 20")
    assert len(slow.calls("researcher")) <= 2  # one of 3 steps, and perhaps a second decision that was under way
    assert not slow.calls("critic")
    statuses = [step["status"] for step in json.loads(Path(result.artifacts, "plan.json").read_text())["steps"]]
    assert statuses == ["done", "todo", "todo"]
    assert "stopped by ann" in Path(str(result.report)).read_text()


async def test_a_stop_before_anything_was_found_is_no_report(slow: Stubs, tmp_path: Path) -> None:
    async def stop(engine: Engine) -> None:
        await engine.steering.add(entry(engine.start.run_id, Steer.stop))

    result = await investigated(tmp_path, QUERY, stop)
    assert result.status is Ending.insufficient_evidence
    assert "stopped by ann" in result.reason
    assert not slow.calls("researcher")


def entry(run_id: str, kind: Steer, text: str = "") -> SteeringEntry:
    return SteeringEntry(kind=kind, run_id=run_id, author="ann", at="2026-11-23T08:00:00+00:00", text=text)


async def test_every_remark_is_heard_or_refused(tmp_path: Path) -> None:
    """However many people speak at the moment at which the run stops listening."""
    engines: list[Engine] = []

    async def keep(engine: Engine) -> None:
        engines.append(engine)

    (tmp_path / "lake.md").write_text("# Lakes\n\nThe lake is deep.\n")
    await investigated(tmp_path, "How deep is the lake?", keep, model=None, docs=[str(tmp_path / "lake.md")])
    (engine,) = engines
    run_id = f"{engine.start.run_id}-again"
    engine.start = engine.start.model_copy(update={"run_id": run_id})
    engine.steering = Steering(engine.store, engine.start.run_key, run_id)
    await RunFolder(engine.store, "research_artifacts/p").save_json(
        "run.json", {"run_id": run_id, "run_key": engine.start.run_key, "query": QUERY}
    )

    async def tell(number: int) -> str:
        try:
            await asyncio.to_thread(say, run_id, Steer.tell, f"remark {number}", "ann", str(tmp_path))
        except InvalidInput:
            return ""
        return f"remark {number}"

    async def take_back() -> str:
        try:
            return (await asyncio.to_thread(say, run_id, Steer.back, "", "ann", str(tmp_path))).text
        except InvalidInput:
            return ""

    tellers = [asyncio.create_task(tell(number)) for number in range(12)]
    await asyncio.gather(*tellers[:7])  # more than can be taken back
    takers = [asyncio.create_task(take_back()) for _ in range(6)]
    heard = await hear.task.fn(1, 0, closing=True, more=True, _engine=engine)
    accepted = {text for text in await asyncio.gather(*tellers) if text}
    accepted -= {text for text in await asyncio.gather(*takers) if text}
    assert {remark.text for remark in heard.remarks} == accepted
    assert (await hear.task.fn(1, 0, closing=True, more=True, _engine=engine)).remarks == heard.remarks
    await asyncio.to_thread(say, run_id, Steer.stop, "", "bob", str(tmp_path))  # in the last round too
    with pytest.raises(InvalidInput, match=r"bob at .* stopped"):
        await asyncio.to_thread(say, run_id, Steer.stop, "", "ann", str(tmp_path))
    assert (await hear.task.fn(2, len(accepted), closing=True, more=False, _engine=engine)).stopped


async def test_remarks_of_another_run_with_the_same_key_are_not_heard(tmp_path: Path) -> None:
    store = ArtifactStore(str(tmp_path))
    await Steering(store, "shared", "one").add(entry("one", Steer.stop))
    other = Steering(store, "shared", "two")
    assert await other.stopped() is None
    assert await other.add(entry("two", Steer.tell, "x"))
    assert [each.run_id for each in await other.entries()] == ["two"]


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["tell", "nobody", "more"], "E5001"),
        (["tell", "nobody", "   "], "The remark is empty"),
        (["tell", "nobody", "x" * 1_001], "1,001 characters"),
        (["tell", "nobody", "more", "--as", ""], "--as takes"),
        (["stop", "nobody", "--as", "x" * 101], "--as takes"),
        (["stop", "nobody"], "E5001"),
        (["stop", "abc"], "an id needs at least 4 digits"),
    ],
)
def test_what_cannot_be_said_is_refused(fathom_cli: FathomCLI, tmp_path: Path, args: list[str], said: str) -> None:
    done = fathom_cli([*args, "--artifacts", str(tmp_path)])
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr


def test_a_remark_is_one_line_without_controls_and_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "local-9f8e7d6c5b4a")
    text = check_remark("look at \x1b[31m2025\n\nwith local-9f8e7d6c5b4a\u202e")
    assert text == "look at [31m2025 with ***"
    assert "@" in check_author(None)
    assert check_author(" ann \x07") == "ann"


@pytest.fixture
def env(stubs: Stubs, prefect_server: PrefectServer, home: Path) -> dict[str, str]:
    stubs.settings.llm_delay = 0.2
    stubs.settings.steps = stubs.settings.breadth = 1
    stubs.settings.page_bytes = 2_000
    return {**base_env(), "HOME": str(home), **prefect_server.env, **stubs.env}


def test_after_a_kill_and_in_a_replay_a_run_has_heard_the_same(
    stubs: Stubs,
    env: dict[str, str],
    forked: Forked,
    prefect_server: PrefectServer,
    fathom_cli: FathomCLI,
    tmp_path: Path,
) -> None:
    root = ["--artifacts", str(tmp_path)]
    options = ["--model", "openai/stub", "--profile", "quick", "--fresh", "--quiet"]
    stubs.settings.held = "compressor"
    process = forked(env, "research", QUERY, *options, *root)
    kills = Kills(stubs)
    stubs.wait_for(1, "compressor", ended=False)
    run_id = flow_runs(prefect_server.api_url)[0]["id"]
    done = fathom_cli(["tell", run_id[:8], REMARK, "--as", "ann", "--json", *root])
    stubs.settings.held = ""
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["running"] is True
    stubs.wait_for(1, "critic")
    kills.after(len(stubs.requests), process.kill)
    process.communicate()
    late = fathom_cli(["tell", run_id[:8], "and Europe", *root])
    assert late.returncode == 2
    assert "takes up no further remark" in late.stderr
    result = finish(forked(env, "resume", run_id, "--json", "--quiet", *root))
    assert result["status"] == "complete"
    assert kills.repeated() == []
    assert len(stubs.calls("critic")) == 1  # a quick run asks it for the remark only
    replayed = fathom_cli(["replay", run_id[:8], *root])
    assert replayed.returncode == 0, replayed.stdout + replayed.stderr
    record = json.loads(Path(result["artifacts"], "provenance.json").read_text())
    assert [each["number"] for each in record["rounds"]] == [1, 2]
    assert [remark["author"] for remark in record["plan"]["remarks"]] == ["ann"]
    over = fathom_cli(["stop", run_id[:8], *root])
    assert over.returncode == 2
    assert "has finished" in over.stderr
    from_elsewhere = forked(env, "stop", run_id[:8], "--artifacts", str(tmp_path / "other"))
    assert "has finished" in from_elsewhere.communicate()[1]

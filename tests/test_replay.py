"""A run is done again from its records alone: the same bytes, whatever went wrong in it; a missing call is named."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from fathom.config.groups import Budget, Price
from fathom.errors import ModelRejected, RecordMissing
from fathom.flows.replay import replay
from fathom.models import Plan, RunResult, StepStatus
from fathom.storage.runs import runs
from fathom.storage.store import ArtifactStore
from tests.conftest import FathomCLI
from tests.inprocess import kept, research
from tests.stubs import Stubs

RUNS_OWN = ("run.json", "result.json", "audit.jsonl", "provenance.json")  # which no replay writes

RUNS: dict[str, tuple[dict[str, Any], dict[str, list[str]]]] = {
    "parallel": ({"profile": "deep"}, {}),
    "answer": ({"mode": "answer"}, {}),
    "extractive": ({"model": "extractive"}, {}),
    "re-asked, and failed searches": (
        {},
        {"planner": ["broken_json"], "compressor": ["truncated"], "search": ["432", "ok", "432", "ok*"]},
    ),
    "a role without its model": ({}, {"critic": ["refusal*"], "outline": ["broken_json*"]}),
    "no evidence": ({"model": "extractive", "tools": ["web_search"]}, {"search": ["432*"]}),
    "out of budget": (
        {"budget": Budget(max_usd=0.05), "prices": {"openai/stub": Price(input=3, output=15)}, "profile": "deep"},
        {},
    ),
}


@pytest.fixture
def providers(providers: Stubs) -> Stubs:
    """The providers, for a small run."""
    providers.settings.steps, providers.settings.breadth, providers.settings.page_bytes = 2, 1, 2_000
    return providers


@pytest.mark.usefixtures("home", "prefect_server")
async def test_a_replay_of_prefect_s_run_gives_the_same_bytes(providers: Stubs, tmp_path: Path) -> None:
    await check_replay(await research(tmp_path), providers, tmp_path)


@pytest.mark.usefixtures("home")
@pytest.mark.parametrize("name", RUNS)
async def test_a_replay_gives_the_same_bytes_and_asks_nobody(providers: Stubs, tmp_path: Path, name: str) -> None:
    chosen, providers.settings.faults = RUNS[name]
    await check_replay(await kept(tmp_path, **chosen), providers, tmp_path)


async def check_replay(result: RunResult, providers: Stubs, tmp_path: Path) -> None:
    """Check that a run's files come out alike, without a request and without a change of the store."""
    plan = Plan.model_validate_json(Path(result.artifacts, "plan.json").read_bytes())
    assert StepStatus.in_progress not in {step.status for step in plan.steps}
    asked = len(providers.requests)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    store = ArtifactStore(str(tmp_path))
    files = await replay((await runs(store))[0])
    assert {file.name: file.state for file in files} == dict.fromkeys(left_behind(result), "same")
    assert len(providers.requests) == asked
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


@pytest.mark.usefixtures("home")
async def test_a_run_that_did_not_ask_for_a_window_is_replayed_without_one(providers: Stubs, tmp_path: Path) -> None:
    providers.settings.section = "FACT-00000000 was studied in other words than its source has [ID]."
    result = await kept(tmp_path, profile="quick")
    windows = list((tmp_path / ".results" / result.run_id).glob("window-*"))
    assert windows
    for window in windows:
        window.unlink()
    store = ArtifactStore(str(tmp_path))
    files = await replay((await runs(store))[0])
    assert {file.state for file in files} == {"same"}


@pytest.mark.usefixtures("home", "wide")
@pytest.mark.parametrize("window", [0, 6_000])
async def test_what_models_were_sent_and_answered_is_kept_and_hashed(
    providers: Stubs, tmp_path: Path, window: int
) -> None:
    """Also what a small window has left of a prompt, and a prompt that says why the first answer was of no use."""
    providers.settings.faults, providers.settings.page_bytes = {"planner": ["broken_json"]}, 9_000
    providers.settings.context_window = window
    result = await kept(tmp_path)
    data = Path(result.artifacts, "exchanges.jsonl").read_bytes()
    exchanges = [json.loads(line) for line in data.splitlines()]
    answered = [record for record in providers.calls("llm") if record.status == 200]
    assert (len(answered) < len(providers.calls("llm"))) is bool(window)
    said = [(record.body["messages"], record.answer["choices"][0]["message"]["content"]) for record in answered]
    assert sorted(json.dumps([one["prompt"], one["response"]]) for one in exchanges) == sorted(map(json.dumps, said))
    assert {"planner", "compressor", "critic", "outline", "section"} <= {one["role"] for one in exchanges}
    assert [one["at"] for one in exchanges] == sorted(one["at"] for one in exchanges)
    record = json.loads(Path(result.artifacts, "provenance.json").read_bytes())
    assert record["files"]["exchanges.jsonl"] == hashlib.sha256(data).hexdigest()
    for judged in record["rounds"]:
        assert judged["reflection"]["sufficiency_score"] == judged["sufficiency"] > 0


def left_behind(result: RunResult) -> list[str]:
    """Return the names of what a run wrote, but for what tools returned, what names the run and what has its times."""
    names = sorted(path.name for path in Path(result.artifacts).iterdir())
    return [n for n in names if "__step" not in n and n not in RUNS_OWN]


@pytest.mark.usefixtures("home")
async def test_a_missing_record_is_named(providers: Stubs, tmp_path: Path, fathom_cli: FathomCLI) -> None:
    result = await kept(tmp_path)
    done = fathom_cli(["replay", result.run_id[:8], "--artifacts", str(tmp_path), "--json"])
    assert done.returncode == 0, done.stderr
    assert {file["state"] for file in json.loads(done.stdout)} == {"same"}
    report = Path(result.artifacts, "report.md")
    report.write_text(report.read_text().replace("a", "e", 1))
    done = fathom_cli(["replay", result.run_id[:8], "--artifacts", str(tmp_path)])
    assert done.returncode == 1
    assert "different report.md" in " ".join(done.stdout.split())
    tool = next(path for path in (tmp_path / ".results" / result.run_id).iterdir() if path.name.startswith("tool-"))
    call = json.loads(json.loads(tool.read_bytes())["result"])["data"]["call"]["input"]
    tool.unlink()
    done = fathom_cli(["replay", result.run_id[:8], "--artifacts", str(tmp_path)])
    assert done.returncode == 1
    assert "E5003" in done.stderr
    assert call in done.stderr
    store = ArtifactStore(str(tmp_path))
    with pytest.raises(RecordMissing, match="record of a tool"):
        await replay((await runs(store))[0])


@pytest.mark.usefixtures("home")
async def test_a_run_that_has_not_finished_is_to_be_resumed_first(
    providers: Stubs, tmp_path: Path, fathom_cli: FathomCLI
) -> None:
    providers.settings.faults = {"section": ["401*"]}
    with pytest.raises(ModelRejected):
        await kept(tmp_path)
    [manifest] = await runs(ArtifactStore(str(tmp_path)))
    done = fathom_cli(["replay", manifest.run_id, "--artifacts", str(tmp_path)])
    assert done.returncode == 1
    advice = f"fathom resume {manifest.run_id[:8]} finishes it"
    assert done.stderr == f"fathom: E5003 The run has not finished. ({advice})\n"

"""What runs cost, by `fathom costs`: each call once, nothing unknown as zero, unfinished runs too."""

from __future__ import annotations

import asyncio
import json
import shutil
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from fathom.budget.ledger import Cost, Ledger
from fathom.config.groups import Budget
from fathom.config.inputs import parse_since
from fathom.errors import InvalidInput
from fathom.run.usage import UsageReader, unsettled_usd, use_of
from fathom.storage.lease import RESULTS, LeaseFile
from fathom.storage.store import RUNS, ArtifactStore
from fathom.telemetry.audit_events import AuditEvent, AuditType
from fathom.telemetry.audit_log import PENDING_FILE, AuditLog
from tests.conftest import ROOT, FathomCLI, PrefectServer, quiet_port
from tests.processes import asking

NOW = datetime(2026, 11, 23, 12, tzinfo=UTC)


async def begin(store: ArtifactStore, key: str, run_id: str = "") -> AuditLog:
    """Begin a run that has planned: one call of 1,000 + 100 tokens for 0.01 dollars."""
    log = AuditLog(store, f"{RESULTS}/{key}/{PENDING_FILE}")
    kind = AuditType.session_resumed if await log.exists() else AuditType.session_created
    await log.record(kind, "user", "What?", run_id=run_id or key, run_key=key)
    await answer(log, "a/large", usd=0.01)
    return log


async def answer(log: AuditLog, model: str, usd: float | None) -> None:
    tokens = {"prompt_tokens": 1_000, "cached_tokens": 400, "completion_tokens": 100}
    await log.record(AuditType.llm_called, "system", model, model=model, success=True, cost_usd=usd, **tokens)


async def end(log: AuditLog, usd: float) -> None:
    account = {"usd": usd, "tokens": 0, "calls": 0, "seconds": 12.5}
    await log.record(AuditType.session_completed, "system", "complete", metrics={"account": account})


@pytest.fixture
async def store(tmp_path: Path) -> ArtifactStore:
    """A run that ended, one of an unpriced model, and one that was killed while it waited for an answer."""
    store = ArtifactStore(str(tmp_path / "artifacts"))
    ended = await begin(store, "ended")
    await ended.settle(f"{RUNS}/ended")
    await ended.record(AuditType.llm_called, "system", "a/large", model="a/large", success=False, code="E2004")
    await end(ended, usd=0.04)  # the failed request counts at most 0.03
    unpriced = await begin(store, "unpriced")
    await unpriced.settle(f"{RUNS}/unpriced")
    await answer(unpriced, "b/own", usd=None)
    await end(unpriced, usd=0.01)

    await begin(store, "killed")  # it has no folder yet
    ledger = await Ledger.open(Budget(), store, f"{RESULTS}/killed/ledger")
    with suppress(asyncio.CancelledError):
        async with ledger.attempt(lambda _left: Cost(Decimal("0.5"), 10, 1), research=True):
            raise asyncio.CancelledError
    return store


async def test_each_call_is_counted_once(store: ArtifactStore) -> None:
    reader = UsageReader(store)
    await reader.read()
    await reader.read()
    runs = {run.run_id: run for run in reader.runs.values()}
    assert {name: (run.state, run.usd, run.unpriced) for name, run in runs.items()} == {
        "ended": ("complete", 0.01, 0),
        "unpriced": ("complete", 0.01, 1),
        "killed": ("interrupted", 0.01, 0),
    }
    assert runs["ended"].faults == {("a/large", "E2004"): 1} and runs["ended"].seconds == 12.5
    assert unsettled_usd(runs.values()) == pytest.approx(0.03 + 0.5 - 0.01)

    # Another question under the same key: its log begins with the events of the first.
    other = await begin(store, "ended", "other")
    await other.settle(f"{RUNS}/other")
    await end(other, usd=0.05)
    await LeaseFile.take(store, "killed", "killed", {})
    await reader.read()
    runs = {run.run_id: run for run in reader.runs.values()}
    assert [runs["ended"].usd, runs["other"].usd] == [0.01, 0.01]
    assert runs["killed"].state == "running"
    assert unsettled_usd(runs.values()) == pytest.approx(0.03 + 0.5 - 0.01)


async def test_runs_that_take_over_a_folder_or_leave(store: ArtifactStore) -> None:
    reader = UsageReader(store)
    await reader.read()
    again = await begin(store, "again")
    await again.settle(f"{RUNS}/again")
    await end(again, usd=0.01)
    await reader.read()
    before = {folder: run.run_id for folder, run in reader.runs.items()}
    assert before[f"{RUNS}/again"] == "again"

    # The run is pruned, and one with another key gets its folder before the next reading.
    await store.remove_all([*await store.sizes(f"{RUNS}/again"), *await store.sizes(f"{RESULTS}/again")])
    new = await begin(store, "new")
    await new.settle(f"{RUNS}/again")
    await answer(new, "a/large", usd=0.5)
    await end(new, usd=0.51)
    await store.remove_all([*await store.sizes(f"{RUNS}/ended"), *await store.sizes(f"{RESULTS}/ended")])
    await reader.read()
    assert reader.runs[f"{RUNS}/again"].usd == pytest.approx(0.51)
    assert sorted(run.run_id for run in reader.gone) == ["again", "ended"]
    assert f"{RUNS}/ended" not in reader.runs
    await reader.read()
    assert len(reader.gone) == 2 and not reader.unreadable


async def test_two_unfinished_runs_with_one_key(store: ArtifactStore) -> None:
    for run_id in ("one", "two"):
        run = await begin(store, "both", run_id)
        await run.settle(f"{RUNS}/{run_id}")
    reader = UsageReader(store)
    await reader.read()
    assert {f"{RUNS}/one", f"{RUNS}/two"} <= {*reader.runs}
    assert sum(run.usd for run in reader.runs.values() if run.run_key == "both") == pytest.approx(0.02)


def costs(cli: FathomCLI, *options: str, env: dict[str, str] | None = None) -> Any:
    done = cli(["costs", *options, "--json"], env)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_costs_are_told(fathom_cli: FathomCLI, store: ArtifactStore, prefect_server: PrefectServer) -> None:
    found = costs(fathom_cli)
    rows = {row["name"]: (row["runs"], row["unpriced_runs"], row["used"]["usd"]) for row in found["rows"]}
    assert rows == {"a/large": (3, 0, pytest.approx(0.03)), "b/own": (1, 1, 0.0)}
    assert found["total"]["runs"] == 3 and found["total"]["used"]["sent"] == 4_000
    assert found["total"]["used"]["cached"] == 1_600
    assert found["unsettled_usd"] == pytest.approx(0.52)
    shown = fathom_cli(["costs"]).stdout
    assert "price unknown: 1 run," in shown and "up to $0.5200 more" in shown
    assert [line.split()[-1] for line in shown.splitlines() if line.startswith("a/large")] == ["0.0300"]
    assert [line.split()[-2:] for line in shown.splitlines() if line.startswith("b/own")] == [["price", "unknown"]]

    days = costs(fathom_cli, "--by", "day")["rows"]
    assert [row["name"] for row in days] == [datetime.now(UTC).date().isoformat()]
    now = datetime.now(UTC).isoformat()
    assert costs(fathom_cli, "--since", now)["rows"] == []
    assert "No runs since" in fathom_cli(["costs", "--since", now]).stdout

    by = [row["name"] for row in costs(fathom_cli, "--by", "deployment", env=prefect_server.env)["rows"]]
    assert by == ["not known to Prefect"]
    alone = fathom_cli(["costs", "--by", "deployment"], {"PREFECT_SERVER_API_PORT": str(quiet_port())})
    assert alone.returncode == 2 and "--by model and --by day work without one" in alone.stderr
    week = fathom_cli(["costs", "--by", "week"])
    assert week.returncode == 2 and "'model', 'day', 'deployment'" in week.stderr


def test_a_deployment_has_its_costs(fathom_cli: FathomCLI, prefect_server: PrefectServer, tmp_path: Path) -> None:
    with asking(prefect_server.api_url) as client:
        flow = client.post("/flows/", json={"name": "costs"}).json()["id"]
        deployment = client.post("/deployments/", json={"name": "nightly", "flow_id": flow}).json()["id"]
        started = client.post(f"/deployments/{deployment}/create_flow_run", json={}).json()["id"]
        adhoc = client.post("/flow_runs/", json={"flow_id": flow}).json()["id"]

    async def write() -> None:
        store = ArtifactStore(str(tmp_path / "artifacts"))
        for run_id in (started, adhoc):
            await end(await begin(store, run_id), usd=0.01)

    asyncio.run(write())
    found = costs(fathom_cli, "--by", "deployment", env=prefect_server.env)
    assert {row["name"]: row["runs"] for row in found["rows"]} == {"nightly": 1, "ad hoc": 1}


async def test_an_older_run_and_a_damaged_one(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "tests/stored_run", tmp_path, dirs_exist_ok=True)
    (tmp_path / RUNS / "empty").mkdir()
    (tmp_path / RUNS / "odd").mkdir()
    (tmp_path / RUNS / "odd" / "audit.jsonl").write_bytes(b"\xff{}\n")
    reader = UsageReader(ArtifactStore(str(tmp_path)))
    await reader.read()
    (run,) = reader.runs.values()
    assert (run.state, run.tools, run.models) == ("complete", {"documents": 1}, {})


@pytest.mark.parametrize(
    ("text", "since"),
    [
        ("30d", NOW - timedelta(days=30)),
        ("12h", NOW - timedelta(hours=12)),
        (" 2W", NOW - timedelta(weeks=2)),
        (" 2026-11-01 ", datetime(2026, 11, 1, tzinfo=UTC)),
        ("2026-11-01T08:00:00+02:00", datetime(2026, 11, 1, 6, tzinfo=UTC)),
    ],
)
def test_a_time_in_the_past(text: str, since: datetime) -> None:
    assert parse_since(text, NOW) == since


@pytest.mark.parametrize("text", ["", "30", "yesterday", "-3d", "2026-13-01", "2027-01-01", "99999999d", "0h"])
def test_what_is_no_time_in_the_past(text: str) -> None:
    with pytest.raises(InvalidInput, match="--since"):
        parse_since(text, NOW)


def test_the_time_of_a_step_leaves_out_the_pause_of_its_run() -> None:
    events = [
        AuditEvent(id=at, at=f"2026-11-23T{at}+00:00", type=kind, actor="system", action="", details={"step_id": 1})
        for at, kind in (
            ("10:00:00", AuditType.session_created),
            ("10:00:10", AuditType.step_started),
            ("10:00:15", AuditType.tool_called),
            ("12:00:00", AuditType.session_resumed),
            ("12:00:07", AuditType.step_completed),
        )
    ]
    assert use_of("key", events).histograms["step"].sum == 12

"""The events of a run: each has one number and comes once, whatever is killed and whoever listens."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from contextlib import aclosing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from prefect.client.schemas.objects import FlowRun, State
from prefect.states import Completed, Running

from fathom.client.shapes import EventType, RunEvent
from fathom.config.groups import Budget
from fathom.errors import StoreError
from fathom.flows.runs.finding import KnownRun
from fathom.models import Account, Ending
from fathom.service import events as feeds
from fathom.service.events import Feeds, LogReader
from fathom.storage.lease import RESULTS
from fathom.storage.runs import StoredRun
from fathom.storage.store import ArtifactStore
from fathom.telemetry.audit_events import AuditType, ChainedEvent, events_in
from fathom.telemetry.audit_log import AUDIT_FILE, PENDING_FILE, AuditLog
from fathom.telemetry.progress import Event, doing, listen, live_path, phase, publish, read_live, showing
from tests.conftest import ROOT
from tests.test_audit import FOLDER, PENDING, RECORDER

KEY = "key"


@pytest.fixture(params=["local", "s3"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> ArtifactStore:
    return ArtifactStore(str(tmp_path) if request.param == "local" else request.getfixturevalue("moto_s3").url)


def actions(data: bytes) -> list[str]:
    return [event.action for event in events_in(data, ChainedEvent)]


async def test_numbers_stay_when_the_log_moves_and_a_process_is_killed_on_the_way(store: ArtifactStore) -> None:
    path = f"{FOLDER}/{AUDIT_FILE}"
    reader = LogReader(store, KEY, KEY)
    assert await reader.new() == []
    first = AuditLog(store, PENDING)
    for number in range(4):
        await first.record(
            AuditType.session_created if number == 0 else AuditType.steered, "user", f"{number}", author="a"
        )
    await store.append(PENDING, b'{"id":"half a li', at=len(await store.read(PENDING)))
    told = await reader.new()
    assert [event.id for event in told] == [1, 2, 3, 4], "half a line is not there yet"
    # The log is being moved to the folder when the process is killed: two lines and a half are there.
    await first.settle("elsewhere")
    lines = (await store.read(f"elsewhere/{AUDIT_FILE}")).splitlines(keepends=True)
    await store.write(path, b"".join(lines[:2]) + lines[2][:9])
    late = LogReader(store, KEY, KEY, FOLDER)
    seen = await late.new()
    assert [event.id for event in seen] == [1, 2]
    second = AuditLog(store, PENDING)
    await second.record(AuditType.session_resumed, "user", "resumed")
    await second.settle(FOLDER)
    await second.record(AuditType.steered, "user", "last", author="a")
    known = LogReader(store, KEY, KEY, FOLDER)
    whole = await known.new()
    reader._folder = FOLDER  # as if the run's record of it were there
    told += await reader.new()
    seen += await late.new()
    assert told == seen == whole
    assert [event.id for event in whole] == list(range(1, len(whole) + 1))
    assert [event.message for event in whole if event.type is EventType.error], "the cut is an event too"
    assert len(whole) == len(actions(await store.read(path)))
    assert await reader.new() == []


def test_whoever_follows_while_processes_are_killed_has_each_line_once(tmp_path: Path) -> None:
    store = ArtifactStore(str(tmp_path))
    reader = LogReader(store, KEY, KEY, FOLDER)
    told: list[RunEvent] = []
    for _ in range(2):
        child = subprocess.Popen([sys.executable, "-c", RECORDER, str(tmp_path)], cwd=ROOT, stdout=subprocess.PIPE)
        assert child.stdout
        for _ in range(40):
            child.stdout.readline()
            told += asyncio.run(reader.new())
        child.kill()
        child.wait()
        child.stdout.close()
    asyncio.run(AuditLog(store, PENDING).settle(FOLDER))
    told += asyncio.run(reader.new())
    written = events_in((tmp_path / FOLDER / AUDIT_FILE).read_bytes(), ChainedEvent)
    assert [event.id for event in told] == [event.seq for event in written]
    assert [event.at for event in told] == [event.at for event in written]


async def test_runs_that_share_a_key_have_events_of_their_own(tmp_path: Path) -> None:
    store = ArtifactStore(str(tmp_path))
    for run in ("a", "b"):
        log = AuditLog(store, PENDING)
        kind = AuditType.session_resumed if await log.exists() else AuditType.session_created
        await log.record(kind, "user", f"run {run}", run_id=run, models={}, tools=[])
        readers = {name: LogReader(store, name, KEY) for name in ("a", "b")}
        pending = {name: await reader.new() for name, reader in readers.items()}
        await log.settle(FOLDER)
        await log.record(AuditType.steered, "user", f"of {run}", author="x")
        for name, reader in readers.items():
            reader._folder = FOLDER
            pending[name] += await reader.new()
    assert [event.id for event in pending["a"]] == [event.id for event in pending["b"]] == [1, 2]
    assert "of b" in pending["b"][1].message


def found(store: ArtifactStore, state: Any) -> KnownRun:
    run_id = str(uuid4())
    flow_run = FlowRun(id=run_id, flow_id=uuid4(), state=state, state_type=state.type)
    return KnownRun(StoredRun(store, FOLDER, run_id, run_id), flow_run)


def without_prefect(hub: Feeds, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a test set the states of the runs that are followed, for which Prefect is asked otherwise."""

    async def as_set(run_ids: list[str]) -> dict[str, FlowRun | None]:
        return {run_id: hub._open[run_id].flow_run for run_id in run_ids}

    monkeypatch.setattr(feeds, "flow_runs", as_set)


async def test_a_slow_listener_holds_nobody_and_the_end_comes_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feeds, "LOCAL_SECONDS", 0.01)
    store = ArtifactStore(str(tmp_path))
    run, hub = found(store, Running()), Feeds(store)
    without_prefect(hub, monkeypatch)
    log = AuditLog(store, PENDING)
    await log.settle(FOLDER)
    for number in range(50):
        await log.record(AuditType.steered, "user", f"{number}", author="a")
    slow = hub.follow(run)
    assert (event := await anext(slow)) and event.id == 1

    async def listen(after: int) -> list[RunEvent]:
        async with aclosing(hub.follow(run, after)) as events:
            return [event async for event in events if event]

    listeners = [asyncio.create_task(listen(after)) for after in (0, 20, 49, 60, 10**9)]
    await asyncio.sleep(0.1)
    await log.record(AuditType.session_completed, "system", "complete", status="complete")
    ending: State[Any] = Completed(message=f"{Ending.complete.value}. Report: there", timestamp=datetime.now(UTC))
    hub._open[run.run_id].flow_run = FlowRun(flow_id=uuid4(), state=ending, state_type=ending.type)
    heard = await asyncio.wait_for(asyncio.gather(*listeners), 60)
    for after, events in zip((0, 20, 49, 60, 10**9), heard, strict=True):
        *kept, last = events
        assert [event.id for event in kept] == list(range(after + 1, 52))
        assert (last.id, last.data) == (0, {"state": "complete", "ended": True})
    rest = [event async for event in slow if event]
    assert [event.id for event in rest] == [*range(2, 52), 0], "it goes on where it was"
    await hub.aclose()


async def test_silence_is_broken_by_a_pulse_and_a_server_that_stops_ends_its_streams(tmp_path: Path) -> None:
    store = ArtifactStore(str(tmp_path))
    run, hub = found(store, Running()), Feeds(store)
    events = hub.follow(run, pulse=0.01)
    assert await anext(events) is None
    hub.close()
    assert [event async for event in events if event] == []
    await hub.aclose()


async def test_what_a_run_does_now_is_shown_and_a_failing_store_hurts_nothing(tmp_path: Path) -> None:
    store = ArtifactStore(str(tmp_path))
    heard: list[str] = []

    async def until(text: str) -> None:
        async with asyncio.timeout(60):
            while not (live := await read_live(store, KEY)) or text not in (live.phase, *live.now):  # noqa: ASYNC110 - a file
                await asyncio.sleep(0.02)

    with listen(lambda event: heard.append(event.kind)):
        async with showing(store, KEY):
            phase("planning")
            with doing("fetch: a page"):
                publish(Event("spent", spent=Account(usd=0.5, tokens=7, calls=1, seconds=2), caps=Budget(max_usd=2)))
                await until("fetch: a page")
            live = await read_live(store, KEY)
    assert heard == ["phase", "begin", "spent", "end"], "who listened before still hears all"
    assert live and live.phase == "planning" and live.caps["max_usd"] == 2 and live.spent and live.spent.usd == 0.5
    assert await read_live(store, KEY) is None, "a finished run does nothing"
    with pytest.raises(ValueError, match="stop"):
        async with showing(store, KEY):
            publish(Event("spent", spent=Account(usd=1, tokens=7, calls=1, seconds=2), caps=Budget()))
            raise ValueError("stop")
    left = await read_live(store, KEY)
    assert left and left.spent and (left.spent.usd, left.phase, left.now) == (1, "", [])
    await store.remove(live_path(KEY))
    (tmp_path / live_path(KEY)).mkdir()  # so that the file cannot be written
    with pytest.raises(StoreError):
        await store.write(live_path(KEY), b"")
    async with showing(store, KEY):
        phase("planning")
        await asyncio.sleep(0.05)
    assert f"{RESULTS}/{KEY}/{PENDING_FILE}" == PENDING

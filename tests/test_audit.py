"""The audit log: nothing is lost when a process is killed, and no line changes or goes unseen."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fathom.config.groups import Role
from fathom.errors import StoreError
from fathom.models import AuditHead, Ending, Metrics, RunResult
from fathom.storage.atomic import Flush
from fathom.storage.store import ArtifactStore
from fathom.telemetry.audit_events import AuditEvent, AuditType, Break, ChainedEvent, check, events_in
from fathom.telemetry.audit_log import AUDIT_FILE, AuditLog
from tests.conftest import ROOT, Bucket, FathomCLI

FOLDER = "research_artifacts/tides"
PENDING = ".results/key/audit-pending.jsonl"
PATH = f"{FOLDER}/{AUDIT_FILE}"
RECORDER = f"""
import asyncio, sys
from fathom.telemetry.audit_events import AuditType
from fathom.telemetry.audit_log import AuditLog
from fathom.storage.store import ArtifactStore

async def work(log):
    while True:
        print(await log.record(AuditType.tool_called, "system", "search", text="x" * 2_000), flush=True)

async def main():
    log = AuditLog(ArtifactStore(sys.argv[1]), {PENDING!r})
    print(await log.record(AuditType.session_resumed, "user", "go on"), flush=True)
    await log.settle({FOLDER!r})
    await asyncio.gather(*(work(log) for _ in range(30)))

asyncio.run(main())
"""


class CountingStore(ArtifactStore):
    """A store that counts how often it is asked to write."""

    writes = 0

    async def append(self, path: str, data: bytes, at: int) -> None:
        self.writes += 1
        await super().append(path, data, at)

    async def write(self, path: str, data: bytes, *, flush: Flush = Flush.everything) -> None:
        self.writes += 1  # on S3 each append is one as well
        await super().write(path, data, flush=flush)


@pytest.fixture(params=["local", "s3"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> CountingStore:
    return CountingStore(str(tmp_path) if request.param == "local" else request.getfixturevalue("moto_s3").url)


async def begin(store: ArtifactStore, **options: Any) -> AuditLog:
    log = AuditLog(store, PENDING, **options)
    await log.record(
        AuditType.session_created, "user", "asked\n a question", query="Wie entstehen Gezeiten? \ud800", n=1
    )
    return log


async def read(store: ArtifactStore, path: str = PATH) -> list[ChainedEvent]:
    return events_in(await store.read(path), ChainedEvent)


async def tear(store: ArtifactStore, path: str, half: bytes) -> None:
    """Leave what a process leaves that is killed while it appends."""
    await store.append(path, half, at=len(await store.read(path)))


async def test_events_are_kept_in_order_chained_and_under_their_parents(store: CountingStore) -> None:
    told: list[AuditEvent] = []
    log = await begin(store, log=told.append)
    assert log.head is None
    with log.under(await log.record(AuditType.plan_generated, Role.planner, "planned 2 steps")):
        await log.settle(FOLDER)

        async def step(number: int) -> None:
            with log.under(await log.record(AuditType.step_started, "system", f"step {number}")):
                await asyncio.sleep(0)
                await log.record(
                    AuditType.tool_called, Role.researcher, f"searched for step {number}", results=[1.5, None]
                )

        await asyncio.gather(*map(step, range(30)))
    await log.record(AuditType.session_completed, "system", "complete", type="any name", action={"may": "be used"})
    data = await store.read(PATH)
    assert check(data, log.head) is None
    events = await read(store)
    assert [event.seq for event in events] == list(range(1, 64))
    assert {event.id for event in told} == {event.id for event in events}
    actions = {event.id: event.action for event in events}
    assert actions[events[0].id] == "asked a question"
    for event in events:
        if event.type is AuditType.tool_called:
            assert event.parent is not None
            assert actions[event.parent] == event.action.replace("searched for ", "")
    assert (events[0].parent, events[-1].parent) == (None, None)
    assert events[-1].details == {"type": "any name", "action": {"may": "be used"}}
    assert store.writes < 2 * 63 / 3, "what waits together is written together"


async def test_a_resumed_run_goes_on_where_a_killed_process_stopped(store: ArtifactStore) -> None:
    first = await begin(store)
    await first.record(AuditType.plan_generated, Role.planner, "planned")
    await tear(store, PENDING, b'{"id":"torn')
    second = AuditLog(store, PENDING)
    resumed = await second.record(AuditType.session_resumed, "user", "resumed")
    await second.settle(FOLDER)
    await second.record(AuditType.step_started, "system", "step 1")
    await tear(store, PATH, b'{"action":"half a li')
    third = AuditLog(store, PENDING)
    await third.record(AuditType.session_resumed, "user", "resumed again")
    await third.settle(FOLDER)
    assert await third.record(AuditType.step_started, "system", "step 1") == (await read(store))[4].id, "computed again"
    events = await read(store)
    cut = "cut off a line that a killed process had not finished"
    assert [event.action for event in events] == [
        "asked a question", "planned", cut, "resumed", "step 1", cut, "resumed again"
    ]  # fmt: skip
    assert events[3].id == resumed
    assert check(await store.read(PATH), third.head) is None


async def test_a_torn_line_is_cut_off_and_that_is_recorded(store: ArtifactStore) -> None:
    log = await begin(store)
    await log.settle(FOLDER)
    whole = await store.read(PATH)
    await tear(store, PATH, whole[:-1])
    broken = check(await store.read(PATH))
    assert broken is not None
    assert broken.line == 2
    resumed = AuditLog(store, PENDING)
    await resumed.settle(FOLDER)
    data = await store.read(PATH)
    assert data.startswith(whole)
    assert check(data, resumed.head) is None
    cut = (await read(store))[-1]
    assert (cut.type, cut.details) == (AuditType.error_occurred, {"file": PATH, "bytes": len(whole) - 1})


def test_a_killed_process_loses_nothing_that_it_had_reported(tmp_path: Path) -> None:
    """Three processes after each other, each killed while thirty tasks record; each goes on where the last one was."""
    reported: list[str] = []
    for pause in (0.0, 0.05, 0.15):
        child = subprocess.Popen([sys.executable, "-c", RECORDER, str(tmp_path)], cwd=ROOT, stdout=subprocess.PIPE)
        assert child.stdout
        reported += [child.stdout.readline().decode().strip() for _ in range(20)]
        time.sleep(pause)
        child.kill()
        reported += child.stdout.read().decode().split("\n")[:-1]
        child.wait()
        child.stdout.close()
    log = AuditLog(ArtifactStore(str(tmp_path)), PENDING)
    asyncio.run(log.settle(FOLDER))
    data = (tmp_path / PATH).read_bytes()
    assert check(data, log.head) is None
    ids = [event.id for event in events_in(data, ChainedEvent)]
    assert len(ids) == len(set(ids))
    assert set(reported) <= set(ids)


async def test_an_event_that_could_not_be_written_is_written_with_the_next(tmp_path: Path) -> None:
    store = ArtifactStore(str(tmp_path))
    log = await begin(store)
    await log.settle(FOLDER)
    path = tmp_path / PATH
    kept = path.read_bytes()
    path.unlink()
    path.mkdir()
    with pytest.raises(StoreError):
        await log.record(AuditType.step_started, "system", "lost?")
    path.rmdir()
    path.write_bytes(kept)
    await log.record(AuditType.step_completed, "system", "step 1")
    assert [event.action for event in await read(store)][1:] == ["lost?", "step 1"]
    assert check(path.read_bytes(), log.head) is None


async def test_a_cancelled_task_leaves_no_half_event(tmp_path: Path) -> None:
    store = ArtifactStore(str(tmp_path))
    log = await begin(store)
    await log.settle(FOLDER)
    for pause in range(40):
        task = asyncio.create_task(log.record(AuditType.tool_called, Role.researcher, "search", text="x" * 10_000))
        await asyncio.sleep(pause / 20_000)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    await log.record(AuditType.session_completed, "system", "cancelled")
    assert check(await store.read(PATH), log.head) is None


def chain(count: int = 12) -> tuple[bytes, AuditHead]:
    """Return a log and its head."""

    async def write(root: str) -> tuple[bytes, AuditHead]:
        store = ArtifactStore(root)
        log = await begin(store)
        await log.settle(FOLDER)
        for n in range(count - 1):
            await log.record(AuditType.tool_called, Role.researcher, f"searched „Ebbe“ {n}", cost=0.25, found=[n, "a"])
        assert log.head
        return await store.read(PATH), log.head

    from tempfile import TemporaryDirectory

    with TemporaryDirectory() as root:
        return asyncio.run(write(root))


LOG, HEAD = chain()
LINES = LOG.splitlines(keepends=True)


def test_a_whole_log_is_whole() -> None:
    assert check(LOG, HEAD) is None
    assert check(LOG) is None
    assert check(b"") is None
    assert check(b"", HEAD) == Break(line=1, problem="the log ends here, but had 12 events when the run ended")


@given(st.integers(0, len(LOG) - 1), st.integers(0, 255))
def test_any_changed_byte_is_found(position: int, byte: int) -> None:
    changed = LOG[:position] + bytes([byte]) + LOG[position + 1 :]
    broken = check(changed, HEAD)
    assert (broken is None) == (changed == LOG)
    if broken:
        assert broken.line == LOG.count(b"\n", 0, position) + 1


@given(st.integers(0, len(LOG)), st.binary(min_size=1, max_size=5))
def test_any_inserted_bytes_are_found(position: int, added: bytes) -> None:
    assert check(LOG[:position] + added + LOG[position:], HEAD)


@given(st.integers(0, len(LOG) - 1), st.integers(1, len(LOG)))
def test_any_removed_bytes_are_found(position: int, count: int) -> None:
    assert check(LOG[:position] + LOG[position + count :], HEAD)


@given(st.permutations(LINES), st.integers(0, len(LINES)))
def test_any_moved_or_removed_lines_are_found(lines: list[bytes], kept: int) -> None:
    broken = check(b"".join(lines[:kept]), HEAD)
    assert (broken is None) == (lines[:kept] == LINES)
    same = next((n for n, line in enumerate(lines[:kept]) if line != LINES[n]), kept)
    if broken:
        assert broken.line == same + 1


@given(st.integers(0, len(LINES) - 1))
def test_a_log_written_anew_is_found_by_the_head_of_the_run(changed: int) -> None:
    """Whoever hashes a changed line and all after it anew gets another last hash."""
    import hashlib

    forged, prev = b"", "0" * 64
    for number, line in enumerate(LINES):
        event = json.loads(line) | {"prev": prev} | ({"action": "nothing"} if number == changed else {})
        event.pop("hash")
        options: Any = {"sort_keys": True, "separators": (",", ":"), "ensure_ascii": False}
        prev = hashlib.sha256(json.dumps(event, **options).encode()).hexdigest()
        forged += json.dumps(event | {"hash": prev}, **options).encode() + b"\n"
    assert check(forged) is None
    assert check(forged, HEAD) == Break(
        line=len(LINES), problem="it is not the event in the run's result: the log was rewritten"
    )


@given(st.lists(st.sampled_from([*LINES, b"\n", b"[" * 5_000, b'{"a":1e999}\n', b'{"a":"\\ud800"}\n', b"\xff\n"])))
def test_no_file_is_too_strange_to_check(lines: list[bytes]) -> None:
    data = b"".join(lines)
    assert (check(data) is None) == (lines == LINES[: len(lines)])
    events_in(data, AuditEvent)


METRICS = {name: 1 for name, field in Metrics.model_fields.items() if field.is_required()}
RESULT = RunResult(
    run_id="abcd1234", status=Ending.complete, plan_title="Tides", artifacts="", report=None, sources=[],
    metrics=Metrics.model_validate(METRICS),
)  # fmt: skip


def run_of(folder: Path, log: bytes | None, head: AuditHead | None = HEAD) -> None:
    folder.mkdir(parents=True)
    (folder / "run.json").write_text(json.dumps({"run_id": "abcd1234", "run_key": "k", "query": "Tides?"}))
    if log is not None:
        (folder / AUDIT_FILE).write_bytes(log)
    if head:
        result = RESULT.model_copy(update={"audit_head": head})
        (folder / "result.json").write_text(result.model_dump_json())


def test_the_command_shows_the_log_and_its_first_break(fathom_cli: FathomCLI, tmp_path: Path) -> None:
    run_of(tmp_path / "artifacts" / FOLDER, LOG)
    done = fathom_cli(["audit", "abcd1234"])
    assert (done.returncode, done.stderr) == (0, "")
    assert "12 events, none changed, moved or removed" in done.stdout
    assert "searched „Ebbe“ 3" in done.stdout
    shown = json.loads(fathom_cli(["audit", "tides", "--json"]).stdout)
    assert (len(shown["events"]), shown["broken"], shown["whole"]) == (12, None, True)

    (tmp_path / "artifacts" / PATH).write_bytes(b"".join(LINES[:5] + LINES[6:]))
    done = fathom_cli(["audit", "abcd1234"])
    assert done.returncode == 1
    assert "line 6: lines were moved or removed: 1 before it removed" in done.stdout
    (tmp_path / "artifacts" / PATH).unlink()
    done = fathom_cli(["audit", "abcd1234", "--json"])
    assert done.returncode == 1
    assert json.loads(done.stdout)["broken"] == {"line": 1, "problem": "there is no audit.jsonl"}


def test_the_command_reads_a_run_on_s3(fathom_cli: FathomCLI, moto_s3: Bucket) -> None:
    async def write() -> None:
        await ArtifactStore(moto_s3.url).write(f"{FOLDER}/run.json", b'{"run_id": "abcd1234"}')
        await ArtifactStore(moto_s3.url).write(PATH, LOG)

    asyncio.run(write())
    done = fathom_cli(["audit", "abcd1234", "--artifacts", moto_s3.url], moto_s3.env)
    assert done.returncode == 0, done.stderr
    assert "12 events" in done.stdout

"""The journal of a run: killed or without power at any change, a run goes on, repeats nothing, and loses nothing."""

from __future__ import annotations

import asyncio
import errno
import os
import random
import shutil
import sys
import threading
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from decimal import Decimal
from pathlib import Path

import httpx
import pytest

from fathom.budget.ledger import Cost, Ledger
from fathom.config.groups import Budget
from fathom.errors import StoreError
from fathom.evidence.verify import verify_run
from fathom.flows.runs import listing
from fathom.flows.runs.stored import find, load
from fathom.models import RunResult, RunState
from fathom.storage.atomic import AtomicFiles
from fathom.storage.journal import FileChange, changes_in
from fathom.storage.lease import RESULTS, LeaseFile
from fathom.storage.store import RESULT, ArtifactStore
from fathom.tasks.durable import outside_prefect, recorded_task, storing
from fathom.telemetry.audit_events import ChainedEvent, check, events_in
from fathom.tools.payment import SearchBudget
from tests.conftest import is_own
from tests.dying_store import Killed
from tests.failing_disk import failing, flushes
from tests.inprocess import QUERY, kept
from tests.stubs import Stubs

MOMENTS = int(os.environ.get("KILLS", "6")) * 2  # at about half, power goes too; the simulator kills at any change
SEED = int(os.environ.get("KILL_SEED", "20261126"))
RUN = "0" * 32
JOURNALS = f"{RESULTS}/{RUN}/journal"


@pytest.fixture
def small(providers: Stubs) -> Stubs:
    """Providers for a run of a dozen requests."""
    providers.settings.steps, providers.settings.breadth = 2, 1
    return providers


def dies(root: Path, dies_at: int) -> bool:
    """Let an attempt die at a change, and its machine with it at every other one; return whether it came so far."""
    with failing(root, dies_at) as disk:
        try:
            asyncio.run(attempt_at(root))  # which leaves no task of the dead process
        except BaseException as error:
            if not isinstance(error, Killed) and disk.changes <= dies_at:
                raise
        died = disk.changes > dies_at
    if died and dies_at % 2:
        disk.lose_power(random.Random(f"{SEED}-{dies_at}"))
    return died


async def attempt_at(root: Path) -> RunResult:
    asyncio.get_running_loop().set_exception_handler(lambda *_: None)  # the dead leave tasks whose end nobody heard
    return await kept(root, run_id=RUN, fresh=True)


def finished(root: Path) -> Counter[str]:
    """Return how many calls of each kind have a result that is certain: in a file or in a journal, whole."""
    journals = [path for path in (root / JOURNALS).glob("*") if path.is_file()]
    stored = {change.path for path in journals for change in changes_in(path.read_bytes())}
    names = {Path(path).name for path in stored or (root / RESULTS / RUN).glob("*-*")}
    return Counter(name.rpartition("-")[0] for name in names if name.startswith(("model_call-", "tool-")))


def left_behind(result: RunResult) -> dict[str, bytes]:
    folder = Path(result.artifacts)
    return {path.name: path.read_bytes() for path in folder.iterdir() if not is_own(path.name) and path.name[0] != "."}


def asked(stubs: Stubs) -> Counter[str]:
    tools = len(stubs.calls("search")) + len(stubs.calls("extract"))
    return Counter({"model_call": len(stubs.calls("llm")), "tool": tools})


def test_a_run_that_dies_at_any_change_repeats_nothing_and_loses_nothing(small: Stubs, tmp_path: Path) -> None:
    with failing(tmp_path / "undisturbed") as disk:
        undisturbed = asyncio.run(attempt_at(tmp_path / "undisturbed"))
    total = asked(small)
    moments = random.Random(SEED).sample(range(disk.changes), min(MOMENTS, disk.changes))
    for moment in sorted(moments):
        root = tmp_path / "killed"
        small.requests.clear()
        if not dies(root, moment):  # how many changes share a flush varies, so the last moments may not come
            assert moment > 0.9 * disk.changes
            shutil.rmtree(root)
            continue
        httpx.get(f"{small.llm_url}/models")  # answered after the providers have read what was asked before
        kept, before = finished(root), asked(small)
        result = asyncio.run(attempt_at(root))
        again = asked(small) - before
        assert again == total - kept, (moment, total, kept, again)
        opened = Ledger.open(Budget(), ArtifactStore(str(root)), f"{RESULTS}/{RUN}/ledger")
        spent = asyncio.run(opened).total
        sent = [record for record in small.calls("llm") if record.ended is not None]
        assert spent.calls >= len(sent), moment
        log = Path(result.artifacts, "audit.jsonl").read_bytes()
        assert check(log) is None, moment
        assert len({event.id for event in events_in(log, ChainedEvent)}) == log.count(b"\n")
        assert left_behind(result) == left_behind(undisturbed), moment
        files = {path.name: path.read_bytes() for path in Path(result.artifacts).iterdir() if path.name[0] != "."}
        assert verify_run(files).problems == [], moment
        assert not list((root / JOURNALS).iterdir())
        shutil.rmtree(root)


def test_what_a_power_cut_tore_is_read_as_it_will_be_restored(
    small: Stubs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listing, "find_api", lambda: None)
    with failing(tmp_path / "undisturbed") as disk:
        asyncio.run(attempt_at(tmp_path / "undisturbed"))
    torn = 0
    for moment in range(disk.changes // 2, disk.changes - 2, 9):
        root = tmp_path / f"{moment}"
        with failing(root, moment) as dying, suppress(Killed):
            asyncio.run(leased(root))
            asyncio.run(attempt_at(root))
        if dying.changes <= moment:  # it has ended before
            continue
        dying.lose_power(random.Random(f"{SEED}-{moment}"))
        left = {path.name: path.read_bytes() for path in root.glob("research_artifacts/*/*") if path.name[0] != "."}
        shown, state = asyncio.run(shown_of(root))
        asyncio.run(ArtifactStore(str(root)).open_journal(JOURNALS))
        restored = {path.name: path.read_bytes() for path in root.glob("research_artifacts/*/*") if path.name[0] != "."}
        ended = RESULT in restored  # how many changes a run makes depends a little on what happens at the same time
        assert (shown, state) == (restored, RunState.complete if ended else RunState.interrupted), moment
        torn += left != restored
    assert torn


def test_a_stored_result_that_the_disk_has_torn_is_named_and_can_be_made_again(small: Stubs, tmp_path: Path) -> None:
    asyncio.run(attempt_at(tmp_path))
    result = next((tmp_path / RESULTS / RUN).glob("model_call-*"))
    result.write_bytes(result.read_bytes()[:40])
    with pytest.raises(StoreError, match=rf"{result.name} is damaged.*remove the file, and its call is made again"):
        asyncio.run(attempt_at(tmp_path))
    result.unlink()
    small.requests.clear()
    asyncio.run(attempt_at(tmp_path))
    assert asked(small) == Counter(model_call=1)


async def leased(root: Path) -> None:
    lease = await LeaseFile.take(ArtifactStore(str(root)), RUN, RUN, {"query": QUERY})
    await lease.release()


async def shown_of(root: Path) -> tuple[dict[str, bytes], RunState]:
    """Return the files of the run as its readers see them, and its state in the list."""
    run = await find(ArtifactStore(str(root)), RUN)
    await load(run)
    listed = await listing.latest(ArtifactStore(str(root)), 5)
    return {name: await run.files.load(name) for name in await run.store.list(run.folder)}, listed[0].state


async def test_a_journal_that_a_kill_has_cut_off_is_read_to_its_last_whole_change(tmp_path: Path) -> None:
    store = ArtifactStore(str(tmp_path))
    await store.open_journal("key/journal")
    await store.append("log", b"1\n", at=0)
    await store.write("kept", b"old")
    await store.write("kept", b"new")
    await store.append("log", b"2\n", at=2)
    await store.remove("kept")
    await store.commit()
    assert (await store.read("log"), await store.exists("kept")) == (b"1\n2\n", False)
    data = (tmp_path / "key/journal/0001").read_bytes()
    whole = list(changes_in(data))
    assert whole[0] == FileChange("log", b"1\n", 0)
    for end in range(len(data)):
        found = list(changes_in(data[:end]))
        assert found == whole[: len(found)]
        assert len(found) < len(whole)
    for path in ("log", "kept"):
        (tmp_path / path).write_bytes(b"")
    later = ArtifactStore(str(tmp_path))
    await later.open_journal("key/journal")
    assert (await later.read("log"), await later.exists("kept")) == (b"1\n2\n", False)
    assert await later.list("key/journal") == ["0002"]


async def test_changes_that_come_together_are_flushed_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = ArtifactStore(str(tmp_path))
    await store.open_journal("key/journal")
    await store.write("first", b"{}")
    await store.commit()
    flushed = flushes(monkeypatch, int)
    ledgers = [await Ledger.open(Budget(), store, f"ledger-{number}") for number in range(8)]

    async def call(ledger: Ledger) -> None:
        async with ledger.attempt(lambda _left: Cost(calls=1), research=True) as attempt:
            attempt.took(Cost(calls=1))
        await store.write(f"results/{id(ledger)}", b"{}")

    await asyncio.gather(*map(call, ledgers))
    assert len(flushed) == 1, "the reservations, before the requests"
    await store.commit()
    assert len(flushed) == 2, "the settlements and the results"
    assert len(await store.list("results")) == 8


@pytest.mark.parametrize(("gather", "flushes"), [(3_600.0, False), (0.0, True)])
async def test_a_change_that_comes_during_a_flush_waits_for_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, gather: float, *, flushes: bool
) -> None:
    """It is in the journal, for a kill, and after a while on the disk and in its file, for a power cut."""
    begun, goes_on, flush = threading.Event(), threading.Event(), os.fsync

    def flushing(number: int) -> None:
        begun.set()
        goes_on.wait(60)
        flush(number)

    monkeypatch.setattr("fathom.storage.journal.GATHER_SECONDS", gather)
    store = ArtifactStore(str(tmp_path))
    await store.open_journal("key/journal")
    monkeypatch.setattr(os, "fsync", flushing)
    await store.write("first", b"{}")
    certain = asyncio.create_task(store.commit())
    await asyncio.to_thread(begun.wait, 60)
    await store.write("second", b"{}")
    await asyncio.sleep(0.1)  # those who bring it there are waiting, too
    goes_on.set()
    await certain
    [journal] = (tmp_path / "key/journal").iterdir()

    def arrived() -> bool:
        noted = [change.path for change in changes_in(journal.read_bytes())]
        return "second" in noted and (not flushes or (tmp_path / "second").exists())

    async with asyncio.timeout(60):
        while not arrived():  # noqa: ASYNC110 - a disk sends no notice
            await asyncio.sleep(0.01)
    monkeypatch.setattr(os, "fsync", flush)
    await store.close_journal()


async def test_changes_that_come_before_the_thread_begins_share_its_flush(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    goes_on = threading.Event()
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(1))
    store = ArtifactStore(str(tmp_path))
    await store.open_journal("key/journal")
    flushed = flushes(monkeypatch, int)
    busy = asyncio.create_task(asyncio.to_thread(goes_on.wait, 60))
    await asyncio.sleep(0)
    waiting = []
    for name in ("first", "second", "third"):
        await store.write(name, b"{}")
        waiting.append(asyncio.create_task(store.commit()))
        await asyncio.sleep(0.01)
    goes_on.set()
    await asyncio.gather(busy, *waiting)
    assert len(flushed) == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["first", "key", "second", "third"]


async def test_only_what_somebody_was_asked_for_is_flushed_soon(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fathom.storage.journal.GATHER_SECONDS", 3_600.0)
    monkeypatch.setattr("fathom.storage.store.SOON_SECONDS", 0.0)
    store, results = ArtifactStore(str(tmp_path)), tmp_path / RESULTS / "key"
    await store.open_journal(f"{RESULTS}/key/journal")
    with outside_prefect(storing(store, "key")):
        await look_here()
        await asyncio.sleep(0.1)
        assert not list(results.glob("look_here-*"))
        await ask_there()
    async with asyncio.timeout(60):
        while not list(results.glob("ask_there-*")):  # noqa: ASYNC110 - a disk sends no notice
            await asyncio.sleep(0.01)
    assert list(results.glob("look_here-*")), "with all before it"
    await store.close_journal()


@recorded_task(name="look here", run_name="look here", asks=False)
async def look_here() -> int:
    return 1


@recorded_task(name="ask there", run_name="ask there")
async def ask_there() -> int:
    return 2


async def test_the_last_files_are_named_once_all_others_are_flushed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settle, there = AtomicFiles.settle_local, list[list[str]]()

    def settling(files: AtomicFiles, paths: Sequence[str]) -> None:
        there.append(sorted(path.name for path in (tmp_path / "run").iterdir() if path.name[0] != "."))
        if len(there) == 1:
            raise OSError(errno.EIO, "broken")
        settle(files, paths)

    store = ArtifactStore(str(tmp_path))
    await store.open_journal("key/journal")
    monkeypatch.setattr(AtomicFiles, "settle_local", settling)
    await store.write("run/report", b"1")
    await store.commit()
    last = {"run/result": b"2", "run/provenance": b"3"}
    with pytest.raises(StoreError, match="broken"):
        await store.close_journal(last)
    assert [path.name for path in (tmp_path / "run").iterdir()] == ["report"], "and no hidden file"
    assert len(list((tmp_path / "key/journal").iterdir())) == 1
    linux = sys.platform == "linux"  # elsewhere, each file is flushed by itself
    flushed = flushes(monkeypatch, int) if linux else []
    await store.close_journal(last)
    assert there == [["report"], ["report"]]
    assert len(flushed) == linux, "their folder, once"
    assert sorted(path.name for path in (tmp_path / "run").iterdir()) == ["provenance", "report", "result"]
    assert not list((tmp_path / "key/journal").iterdir())


@pytest.mark.parametrize("price", [None, Decimal(0), Decimal("0.01")])
async def test_a_search_is_sent_once_all_before_it_is_certain(tmp_path: Path, price: Decimal | None) -> None:
    store = ArtifactStore(str(tmp_path))
    await store.open_journal("key/journal")
    ledger = await Ledger.open(Budget(), store, "ledger")
    await store.write("before", b"{}")

    async def ask() -> bool:
        return (tmp_path / "before").exists()

    assert await SearchBudget(ledger).pay("search:any", price, ask)
    await store.close_journal()


def file_of(number: int) -> Path:
    """Return the file of an open descriptor."""
    return Path(f"/proc/self/fd/{number}").readlink()


async def test_a_search_waits_for_one_flush_of_the_journal(
    small: Stubs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for place in ("journal.GATHER_SECONDS", "store.SOON_SECONDS"):
        monkeypatch.setattr(f"fathom.storage.{place}", 3_600.0)
    flushed = flushes(monkeypatch, lambda number: (time.monotonic(), file_of(number).parent.name == "journal"))
    small.settings.steps = 1
    await kept(tmp_path)
    [claimed, *_] = [at for at, journal in flushed if not journal]
    searched = small.calls("search")[0].started
    assert sum(journal for at, journal in flushed if claimed < at < searched) == 1, "results and reservation together"


async def test_a_renewed_lease_is_flushed_and_its_name_is_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lease = await LeaseFile.take(ArtifactStore(str(tmp_path)), RUN, RUN, {})
    flushed = flushes(monkeypatch, file_of)
    assert await lease.renew()
    assert [(path.parent, path.suffix) for path in flushed] == [(tmp_path / RESULTS / RUN / "lease", ".tmp")]
    await lease.release()
    assert len(flushed) == 3, "that it is given up is certain"

"""The index of a store's runs: as right as the runs' own files, whoever changed these, and read in a few requests.

A run is found by its id from every folder of a machine: in the stores that its user has used.
"""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar
from uuid import uuid4

import httpx
import pytest

from fathom.config.environment import Environment
from fathom.errors import RunNotFound
from fathom.flows.runs import index as indexing
from fathom.flows.runs.index import INDEX, RunIndex
from fathom.flows.runs.listing import latest
from fathom.flows.runs.stored import find, nor_in
from fathom.models import Answered, Ending, Metrics, RunResult, RunState
from fathom.service.caller import AccessRole, Caller
from fathom.service.run_list import EVERYTHING, Listing
from fathom.storage.lease import LeaseFile
from fathom.storage.ownership import Owners
from fathom.storage.runs import StoredRun, other_stores, remember
from fathom.storage.store import MANIFEST, RESULT, RUNS, ArtifactStore, RunFolder, json_bytes
from tests.conftest import FathomCLI, PrefectServer

T = TypeVar("T")
METRICS = Metrics.model_validate({name: 1 for name, one in Metrics.model_fields.items() if one.is_required()})


class CountingStore(ArtifactStore):
    """A store that takes note of what it is asked."""

    def __init__(self, root: str) -> None:
        super().__init__(root)
        self.asked: list[str] = []

    async def _run(self, action: str, path: str, blocking: Callable[[str], T]) -> T:
        self.asked.append(f"{action} {path}")
        return await super()._run(action, path, blocking)


@pytest.fixture(params=["local", "object store"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> CountingStore:
    return CountingStore(str(tmp_path) if request.param == "local" else f"memory://{uuid4().hex}")


@pytest.fixture(autouse=True)
def no_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fathom.flows.runs.listing.find_api", lambda: None)


async def started(store: ArtifactStore, number: int, title: str = "") -> RunFolder:
    run_id = f"{number:08}-aaaa"
    manifest = {"query": f"Question {number}?", "started": f"2026-01-01T00:{number:02}:00", "plan_title": "T"}
    return await RunFolder.claim(store, title or f"title {number}", run_id, run_id, manifest)


async def finished(folder: RunFolder, ending: Ending = Ending.complete, answered: Answered = Answered.yes) -> RunResult:
    run_id = (await folder.load_json(MANIFEST))["run_id"]
    result = RunResult(
        run_id=run_id, status=ending, plan_title="T", artifacts="", report=None, sources=[], metrics=METRICS
    ).model_copy(update={"answered": answered})
    await folder.save_json(RESULT, result)
    return result


async def many(store: ArtifactStore, count: int = 20) -> list[RunFolder]:
    folders = [await started(store, number) for number in range(count)]
    for folder in folders:
        await finished(folder)
    return folders


async def ids(store: ArtifactStore) -> set[str]:
    return {row.run_id[:8] for row in await latest(store, 200)}


async def test_what_others_start_and_end_is_seen_at_once(store: CountingStore) -> None:
    await many(store)
    assert len(await ids(store)) == 20 and await store.exists(INDEX)
    folder = await started(store, 30)
    await store.write(".results/damaged/lease/0001.json", b"{}")
    [first, *_] = await latest(store, 5)
    assert (first.run_id[:8], first.state, first.query) == ("00000030", RunState.interrupted, "Question 30?")
    await finished(folder, Ending.degraded, Answered.maybe)
    [first, second, *_] = await latest(store, 5)
    assert first.state is RunState.degraded
    assert (first.answered, second.answered) == (Answered.maybe, Answered.yes)
    lease = await LeaseFile.take(store, "00000040-bbbb", "key", {"query": "Without a folder?"})
    assert {(row.run_id[:8], row.state) for row in await latest(store, 50)} >= {("00000040", RunState.running)}
    await lease.release(waiting=True)
    assert {(row.run_id[:8], row.state) for row in await latest(store, 50)} >= {("00000040", RunState.waiting)}


async def test_what_others_remove_or_replace_without_a_word_is_not_shown(store: CountingStore) -> None:
    folders = await many(store)
    await ids(store)
    await store.remove_all([*await store.sizes(folders[3].folder)])
    assert "00000003" not in await ids(store)
    with pytest.raises(RunNotFound):
        await find(store, "00000003")
    # The next run of that title gets its folder.
    again = await started(store, 50, "title 3")
    assert again.folder == folders[3].folder
    assert (await find(store, "00000050")).query == "Question 50?"
    assert "00000050" in await ids(store)


async def test_a_run_that_was_copied_there_is_found(store: CountingStore) -> None:
    await many(store)
    await ids(store)
    await store.write(f"{RUNS}/copied/report.md", b"# Copied first")
    await ids(store)
    manifest = {"run_id": "cccccccc-1", "run_key": "k", "query": "Copied?", "started": "2026-02-01"}
    await store.write(f"{RUNS}/copied/{MANIFEST}", json_bytes(manifest))
    assert (await find(store, "cccccccc")).query == "Copied?"
    assert "cccccccc" in await ids(store) or not store.local  # an object store is listed now and then


async def test_folders_of_an_object_store_are_listed_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    store = CountingStore(f"memory://{uuid4().hex}")
    await many(store)
    await ids(store)
    await store.write(f"{RUNS}/copied/{MANIFEST}", json_bytes({"run_id": "cccccccc", "run_key": "k", "query": "q"}))
    monkeypatch.setattr(indexing, "LISTED_SECONDS", 0.0)
    assert "cccccccc" in await ids(store)


async def test_an_index_that_is_damaged_or_lost_is_made_again(store: CountingStore) -> None:
    await many(store)
    await ids(store)
    said: list[str] = []
    for damaged in (b"", b"no gzip", (await store.read(INDEX))[:60]):
        await store.write(INDEX, damaged)
        assert len(await RunIndex(store, said.append).read()) == 20
        assert "is damaged, so it is made again" in said.pop()
        assert len(await RunIndex(store, said.append).read()) == 20 and not said
    await store.remove(INDEX)
    assert len(await RunIndex(store, said.append).read()) == 20 and not said


def test_a_list_that_is_cut_says_so(fathom_cli: FathomCLI, tmp_path: Path) -> None:
    asyncio.run(many(ArtifactStore(str(tmp_path)), 3))
    cut, whole = (fathom_cli(["runs", "--limit", most, "--artifacts", str(tmp_path)]).stdout for most in ("2", "3"))
    assert "Question 1?" in cut and "Question 0?" not in cut and "older runs: fathom runs --limit 4" in cut
    assert "Question 0?" in whole and "older runs" not in whole


def test_a_listed_id_names_one_run(fathom_cli: FathomCLI, tmp_path: Path) -> None:
    """Prefect's scheduler makes the next runs at once, with ids that begin with the time."""
    store, ids = ArtifactStore(str(tmp_path)), ("01a2229a-0137-7ff8-91ce", "01a2229a-0137-783e-af81")
    for run_id in ids:
        asyncio.run(RunFolder.claim(store, run_id, run_id, run_id, {"query": run_id, "started": "2026-01-01T00:00:00"}))
    listed = fathom_cli(["runs", "--artifacts", str(tmp_path)]).stdout.splitlines()[1:]
    shown = {row.split()[0]: row.split()[-1] for row in listed}
    assert set(shown.values()) == set(ids)
    for name, run_id in shown.items():
        assert asyncio.run(find(store, name)).run_id == run_id


async def test_a_store_that_cannot_be_written_is_read(tmp_path: Path) -> None:
    store = ArtifactStore(str(tmp_path))
    await many(store)
    shutil.rmtree(tmp_path / ".runs")
    (tmp_path / ".runs").write_text("not a folder")
    said: list[str] = []
    assert len(await RunIndex(store, said.append).read()) == 20
    assert ["cannot be stored" in line for line in said] == [True]


async def test_what_was_read_long_after_the_note_is_not_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    store = CountingStore(f"memory://{uuid4().hex}")
    await many(store, 30)
    await ids(store)
    monkeypatch.setattr(indexing, "SETTLED_SECONDS", -60.0)  # as after two minutes
    store.asked.clear()
    assert len(await latest(store, 10)) == 10
    results = [asked for asked in store.asked if asked.endswith(RESULT)]
    assert len(results) == 10 and len(store.asked) == 12, store.asked
    store.asked.clear()
    found = await find(store, "00000007")
    assert found == StoredRun(store, found.folder, "00000007-aaaa", "00000007-aaaa", "Question 7?",
                              "2026-01-01T00:07:00", "T") and len(store.asked) == 3, store.asked  # fmt: skip


@pytest.mark.usefixtures("prefect_server")
async def test_a_changed_manifest_hides_no_other_run_from_a_server(tmp_path: Path) -> None:
    store = ArtifactStore(str(tmp_path))
    await finished(await started(store, 1))
    changed = await started(store, 2)
    manifest = await changed.load_json(MANIFEST)
    for run_id in ("a\0b", "../../passwd", "x" * 400):
        await changed.replace_manifest(json_bytes({**manifest, "run_id": run_id}))
        listed = await Listing(store, Owners(store)).page(Caller("", AccessRole.admin), EVERYTHING, 50, "")
        assert "Question 1?" in {run.question for run in listed.runs}


UNKNOWN = "deadbeef"


def test_a_run_is_found_from_a_folder_with_another_store(
    fathom_cli: FathomCLI, prefect_server: PrefectServer, tmp_path: Path
) -> None:
    (tmp_path / "notes.md").write_text("# Oslo\n\nThe capital of Norway is Oslo, on the Oslofjord.\n")
    first, second = str(tmp_path / "first"), str(tmp_path / "second")
    arguments = ["What is the capital of Norway?", "--docs", "notes.md", "--artifacts", first, "--json"]
    done = fathom_cli(["research", *arguments], prefect_server.env)
    assert done.returncode == 0, done.stderr
    run = json.loads(done.stdout)["run_id"]

    # Without a server, from a folder whose own store does not even exist.
    for command in ("show", "verify", "audit"):
        found = fathom_cli([command, run[:8]])
        assert (found.returncode, found.stderr) == (0, f"fathom: the run is stored in {first}\n"), command
    assert f"The run {run[:8]} has finished." in fathom_cli(["tell", run[:8], "and Bergen?"]).stderr
    for command in ("show", "resume"):
        lost = fathom_cli([command, UNKNOWN], prefect_server.env)
        assert lost.returncode == 2
        assert f"{tmp_path / 'artifacts'}. Nor is it in the other stores that you have used: {first}. (" in lost.stderr
    assert nor_in(["a", "b", "c", "d"]) == " Nor is it in the 4 other stores that you have used."
    only_there = fathom_cli(["show", run[:8], "--artifacts", "elsewhere"])
    assert only_there.returncode == 2 and first not in only_there.stderr

    # The server has forgotten it: the store alone knows how it was started.
    url = prefect_server.env["PREFECT_API_URL"]
    assert httpx.delete(f"{url}/flow_runs/{run}").is_success
    again = fathom_cli(["resume", run[:8], "--json"], prefect_server.env)
    assert again.returncode == 0, again.stderr
    assert Path(json.loads(again.stdout)["artifacts"]).is_relative_to(first)

    assert fathom_cli(["export", run[:8], "--bundle", "run.zip"]).returncode == 0
    shutil.rmtree(first)
    assert fathom_cli(["import", "run.zip", "--artifacts", second]).returncode == 0
    moved = fathom_cli(["show", run[:8]])
    assert (moved.returncode, moved.stderr) == (0, f"fathom: the run is stored in {second}\n")


@pytest.mark.parametrize("address", ["s3://AKIAIOSFODNN7EXAMPLE:secret@bucket/runs", "s3://bucket/hunter2-and-more"])
def test_an_address_with_a_secret_is_not_remembered(tmp_path: Path, address: str) -> None:
    environment = Environment.read({"HOME": str(tmp_path), "STORE_PASSWORD": "hunter2-and-more"})
    for _ in range(2):
        for used in (str(tmp_path), address, "s3://bucket/runs", str(tmp_path / "gone")):
            remember(used, environment)
    assert other_stores("elsewhere", environment) == [str(tmp_path), "s3://bucket/runs"]
    assert other_stores(str(tmp_path), environment) == ["s3://bucket/runs"]
    listed = (tmp_path / ".local/state/fathom/stores").read_text()
    assert listed == f"{tmp_path}\ns3://bucket/runs\n{tmp_path / 'gone'}\n"


def test_a_list_that_cannot_be_written_or_read_stops_nothing(tmp_path: Path) -> None:
    (tmp_path / ".local").write_text("a file where a folder should be")
    environment = Environment.read({"HOME": str(tmp_path)})
    remember(str(tmp_path), environment)
    assert other_stores("elsewhere", environment) == []

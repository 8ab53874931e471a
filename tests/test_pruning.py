"""Old runs are removed beside running ones, and a removal that is killed leaves nothing that looks damaged."""

from __future__ import annotations

import json
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from fathom.config.inputs import period
from fathom.errors import InvalidInput, NoReport, RunBusy
from fathom.flows.housekeeping import Pruned, housekeeping, prune
from fathom.flows.runs.index import RunIndex
from fathom.flows.runs.listing import with_sizes
from fathom.flows.runs.stored import files_of, load
from fathom.storage.lease import LeaseFile, read_lease
from fathom.storage.pruning import PRUNED
from fathom.storage.store import ArtifactStore, RunFolder
from fathom.text.plain import size
from tests.conftest import Bucket, FathomCLI
from tests.dying_store import Killed, WatchedStore, bury
from tests.test_store import every_file

AGE = timedelta(days=90)
TITLE = "Water tanks"
FILES = ("plan.json", "water_tanks__step1_a__documents.json", "water_tanks__step1_a__documents__2.json", "report.md")


@pytest.fixture(params=["local", "s3"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> ArtifactStore:
    """An empty store of each kind."""
    moto: Bucket | None = request.getfixturevalue("moto_s3") if request.param == "s3" else None
    return ArtifactStore(f"{moto.url}/prefix" if moto else str(tmp_path / "store"))


def days_ago(days: float) -> str:
    return (datetime.now(UTC) - timedelta(days=days)).isoformat(timespec="seconds")


async def worked_on(store: ArtifactStore, run_id: str, key: str, days: float) -> None:
    """Leave results and the lease of a process that ended so many days ago."""
    for name in ("plan-0123456789abcdef01234567", "ledger"):
        await store.write(f".results/{key}/{name}", b"{}")
    lease = await LeaseFile.take(store, run_id, key, {"query": f"What is {run_id}?"})
    await lease.release()
    last = await read_lease(store, key)
    assert last
    past = {"renewed": days_ago(days), "started": days_ago(days)}
    await store.write(lease.path, last.model_copy(update=past).model_dump_json().encode())


async def stored(store: ArtifactStore, run_id: str, days: float, key: str = "", *, finished: bool = True) -> RunFolder:
    """Store a run that started so many days ago."""
    key = key or run_id
    await worked_on(store, run_id, key, days)
    manifest = {"query": f"What is {run_id}?", "started": days_ago(days), "plan_title": TITLE}
    folder = await RunFolder.claim(store, f"{TITLE} {run_id}" if key != run_id else TITLE, run_id, key, manifest)
    for name in (*FILES, *(["result.json"] if finished else [])):
        await folder.save_json(name, {"status": "complete", "run_id": run_id})
    return folder


async def listed(store: ArtifactStore) -> set[str]:
    return {run.run_id for run in await RunIndex(store).read()}


def removed(done: Pruned) -> dict[str, str]:
    return {run.run_id: run.part for run in done.removed}


async def test_old_runs_go_and_others_stay_as_they_are(tmp_path: Path) -> None:
    store = ArtifactStore(str(tmp_path))
    await stored(store, "aaaa1111", 200)
    await stored(store, "bbbb2222", 10)  # with the same title, so in a folder whose name begins with the other's
    await stored(store, "cccc3333", 200, finished=False)
    await stored(store, "dddd4444", 200)
    running = await LeaseFile.take(store, "dddd4444", "dddd4444", {})
    await stored(store, "eeee5555", 200, key="shared")
    await stored(store, "ffff6666", 10, key="shared")
    await worked_on(store, "99990000", "never-planned", 200)
    await worked_on(store, "88880000", "just-begun", 1)
    resumed = await stored(store, "77770000", 200)
    await worked_on(store, "77770000", "77770000", 5)
    before = every_file(store)

    looked = await prune(store, AGE, dry_run=True)
    assert every_file(store) == before
    done = await prune(store, AGE)
    assert removed(done) == {"aaaa1111": "run", "99990000": "leftovers"} == removed(looked)
    assert (done.files, done.bytes) == (looked.files, looked.bytes)
    reasons = {kept.run_id: kept.reason for kept in done.kept}
    assert "it has not finished; --unfinished" in reasons["cccc3333"]
    assert "still running" in reasons["dddd4444"]
    assert not done.failed
    left = every_file(store)
    assert done.files == len(before) - len(left)
    gone = ("/water_tanks/", "/aaaa1111/", "/never-planned/")
    assert left == [path for path in before if not any(part in f"/{path}" for part in gone)]
    assert await listed(store) == {"bbbb2222", "cccc3333", "dddd4444", "eeee5555", "ffff6666", "88880000", "77770000"}
    assert await resumed.load_json("result.json"), "what was worked on lately is not old"
    assert await running.renew()

    await running.release()
    done = await prune(store, timedelta(minutes=1), unfinished=True)
    assert every_file(store) == [path for path in left if "/dddd4444/" in f"/{path}" or "water_tanks__dddd4444" in path]
    assert "dddd4444" not in removed(done), "its lease was renewed a moment ago"


async def test_shared_results_go_with_the_last_run(store: ArtifactStore) -> None:
    await stored(store, "aaaa1111", 200)
    await stored(store, "bbbb2222", 1)  # its folder's name begins with the other's
    kept = [path for path in every_file(store) if "bbbb2222" in path]
    await stored(store, "eeee5555", 200, key="shared")
    await stored(store, "ffff6666", 100, key="shared")
    assert removed(await prune(store, timedelta(days=150))) == {"aaaa1111": "run"}
    assert any(path.startswith(".results/shared/plan-") for path in every_file(store))
    assert len(await store.list(".results/shared/lease")) == 2, "no trace of the removal"
    assert removed(await prune(store, AGE)) == {"eeee5555": "run", "ffff6666": "run"}
    assert every_file(store) == kept


async def test_a_run_whose_manifest_cannot_be_read_keeps_its_results(tmp_path: Path) -> None:
    store = ArtifactStore(str(tmp_path))
    folder = await stored(store, "aaaa1111", 200)
    await stored(store, "bbbb2222", 200)
    manifest = await store.read(f"{folder.folder}/run.json")
    for damaged in (b"{", b"{}"):
        await store.write(f"{folder.folder}/run.json", damaged)
        results = {path for path in every_file(store) if path.startswith(".results/")}
        done = await prune(store, AGE)
        assert results <= {*every_file(store)}
        assert removed(done) in ({"bbbb2222": "run"}, {}) and len(done.kept) == 1
    await store.write(f"{folder.folder}/run.json", manifest)
    assert removed(await prune(store, AGE)) == {"aaaa1111": "run", "bbbb2222": "leftovers"}
    assert every_file(store) == []


async def test_a_run_that_was_taken_up_by_another_stays(tmp_path: Path) -> None:
    store = ArtifactStore(str(tmp_path))
    await stored(store, "aaaa1111", 200, key="shared")
    await worked_on(store, "bbbb2222", "shared", 1)
    assert removed(await prune(store, AGE)) == {}
    assert await LeaseFile.hold(store, "cccc3333", "shared")  # and its process is killed
    held = sorted(path for path in every_file(store) if "/lease/" in path)[-1]
    last = await read_lease(store, "shared")
    assert last and last.held
    for days in (0.01, 200):
        await store.write(held, last.model_copy(update={"renewed": days_ago(days)}).model_dump_json().encode())
        assert removed(await prune(store, AGE)) == {}
        assert await listed(store) >= {"aaaa1111"}


async def test_a_removal_killed_anywhere_leaves_a_whole_run_or_nothing_to_see(tmp_path: Path) -> None:
    root = tmp_path / "store"
    await stored(ArtifactStore(str(root)), "aaaa1111", 200)
    await stored(ArtifactStore(str(root)), "bbbb2222", 10)
    whole = shutil.copytree(root, tmp_path / "whole")
    kept = {path for path in every_file(ArtifactStore(str(root))) if "bbbb2222" in path}

    async def kill(number: int) -> None:
        if number == at:
            raise Killed

    at, deaths = 0, 0
    while True:
        try:
            await prune(WatchedStore(str(root), kill), AGE)
        except Killed:
            deaths += 1
        else:
            break
        bury(root)
        store = ArtifactStore(str(root))
        if "aaaa1111" in await listed(store):
            files = await RunFolder(store, "research_artifacts/water_tanks").load_json("result.json")
            assert files and {*FILES} <= {*await store.list("research_artifacts/water_tanks")}
        assert {path for path in every_file(store) if "bbbb2222" in path} == kept
        assert "aaaa1111" in removed(await prune(store, AGE)), at
        assert {*every_file(store)} == kept
        shutil.rmtree(root)
        shutil.copytree(whole, root)
        at += 1
    assert deaths > 10


async def test_a_run_that_starts_meanwhile_loses_nothing(tmp_path: Path) -> None:
    """One with the same run key is told to wait; one with the same title has its own folder at any moment."""
    plain = ArtifactStore(str(tmp_path))
    await stored(plain, "aaaa1111", 200)
    new: list[RunFolder] = []
    refused = 0

    async def start(number: int) -> None:
        nonlocal refused
        if number:  # from when it holds the lease
            with pytest.raises(RunBusy, match="is being removed or imported"):
                await LeaseFile.take(plain, "aaaa1111", "aaaa1111", {})
            refused += 1
            run_id = f"{number:08}"
            folder = await RunFolder.claim(plain, TITLE, run_id, run_id, {"query": "", "started": days_ago(0)})
            await folder.save_json("plan.json", number)
            new.append(folder)

    await prune(WatchedStore(str(tmp_path), start), AGE)
    assert refused > 5
    assert [await folder.load_json("plan.json") for folder in new] == list(range(1, len(new) + 1))
    assert "aaaa1111" not in await listed(plain)


async def test_one_run_is_deleted_only_if_somebody_says_so(tmp_path: Path, fathom_cli: FathomCLI) -> None:
    root = shutil.copytree(Path(__file__).parent / "stored_run", tmp_path / "stored")
    store = ArtifactStore(str(root))
    [run] = await RunIndex(store).read()
    command = ["delete", run.run_id[:8], "--artifacts", str(root)]
    asked = fathom_cli(command)
    assert asked.returncode == 2 and "Nothing was deleted" in asked.stderr and "--yes" in asked.stderr
    assert [stored.run_id for stored in await RunIndex(store).read()] == [run.run_id]
    done = fathom_cli([*command, "--yes"])
    assert done.returncode == 0 and run.run_id[:8] in done.stdout and run.query in done.stdout
    assert await RunIndex(store).read() == []
    assert [path for path in every_file(store) if run.run_id not in path] == [], "only that it was deleted is known"
    again = fathom_cli([*command, "--yes"])
    assert again.returncode == 2 and "no run" in again.stderr.lower()


async def test_reports_can_stay_when_their_evidence_goes(tmp_path: Path, fathom_cli: FathomCLI) -> None:
    root = shutil.copytree(Path(__file__).parent / "stored_run", tmp_path / "stored")
    for path in [*root.glob("research_artifacts/*/run.json"), *root.glob(".results/*/lease/*.json")]:
        path.write_bytes(path.read_bytes().replace(b"2026-11-22T", b"2025-11-22T"))
    store = ArtifactStore(str(root))
    done = fathom_cli(["prune", "--older-than", "90d", "--keep-reports", "--yes", "--json", "--artifacts", str(root)])
    assert done.returncode == 0, done.stderr
    assert [run["part"] for run in json.loads(done.stdout)["removed"]] == ["evidence"]
    assert await store.list(".results") == []
    [manifest] = await RunIndex(store).read()
    folder = manifest.files
    assert await folder.list() == []
    assert (await folder.load_json(PRUNED))["files"] == 1
    assert "400 cubic metres" in ((await load(manifest)).report or "")
    with pytest.raises(NoReport, match="evidence of the run was removed on 20"):
        await files_of(manifest)
    assert fathom_cli(["verify", "water", "--artifacts", str(root)]).returncode == 3
    again = await prune(store, AGE, keep_reports=True)
    assert (again.removed, again.summary()) == ([], "nothing is that old")
    assert removed(await prune(store, AGE)) == {manifest.run_id: "run"}
    assert every_file(store) == []


@pytest.mark.usefixtures("prefect_server", "home")
async def test_the_flow_removes_and_shows_what(tmp_path: Path) -> None:
    from prefect.client.orchestration import get_client
    from prefect.client.schemas.filters import ArtifactFilter, ArtifactFilterKey

    await stored(ArtifactStore(str(tmp_path)), "aaaa1111", 200)
    await housekeeping("90d", artifacts=str(tmp_path))
    assert every_file(ArtifactStore(str(tmp_path))) == []
    async with get_client() as client:
        [shown] = await client.read_artifacts(
            artifact_filter=ArtifactFilter(key=ArtifactFilterKey(any_=["housekeeping"]))
        )
    assert "1 run" in (shown.description or "")
    assert "aaaa1111" in str(shown.data)


async def test_sizes_count_shared_results_once(tmp_path: Path, fathom_cli: FathomCLI) -> None:
    store = ArtifactStore(str(tmp_path / "store"))
    await stored(store, "eeee5555", 2, key="shared")
    await stored(store, "ffff6666", 1, key="shared")
    done = fathom_cli(["runs", "--sizes", "--json", "--artifacts", store.address()])
    assert done.returncode == 0, done.stderr
    sizes = {run["run_id"]: run["bytes"] for run in json.loads(done.stdout)}
    assert sizes["ffff6666"] > sizes["eeee5555"] > 100
    files = [await store.sizes(name) for name in (".results", "research_artifacts")]
    assert sum(sizes.values()) == sum(sum(found.values()) for found in files)
    assert await with_sizes(store, []) == []


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            ["--older-than", "90d"],
            "Nothing was removed: please confirm. (add --yes, or look first with --dry-run)",
        ),
        (
            ["--older-than", "90", "--yes"],
            "--older-than '90' is not a length of time. (give a number with m, h, d or w",
        ),
        (["--yes"], "--older-than is missing. (for example: fathom prune --older-than 90d"),
    ],
    ids=str,
)
def test_bad_input_removes_nothing(arguments: list[str], said: str, fathom_cli: FathomCLI, tmp_path: Path) -> None:
    done = fathom_cli(["prune", *arguments, "--artifacts", str(tmp_path)])
    assert done.returncode == 2
    assert said in done.stderr


@pytest.mark.parametrize(("text", "hours"), [("12h", 12), ("90d", 2160), (" 2W ", 336), ("30m", 0.5)])
def test_lengths_of_time(text: str, hours: float) -> None:
    assert period(text, "--since") == timedelta(hours=hours)


@pytest.mark.parametrize("text", ["", "d", "-1d", "1.5d", "1 d", "１d", "1y", "999999999d"])
def test_what_is_no_length_of_time(text: str) -> None:
    with pytest.raises(InvalidInput, match="--since"):
        period(text, "--since")


@pytest.mark.parametrize(
    ("number", "text"), [(0, "0 bytes"), (1, "1 byte"), (999, "999 bytes"), (1_500, "1.5 kB"), (2 * 10**12, "2.0 TB")]
)
def test_sizes_for_people(number: int, text: str) -> None:
    assert size(number) == text


def test_old_cached_answers_go(tmp_path: Path) -> None:
    import os

    from fathom.storage.cache import sweep

    old, new, others = f"pages/{'a' * 64}", f"pages/{'b' * 64}", ["photos/wedding.jpg", f"photos/{'a' * 64}", "pages/x"]
    for name, age in ((old, 1_000), (new, 0), *((other, 1_000) for other in others)):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("text")
        os.utime(path, (path.stat().st_mtime - age,) * 2)
    before: Any = datetime.now(UTC).timestamp() - 500
    assert sweep(tmp_path, before, dry_run=True) == (1, 4)
    assert sweep(tmp_path, before, dry_run=False) == (1, 4)
    left = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()}
    assert left == {new, *others}
    assert sweep(tmp_path / "nowhere", before, dry_run=False) == (0, 0)

"""A run moves between stores as one file and verifies where it arrives; what is no such file changes nothing."""

from __future__ import annotations

import asyncio
import io
import json
import random
import shutil
import stat
import zipfile
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fathom.changes.comparing import ComparedRun, compare
from fathom.errors import FathomError, InvalidInput, NoReport, RunBusy
from fathom.evidence.verify import verify_run
from fathom.flows.replay import replay
from fathom.flows.runs.index import RunIndex
from fathom.flows.runs.stored import files_of, find, load
from fathom.report.changes import render_changes_html
from fathom.report.html import render_html, unsafe
from fathom.storage import bundles
from fathom.storage.bundles import pack, unpack
from fathom.storage.lease import LeaseFile
from fathom.storage.store import ArtifactStore, RunFolder
from tests.conftest import ROOT, Bucket, FathomCLI
from tests.dying_store import Killed, WatchedStore, bury
from tests.inprocess import kept
from tests.sample_report import sample_report
from tests.test_store import every_file

RECORD = "results/plan-b4d0bd37fc17f2ff30559aa3"


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The run in `tests/stored_run`, as a bundle."""
    target = io.BytesIO()
    store = ArtifactStore(str(ROOT / "tests/stored_run"))
    asyncio.run(_pack(store, "water", target))
    return target.getvalue()


async def _pack(store: ArtifactStore, name: str, target: io.BytesIO) -> None:
    await pack(await find(store, name), target)


@pytest.mark.usefixtures("home")
async def test_a_run_moves_to_s3_and_verifies_and_replays_there(tmp_path: Path, moto_s3: Bucket) -> None:
    docs = tmp_path / "tanks.md"
    docs.write_text("# Tanks\n\nThe plant keeps 400 cubic metres of treated water in two tanks.\n")
    asked = "How much water do the tanks hold?"
    result = await kept(tmp_path / "here", asked, model="extractive", profile="quick", docs=[str(docs)])
    target = io.BytesIO()
    await _pack(ArtifactStore(str(tmp_path / "here")), result.run_id, target)
    shutil.rmtree(tmp_path / "here")
    store = await imported(target.getvalue(), tmp_path, ArtifactStore(moto_s3.url))
    [manifest] = await RunIndex(store).read()
    assert (await load(manifest)).result is not None
    assert verify_run(await files_of(manifest)).ok
    assert {file.state for file in await replay(manifest)} == {"same"}


def test_the_commands(tmp_path: Path, fathom_cli: FathomCLI) -> None:
    file, there = str(tmp_path / "run.zip"), str(tmp_path / "there")
    done = fathom_cli(["export", "water", "--bundle", file, "--artifacts", str(ROOT / "tests/stored_run"), "--json"])
    assert (done.returncode, json.loads(done.stdout)) == (0, {"bundle": file}), done.stderr
    done = fathom_cli(["import", file, "--artifacts", there])
    assert done.returncode == 0, done.stderr
    assert "fathom verify df99f416" in done.stdout
    done = fathom_cli(["import", file, "--artifacts", there])
    assert done.returncode == 2
    assert f"E4001 The store has the run df99f416: {there}" in done.stderr
    done = fathom_cli(["export", "water", "--artifacts", there])
    assert "E4001 Nothing to write was specified. (give either --to FORMAT or --bundle FILE)" in done.stderr


async def test_its_files_are_as_they_were_and_no_lease_goes_along(bundle: bytes, tmp_path: Path) -> None:
    store = await imported(bundle, tmp_path)
    was = {
        path.relative_to(ROOT / "tests/stored_run") for path in (ROOT / "tests/stored_run").rglob("*") if path.is_file()
    }
    missing = {str(path) for path in was} - {*every_file(store)}
    assert missing == {".results/water/lease/0001.json", ".results/water/audit-pending.jsonl"}
    for path in every_file(store):
        if path.startswith("research_artifacts"):
            assert await store.read(path) == (ROOT / "tests/stored_run" / path).read_bytes()


async def imported(bundle: bytes, tmp_path: Path, store: ArtifactStore | None = None) -> ArtifactStore:
    file = tmp_path / "run.zip"
    file.write_bytes(bundle)
    store = store or ArtifactStore(str(tmp_path / "store"))
    await unpack(store, file, unsafe)
    return store


async def test_a_title_that_is_taken_gives_another_folder(bundle: bytes, tmp_path: Path) -> None:
    store = ArtifactStore(str(tmp_path / "store"))
    other = await RunFolder.claim(store, "Water tanks hold", "aaaa", "aaaa", {"query": "other"})
    await imported(bundle, tmp_path, store)
    assert sorted(await store.list("research_artifacts")) == ["water_tanks_hold", "water_tanks_hold__df99f416"]
    assert (await other.load_json("run.json"))["query"] == "other"
    assert verify_run(await files_of(await find(store, "df99f416"))).ok


async def test_results_of_other_runs_with_the_key_stay(bundle: bytes, tmp_path: Path) -> None:
    store, file = ArtifactStore(str(tmp_path / "store")), tmp_path / "run.zip"
    await store.write(f".results/water/{RECORD.rpartition('/')[2]}", b"theirs")
    file.write_bytes(bundle)
    held = await LeaseFile.take(store, "other", "water", {"query": "What?"})
    with pytest.raises(RunBusy):
        await unpack(store, file, unsafe)
    assert await RunIndex(store).read() == [await find(store, "water")]
    await held.release()
    assert not (await unpack(store, file, unsafe)).replayable
    assert await store.read(f".results/water/{RECORD.rpartition('/')[2]}") == b"theirs"


async def test_marks_of_told_events_stay_where_they_are(bundle: bytes, tmp_path: Path) -> None:
    root = shutil.copytree(ROOT / "tests/stored_run", tmp_path / "stored")
    there = ArtifactStore(str(tmp_path / "store"))
    for mark in (f"told-{'0a' * 12}", "told/0a0b.json"):
        for store in (ArtifactStore(str(root)), there):
            await store.write(f".results/water/{mark}", b"")
    target = io.BytesIO()
    await _pack(ArtifactStore(str(root)), "water", target)
    with zipfile.ZipFile(target) as made, zipfile.ZipFile(io.BytesIO(bundle)) as plain:
        assert sorted(made.namelist()) == sorted(plain.namelist())
    (tmp_path / "run.zip").write_bytes(target.getvalue())
    assert (await unpack(there, tmp_path / "run.zip", unsafe)).replayable


def test_a_bundle_is_not_written_among_the_runs(tmp_path: Path, fathom_cli: FathomCLI) -> None:
    root = str(shutil.copytree(ROOT / "tests/stored_run", tmp_path / "stored"))
    done = fathom_cli(["export", "water", "--bundle", f"{root}/research_artifacts/x.zip", "--artifacts", root])
    assert done.returncode == 2 and "contains the evidence of runs" in done.stderr
    out = tmp_path / "new/out"
    done = fathom_cli(["export", "water", "--bundle", "x.zip", "--out", str(out), "--artifacts", root])
    assert done.returncode == 0 and (out / "x.zip").is_file(), done.stderr


async def test_an_unfinished_run_is_no_bundle(tmp_path: Path) -> None:
    root = shutil.copytree(ROOT / "tests/stored_run", tmp_path / "stored")
    (root / "research_artifacts/water_tanks_hold/result.json").unlink()
    with pytest.raises(NoReport, match="has not finished"):
        await _pack(ArtifactStore(str(root)), "water", io.BytesIO())


async def test_an_import_killed_anywhere_leaves_a_whole_run_or_nothing_to_see(bundle: bytes, tmp_path: Path) -> None:
    async def kill(number: int) -> None:
        if number == at:
            raise Killed

    at, root = 0, tmp_path / "store"
    while True:
        try:
            await imported(bundle, tmp_path, WatchedStore(str(root), kill))
        except Killed:
            bury(root)
            store = ArtifactStore(str(root))
            for manifest in await RunIndex(store).read():
                assert verify_run(await files_of(manifest)).ok, at
            if not await RunIndex(store).read():
                await imported(bundle, tmp_path, store)  # finishes it
                assert verify_run(await files_of(await find(store, "water"))).ok, at
                assert await store.list("research_artifacts") == ["water_tanks_hold"]
        else:
            break
        shutil.rmtree(root, ignore_errors=True)
        at += 7  # it makes more than thirty changes, most of which are alike
    assert at > 30


Change = Callable[[dict[str, bytes]], None]
"""A change of the files in a bundle, whose index is then made to fit."""


def repacked(bundle: bytes, change: Change | None = None, **index: Any) -> bytes:
    """Return a bundle with changed files and fields of its index; all hashes fit."""
    with zipfile.ZipFile(io.BytesIO(bundle)) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    fields = json.loads(files.pop("bundle.json"))
    if change:
        change(files)
    sums = {name: {"bytes": len(data), "sha256": sha256(data).hexdigest()} for name, data in files.items()}
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
        archive.writestr("bundle.json", json.dumps({**fields, "files": sums, **index}))
    return target.getvalue()


def added(bundle: bytes, *entries: tuple[zipfile.ZipInfo | str, bytes]) -> bytes:
    """Return a bundle with more entries, which its index does not list."""
    target = io.BytesIO(bundle)
    with zipfile.ZipFile(target, "a", zipfile.ZIP_DEFLATED) as archive:
        for name, data in entries:
            archive.writestr(name, data)
    return target.getvalue()


def link() -> zipfile.ZipInfo:
    entry = zipfile.ZipInfo("run/link.json")
    entry.external_attr = (stat.S_IFLNK | 0o777) << 16
    return entry


def record(**changes: Any) -> Change:
    """Return a change of a stored result: of its fields or, by `serializer`, of how it wants to be read."""

    def change(files: dict[str, bytes]) -> None:
        own = json.loads(files[RECORD])
        own["metadata"]["serializer"].update(changes.pop("serializer", {}))
        files[RECORD] = json.dumps({**own, **changes}).encode()

    return change


def replaced(name: str, old: bytes, new: bytes) -> Change:
    def change(files: dict[str, bytes]) -> None:
        assert old in files[name]
        files[name] = files[name].replace(old, new)

    return change


def without(name: str) -> Change:
    def change(files: dict[str, bytes]) -> None:
        del files[name]

    return change


HOSTILE: dict[str, tuple[Callable[[bytes], bytes], str]] = {
    "an absolute path": (lambda b: added(b, ("/etc/cron.d/x", b"")), "is not a file of a run"),
    "a path out of the folder": (lambda b: added(b, ("run/../../x.json", b"")), "is not a file of a run"),
    "a path of another system": (lambda b: added(b, ("run\\..\\x.json", b"")), "is not a file of a run"),
    "a hidden file": (lambda b: added(b, ("run/.profile", b"")), "is not a file of a run"),
    "a folder": (lambda b: added(b, ("run/folder/", b"")), "is not a file of a run"),
    "a link": (lambda b: added(b, (link(), b"/etc/passwd")), "is a link"),
    "a file that is not listed": (
        lambda b: added(b, ("run/more.json", b"{}")),
        "are not the ones that bundle",
    ),
    "a bomb": (lambda b: added(b, ("run/zeros.json", bytes(60_000_000))), "files of 60,"),
    "two files of one name": (lambda b: added(b, ("run/plan.json", b"{}")), "two files with the same name"),
    "another format": (lambda b: repacked(b, format=2), "its format is 2, and this version reads format 1"),
    "no index": (lambda b: added(b"", ("run/run.json", b"{}")), "it has no bundle.json"),
    "an index of another kind": (lambda b: repacked(b, files=[]), "not in the form of a bundle"),
    "more fields": (lambda b: repacked(b, extra=1), "not in the form of a bundle"),
    "a changed hash": (
        lambda b: repacked(b, None, files=_falsified(b)),
        "run/report.md was changed: its SHA-256 differs from the recorded one",
    ),
    "no manifest": (lambda b: repacked(b, without("run/run.json")), "not in the form"),
    "another run's manifest": (
        lambda b: repacked(b, replaced("run/run.json", b'"df99', b'"ee99')),
        "its run.json belongs to another run",
    ),
    "a key out of the folder": (
        lambda b: repacked(b, replaced("run/run.json", b'"water"', b'"../x"'), run_key="../x"),
        "its run id or run key is invalid",
    ),
    "a result that is code": (
        lambda b: repacked(b, record(serializer={"type": "pickle", "picklelib": "pickle"}, result="gASVLg==")),
        "holds something that is not a stored result",
    ),
    "a result that is code in JSON": (
        lambda b: repacked(b, record(serializer={"type": "pickle"}, result="1")),
        "holds another serializer",
    ),
    "a result that is read by a program": (
        lambda b: repacked(b, record(serializer={"object_decoder": "os.system"})),
        "holds another serializer",
    ),
    "a result of another class": (
        lambda b: repacked(b, record(result='{"a": [{"__class__": "subprocess.Popen", "data": ["id"]}]}')),
        "holds 'subprocess.Popen'",
    ),
    "a result of a function": (
        lambda b: repacked(b, record(result='{"__class__": "fathom.config.environment.unquote", "data": "x"}')),
        "holds 'fathom.config.environment.unquote'",
    ),
    "an error of another class": (
        lambda b: repacked(b, record(result='{"__exc_type__": "builtins.SystemExit", "message": "x"}')),
        "holds 'builtins.SystemExit'",
    ),
    "a lease": (lambda b: added(b, ("results/lease/9998.json", b"{}")), "which is not a stored result"),
    "a run that has not finished": (lambda b: repacked(b, without("run/result.json")), "its run is incomplete"),
    "a manifest of a removal": (
        lambda b: repacked(b, replaced("run/run.json", b'"run_key"', b'"partial": "x", "run_key"')),
        "its run is incomplete",
    ),
    "a page with another script": (
        lambda b: repacked(b, replaced("run/report.html", b"script-src &#39;sha256-u", b"script-src &#39;sha256-v")),
        "has a script that",
    ),
    "a page without a policy": (
        lambda b: repacked(b, replaced("run/report.html", b"Content-Security-Policy", b"X")),
        "does not begin with the content security policy",
    ),
    "a page that leads elsewhere": (
        lambda b: repacked(
            b, replaced("run/report.html", b"</body>", b"<META http-equiv=refresh content=0;x://y></body>")
        ),
        "has settings that",
    ),
    "a result without end": (
        lambda b: repacked(b, record(result="[" * 100_000)),
        "holds something that is not a stored result",
    ),
}


def test_pages_of_this_version_are_let_in() -> None:
    assert unsafe(render_html(sample_report()).encode()) == ""
    none = ComparedRun("5e6f7a8b", "2026-11-24", "Q", None, [])
    page = render_changes_html(compare(none, none)).encode()
    assert unsafe(page) == ""
    assert unsafe(page.replace(b"style-src", b"style-src *")) != ""


def _falsified(bundle: bytes) -> dict[str, Any]:
    with zipfile.ZipFile(io.BytesIO(bundle)) as archive:
        files: dict[str, Any] = json.loads(archive.read("bundle.json"))["files"]
    return {**files, "run/report.md": {**files["run/report.md"], "sha256": "0" * 64}}


@pytest.mark.filterwarnings("ignore:Duplicate name:UserWarning")
@pytest.mark.parametrize("name", HOSTILE)
async def test_what_is_dangerous_or_damaged_changes_nothing(name: str, bundle: bytes, tmp_path: Path) -> None:
    change, said = HOSTILE[name]
    with pytest.raises(InvalidInput, match="The bundle is not imported: ") as refused:
        await imported(change(bundle), tmp_path)
    assert said in refused.value.message
    assert every_file(ArtifactStore(str(tmp_path / "store"))) == []


async def test_too_many_files(bundle: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bundles, "_MOST_FILES", 20)
    with pytest.raises(InvalidInput, match=r"it holds \d\d files"):
        await imported(bundle, tmp_path)


@given(seed=st.integers(0, 2**32), cut=st.booleans())
def test_any_damage_is_found_or_harmless(
    bundle: bytes, tmp_path_factory: pytest.TempPathFactory, seed: int, *, cut: bool
) -> None:
    """A byte that is changed, or the end of the file that is missing."""
    chosen, data, folder = random.Random(seed), bytearray(bundle), tmp_path_factory.mktemp("damaged")
    place = chosen.randrange(len(data))
    if cut:
        del data[place:]
    else:
        data[place] ^= chosen.randrange(1, 256)
    try:
        store = asyncio.run(imported(bytes(data), folder))
    except FathomError as error:
        assert isinstance(error, InvalidInput), error
        assert every_file(ArtifactStore(str(folder / "store"))) == []
    else:
        [manifest] = asyncio.run(RunIndex(store).read())
        assert verify_run(asyncio.run(files_of(manifest))).ok
    shutil.rmtree(folder)

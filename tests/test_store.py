"""The artifact store on a local folder and on S3: the same names and bytes, one owner a folder, no half files."""

from __future__ import annotations

import asyncio
import json
import resource
import threading
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from pathlib import Path
from typing import Any, ClassVar

import boto3
import fsspec
import pytest
from fsspec.implementations.memory import MemoryFileSystem
from hypothesis import given
from hypothesis import strategies as st

from fathom.errors import InvalidInput, RunBusy, StoreError
from fathom.models import Plan, PlanStep, Source, SourceText, ToolFailure, ToolOutput
from fathom.storage.atomic import AtomicFiles, side_by_side
from fathom.storage.runs import StoredRun, runs
from fathom.storage.store import ArtifactStore, RunFolder
from tests.conftest import Bucket

SOURCE = Source(source_id="S1a2b3c", url="https://example.org/mro", title="Größe “MRO”", kind="web", score=0.5)
OUTPUT = ToolOutput(
    results=[SourceText(**SOURCE.model_dump(), text="Zeile 1\nnaïve — 量子\n")],
    failures=[ToolFailure(code="E3004", message="no answer")],
)


@pytest.fixture(params=["local", "s3"])
def root(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A root of each kind, with nothing in it."""
    if request.param == "local":
        return str(tmp_path / "store")
    return f"{request.getfixturevalue('moto_s3').url}/prefix"


@pytest.fixture
def store(root: str) -> ArtifactStore:
    """A store on that root."""
    return ArtifactStore(root)


async def claim(store: ArtifactStore, run_id: str, run_key: str = "", title: str = "Python MRO") -> RunFolder:
    return await RunFolder.claim(store, title, run_id, run_key or run_id, {"query": "What is the MRO?"})


def every_file(store: ArtifactStore) -> list[str]:
    """Names of all files below the root, also hidden ones, but not the index of runs."""
    fs, path = fsspec.core.url_to_fs(store.address(), use_listings_cache=False)
    names = (str(file).removeprefix(f"{path}/") for file in fs.find(path))
    return sorted(name for name in names if not name.startswith(".runs/"))


# -- bytes --------------------------------------------------------------------------------------------------------


async def test_files(store: ArtifactStore) -> None:
    await store.check_writable()
    assert every_file(store) == []
    assert await store.list("a") == []
    with pytest.raises(FileNotFoundError):
        await store.read("a/b/c")
    await store.write("a/b/c", b"one")
    await store.write("a/b/c", b"two")
    assert await store.create("a/new", b"three")
    assert not await store.create("a/new", b"four")
    assert (await store.read("a/b/c"), await store.read("a/new")) == (b"two", b"three")
    assert await store.exists("a/b/c")
    assert not await store.exists("a/c")
    assert await store.list("a") == ["b", "new"]
    assert every_file(store) == ["a/b/c", "a/new"]


async def test_appended_bytes_come_after_those_before(store: ArtifactStore) -> None:
    for at, line in ((0, b"one\n"), (4, b""), (4, b"two\n")):
        await store.append("run/audit.jsonl", line, at)
    for at in (4, 9):
        with pytest.raises(RunBusy, match="has 8 bytes"):
            await store.append("run/audit.jsonl", b"a line of a process that knows another end\n", at)
    assert await store.read("run/audit.jsonl") == b"one\ntwo\n"
    assert every_file(store) == ["run/audit.jsonl"]


async def test_another_process_is_seen_at_once(root: str) -> None:
    one, other = ArtifactStore(root), ArtifactStore(root)
    assert await one.list("a") == []
    await other.write("a/b", b"")
    assert await one.list("a") == ["b"]


@pytest.mark.parametrize("path", ["../x", "a/../../x", "/etc/passwd", "a//b", "a/", "."])
async def test_no_path_leaves_the_root(store: ArtifactStore, path: str) -> None:
    with pytest.raises(InvalidInput):
        await store.write(path, b"")


@pytest.mark.parametrize("below", ["file", "file/deeper", "/proc/fathom"])
async def test_a_root_that_cannot_be_written_is_named(tmp_path: Path, below: str) -> None:
    (tmp_path / "file").write_text("not a folder")
    root = tmp_path / below
    with pytest.raises(InvalidInput, match=str(root)) as caught:
        await ArtifactStore(str(root)).check_writable()
    assert "--artifacts" in caught.value.next_step


async def test_a_bucket_that_does_not_exist_is_named(moto_s3: Bucket) -> None:
    with pytest.raises(InvalidInput, match="s3://absent") as caught:
        await ArtifactStore("s3://absent/x").check_writable()
    assert "bucket" in caught.value.next_step


@pytest.mark.parametrize("root", ["nosuch://x", "gopher://x/y"])
def test_an_unknown_kind_of_root_is_refused(root: str) -> None:
    with pytest.raises(InvalidInput, match=root):
        ArtifactStore(root)


async def test_a_relative_root_is_made_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    store = ArtifactStore("artifacts")
    monkeypatch.chdir("/")
    await store.write("a", b"")
    assert store.address("a") == str(tmp_path / "artifacts" / "a")
    assert (tmp_path / "artifacts" / "a").exists()


async def test_a_write_that_fails_leaves_what_was_there(tmp_path: Path) -> None:
    store = ArtifactStore(str(tmp_path))
    await store.write("a", b"old")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1_000, limits[1]))  # as a full disk would, the write stops halfway
    try:
        data = b"new" * 1_000
        for write in (store.write("a", data), store.create("b", data), store.append("a", data, at=3)):
            with pytest.raises(StoreError, match="File too large"):
                await write
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert every_file(store) == ["a"]
    assert await store.read("a") == b"old"


# -- a run's folder -----------------------------------------------------------------------------------------------


async def test_names_and_bytes_of_a_run_agree_on_every_store(store: ArtifactStore) -> None:
    run = await claim(store, "0123456789abcdef")
    digest, size = await run.save_raw("python_mro__step1_what__web_search.json", OUTPUT)
    await run.save_raw("python_mro__step1_what__fetch.txt", OUTPUT.model_copy(update={"structured": False}))
    await run.save_json("plan.json", Plan(plan_title="ü", steps=[PlanStep(step_id=1, title="a", description="b")]))
    await run.save_json("notes.json", [SOURCE])
    await run.save_text("report.md", "# Größe\n")
    await store.write(f"{run.folder}/audit.jsonl", b"{}\n")

    folder = "research_artifacts/python_mro"
    raw = await store.read(f"{folder}/python_mro__step1_what__web_search.json")
    whole = {"results": [OUTPUT.results[0].model_dump()], "failures": [OUTPUT.failures[0].model_dump()]}
    assert raw.decode() == json.dumps(whole, indent=1, ensure_ascii=False) + "\n"
    assert (digest, size) == (sha256(raw).hexdigest(), len(raw))
    assert await store.read(f"{folder}/python_mro__step1_what__fetch.txt") == OUTPUT.results[0].text.encode()
    assert await store.read(f"{folder}/report.md") == "# Größe\n".encode()
    plan = (await store.read(f"{folder}/plan.json")).decode()
    assert plan.startswith('{\n  "plan_title": "ü",\n  "steps": [\n    {\n      "step_id": 1,')
    assert plan.endswith("}\n")
    assert await run.load_json("notes.json") == [SOURCE.model_dump()]
    assert await run.list() == ["python_mro__step1_what__fetch.txt", "python_mro__step1_what__web_search.json"]
    assert (run.url, run.path_of("report.md")) == (store.address(folder), f"{store.address(folder)}/report.md")


async def test_a_text_is_read_back_with_its_source_or_as_its_own(store: ArtifactStore) -> None:
    run = await claim(store, "0123456789abcdef")
    await run.save_raw("x__step1_y__fetch.txt", ToolOutput(results=OUTPUT.results, structured=False))
    with_source = await run.read("x__step1_y__fetch.txt", [SOURCE])
    assert with_source == ToolOutput(results=OUTPUT.results, structured=False)
    alone = (await run.read("x__step1_y__fetch.txt")).results[0]
    assert (alone.text, alone.url) == (OUTPUT.results[0].text, "artifact:x__step1_y__fetch.txt")


async def test_damaged_files_are_told_from_missing_ones(store: ArtifactStore) -> None:
    run = await claim(store, "0123456789abcdef")
    with pytest.raises(FileNotFoundError):
        await run.read("x__step1_y__fetch.json")
    await run.save_text("x__step1_y__fetch.json", '{"results": [')
    for load in (run.read("x__step1_y__fetch.json"), run.load_json("x__step1_y__fetch.json")):
        with pytest.raises(StoreError, match="damaged"):
            await load


texts = st.builds(
    SourceText, source_id=st.text(), url=st.text(), title=st.text(), kind=st.just("web"), text=st.text(),
    snippet=st.text(), score=st.floats(0, 1),
)  # fmt: skip
outputs = st.builds(
    ToolOutput,
    results=st.lists(texts, max_size=3),
    failures=st.lists(st.builds(ToolFailure, code=st.text(), message=st.text()), max_size=2),
    structured=st.just(True),
)


@given(outputs)
def test_nothing_of_a_structured_output_is_lost(output: ToolOutput) -> None:
    async def there_and_back() -> ToolOutput:
        run = RunFolder(ArtifactStore("memory://lossless"), "research_artifacts/x")
        await run.save_raw("x__step1_y__z.json", output)
        return await run.read("x__step1_y__z.json")

    assert asyncio.run(there_and_back()) == output


# -- ownership ----------------------------------------------------------------------------------------------------


async def test_the_first_run_of_a_title_owns_it_and_a_resumed_run_finds_its_folder(store: ArtifactStore) -> None:
    first = await claim(store, "11111111-aaaa-4000-8000-000000000000", "key 1")
    second = await claim(store, "22222222-aaaa-4000-8000-000000000000", "key 2")
    near = await claim(store, "22222222-aaaa-4000-8000-111111111111", "key 3")
    nearer = await claim(store, "22222222-aaaa-4000-8000-222222222222", "key 4")
    assert [run.folder for run in (first, second, near, nearer)] == [
        "research_artifacts/python_mro",
        "research_artifacts/python_mro__22222222",
        "research_artifacts/python_mro__22222222aaaa4000",
        "research_artifacts/python_mro__22222222aaaa40008000222222222222",
    ]
    for key, run in (("key 1", first), ("key 2", second), ("key 3", near)):
        before = await run.load_json("run.json")
        assert await claim(store, "99999999-aaaa-4000-8000-000000000000", key) == run
        assert await run.load_json("run.json") == before
    assert (await second.load_json("run.json"))["run_id"] == "22222222-aaaa-4000-8000-000000000000"


def test_creation_has_one_winner(root: str) -> None:
    racers, rounds = 8, 5 if root.startswith("s3://") else 100
    barrier = threading.Barrier(racers)
    files = AtomicFiles(root)
    assert files.exclusive()

    def race(n: int) -> list[bool]:
        won = []
        for turn in range(rounds):
            barrier.wait()
            won.append(files.create(f"folder/{turn}", bytes([n]) * 1_000))
        return won

    with ThreadPoolExecutor(racers) as pool:
        turns = list(zip(*pool.map(race, range(racers)), strict=True))
    for turn, won in enumerate(turns):
        assert won.count(True) == 1
        assert files.read(f"folder/{turn}") == bytes([won.index(True)]) * 1_000


def test_racing_runs_never_share_a_folder(root: str) -> None:
    racers = 8
    barrier = threading.Barrier(racers)

    def race(n: int) -> str:
        store = ArtifactStore(root)
        asyncio.run(store.check_writable())
        barrier.wait()
        # Ids made in the same minute begin alike.
        return asyncio.run(claim(store, f"01990000-0000-7000-8000-{n:012}")).folder

    with ThreadPoolExecutor(racers) as pool:
        folders = list(pool.map(race, range(racers)))
    assert len(set(folders)) == racers
    assert "research_artifacts/python_mro" in folders
    owners = {run.folder: run.run_id for run in asyncio.run(runs(ArtifactStore(root)))}
    assert owners == {folder: f"01990000-0000-7000-8000-{n:012}" for n, folder in enumerate(folders)}


class CarelessFileSystem(MemoryFileSystem):  # type: ignore[misc]  # fsspec is untyped
    """A store that ignores the condition of a conditional put, as some S3 servers do."""

    protocol = "careless"
    store: ClassVar[dict[str, Any]] = {}
    pseudo_dirs: ClassVar[list[str]] = [""]

    def pipe_file(self, path: str, value: bytes, mode: str = "overwrite", **kwargs: Any) -> None:
        super().pipe_file(path, value, mode="overwrite", **kwargs)


async def test_where_creation_has_no_single_winner_every_run_uses_its_own_id() -> None:
    fsspec.register_implementation("careless", CarelessFileSystem, clobber=True)
    store = ArtifactStore("careless://root")
    assert not await store.exclusive()
    one, other = await claim(store, "11111111"), await claim(store, "22222222")
    assert (one.folder, other.folder) == (
        "research_artifacts/python_mro__11111111",
        "research_artifacts/python_mro__22222222",
    )
    assert await claim(store, "33333333", run_key="11111111") == one
    assert every_file(store) == [f"{one.folder}/run.json", f"{other.folder}/run.json"]


async def test_runs_are_listed_whatever_lies_beside_them(store: ArtifactStore) -> None:
    assert await runs(store) == []
    run = await claim(store, "11111111")
    await store.write("research_artifacts/notes.txt", b"")
    await store.write("research_artifacts/somebody_elses/file", b"")
    await store.write("research_artifacts/broken/run.json", b'{"run_id":')
    await store.write("research_artifacts/odd/run.json", json.dumps([1]).encode())
    broken, odd, whole = await runs(store)
    assert broken.folder == "research_artifacts/broken"
    assert "damaged" in broken.damaged
    assert "not a manifest" in odd.damaged
    assert whole == StoredRun(store, run.folder, "11111111", "11111111", "What is the MRO?")


@pytest.mark.parametrize(
    ("wanted", "kind", "key"), [("AES256", "AES256", None), ("aws:kms,alias/runs", "aws:kms", "alias/runs")]
)
async def test_s3_encrypts_every_file_as_it_is_told(
    moto_s3: Bucket, monkeypatch: pytest.MonkeyPatch, wanted: str, kind: str, key: str | None
) -> None:
    monkeypatch.setenv("FATHOM_S3_ENCRYPTION", wanted)
    store = ArtifactStore(moto_s3.url)
    await store.write("a.txt", b"written")
    assert await store.create("b.txt", b"created")
    assert await store.read("a.txt") == b"written"
    client = boto3.client("s3")
    for name in ("a.txt", "b.txt"):
        head = client.head_object(Bucket=moto_s3.url.removeprefix("s3://"), Key=name)
        assert (head["ServerSideEncryption"], head.get("SSEKMSKeyId")) == (kind, key)
    client.close()
    monkeypatch.setenv("FATHOM_S3_ENCRYPTION", "rot13")
    with pytest.raises(InvalidInput, match="FATHOM_S3_ENCRYPTION is 'rot13'"):
        ArtifactStore(moto_s3.url)


async def test_so_many_are_worked_on_at_once_and_answered_in_order() -> None:
    working, most = set[int](), 0

    async def act(number: int) -> int:
        nonlocal most
        working.add(number)
        most = max(most, len(working))
        for _ in range(number % 3 + 1):
            await asyncio.sleep(0)
        working.remove(number)
        return 2 * number

    assert await side_by_side(range(20), act, 4) == [*range(0, 40, 2)] and most == 4

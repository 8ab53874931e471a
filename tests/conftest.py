"""What the tests share: scripted providers, a Prefect server, an S3 server, an empty home and the command line.

The developer's environment is removed and Prefect is pointed at a server and a folder of this session before any test
module, and with it Prefect, is imported: it reads its settings at import. Nothing here leaves the machine.
"""

from __future__ import annotations

import asyncio
import fcntl
import gc
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import certifi
import httpx
import hypothesis
import pytest

from fathom.budget.ledger import Ledger
from fathom.config.environment import Environment
from fathom.config.groups import Budget, ModelCallSettings
from fathom.flows.server import server_command
from fathom.llm import services
from fathom.llm.base import Completion, ModelCall
from fathom.llm.client import ModelBackend
from fathom.storage.store import ArtifactStore
from fathom.tools.fetch.render import PROGRAMS
from tests.forking import COMMANDS, RUNS, Fork, Forks, forking
from tests.stubs import Settings, Stubs, serving

if TYPE_CHECKING:
    from playwright.sync_api import Browser

    from tests.server import Served

ROOT = Path(__file__).parent.parent
_OWN = (
    *("run.json", "result.json", "audit.jsonl", "exchanges.jsonl", "report.json", "report.html", "provenance.json"),
)


def is_own(name: str) -> bool:
    """Whether a file of a run names it or holds its times; the others are the same for the same research."""
    return name in _OWN or name.endswith(".warc.gz")


_FOREIGN = re.compile(
    r"(FATHOM|PREFECT|AWS|OPENAI|ANTHROPIC|AZURE|GEMINI|GOOGLE|LITELLM|TAVILY|SEARXNG|OLLAMA)_.*|.*_API_(KEY|BASE)|.*_BASE_URL|.*_PROXY",
    re.IGNORECASE,
)
_THIRD_PARTY_WARNINGS = (
    # Whole pages are drawn.
    "ignore:Generating overly large repr:hypothesis.errors.HypothesisWarning",
    # Hypothesis sees numbers drawn by any thread, also by Prefect's threads.
    "ignore:Do not use the `random` module inside strategies:hypothesis.errors.HypothesisDeprecationWarning",
    # litellm's types, which pydantic reads when a model is first called.
    "ignore:Item .* on TypedDict class .* is using the `ReadOnly` qualifier:UserWarning",
    # Prefect's client that asks for the server's default result storage is never closed.
    r"ignore:unclosed <socket.*raddr=\('127\.0\.0\.1', 2\d{4}\)>:ResourceWarning",
)
_RARELY = ("LATE_RUNS", "PAUSE_EXPIRATIONS", "CLEANUP_RECONCILER", "FOREMAN", "CANCELLATION_CLEANUP")
"""What Prefect's server looks after every few seconds and no test waits for: a third of what an idle server costs."""
_PASSED_ON = (
    *("PATH", "LANG", "LC_ALL", "TMPDIR", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "SSL_CERT_FILE"),
    "PYTHONDONTWRITEBYTECODE",
)


# A change is judged by what it changes, so the examples are drawn alike each time; `make test-long` draws new ones.
hypothesis.settings.register_profile("alike", max_examples=50, deadline=None, derandomize=True, database=None)
hypothesis.settings.register_profile("new", max_examples=300, deadline=None)


def pytest_configure(config: pytest.Config) -> None:
    """Replace the developer's settings by this session's; no test depends on how busy the machine is."""
    hypothesis.settings.load_profile(config.getoption("--hypothesis-profile") or "alike")
    signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in a shell's background, also by children
    for name in [name for name in os.environ if _FOREIGN.fullmatch(name)]:
        del os.environ[name]
    session = tempfile.mkdtemp(prefix="fathom-tests-")
    config.add_cleanup(lambda: shutil.rmtree(session, ignore_errors=True))
    trusted = Path(session, "trusted.pem")
    trusted.write_text("".join(certifi.contents().partition("-----END CERTIFICATE-----")[:2]), encoding="utf-8")
    os.environ.update(
        # Each HTTP client reads all certificates that it trusts, 16 ms of them, and no server here has one.
        SSL_CERT_FILE=str(trusted),
        XDG_CACHE_HOME=f"{session}/cache",
        XDG_CONFIG_HOME=f"{session}/config",  # where no file of settings is
        XDG_STATE_HOME=f"{session}/state",
        PREFECT_HOME=f"{session}/prefect",
        PREFECT_API_URL=f"http://127.0.0.1:{quiet_port()}/api",
        PREFECT_SERVER_ANALYTICS_ENABLED="false",
        DO_NOT_TRACK="1",
        # litellm loads tables from the network at import otherwise.
        LITELLM_LOCAL_MODEL_COST_MAP="True",
        LITELLM_LOCAL_ANTHROPIC_BETA_HEADERS="True",
        LITELLM_MODE="PRODUCTION",
        LITELLM_LOG="ERROR",
        AWS_EC2_METADATA_DISABLED="true",
        AWS_CONFIG_FILE=os.devnull,
        AWS_SHARED_CREDENTIALS_FILE=os.devnull,
    )
    for line in _THIRD_PARTY_WARNINGS:
        config.addinivalue_line("filterwarnings", line)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Have the modules and tests looked through for garbage neither now nor later: they last as long as the session."""
    gc.disable()
    result = yield
    gc.freeze()
    gc.enable()
    return result


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Let one process import a module first, so that the others find its assertions rewritten and its code compiled."""
    if not isinstance(collector, pytest.Module):
        return (yield)
    with collector.path.open() as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        return (yield)


def _ports() -> Iterator[int]:
    """Yield ports that no outgoing connection takes, as they lie below the ephemeral ones, and no other worker."""
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")) % 10
    yield from random.sample(range(20_000 + 1_000 * worker, 21_000 + 1_000 * worker), 1_000)


_PORTS = _ports()


def quiet_port() -> int:
    """Return a port that nothing listens on, another one at each call: it stays free until its server starts."""
    for port in _PORTS:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)):
                return port
    raise RuntimeError("no free port")


@pytest.fixture
def stubs() -> Iterator[Stubs]:
    """A scripted model and search, empty of requests; `stubs.settings` may be changed at any time.

    Runs are short: each step makes one search, and finds two pages, which are read, noted, cited in claims and checked.
    """
    with serving(Settings(breadth=1, results=2)) as running:
        for state in (services.circuit_of, services.pulse_of, services.spacing_of):
            state.cache_clear()  # a service of an earlier test may have had the same port
        yield running


@pytest.fixture
def wide(stubs: Stubs) -> None:
    """Two searches in each step, each with all the pages that are asked for: for what needs several of them."""
    stubs.settings.breadth, stubs.settings.results = 2, 0


def new_ledger() -> Ledger:
    """Return the account of a run that has nothing else."""
    return Ledger(Budget(), ArtifactStore(f"memory://{uuid.uuid4()}"), "ledger")


async def ask_model(
    call: ModelCall, ledger: Ledger | None = None, calls: ModelCallSettings | None = None
) -> Completion:
    """Answer one request by the models of the environment."""
    async with aclosing(ModelBackend(Environment.read(), ledger or new_ledger(), calls)) as models:
        return await models.complete(call)


@pytest.fixture
def providers(stubs: Stubs, monkeypatch: pytest.MonkeyPatch) -> Stubs:
    """The stubs, set as this process's model and search."""
    for name, value in stubs.env.items():
        monkeypatch.setenv(name, value)
    return stubs


@pytest.fixture
def short_rests(monkeypatch: pytest.MonkeyPatch) -> None:
    """A service that fails rests for 0.1 seconds, then 0.2; during longer rests it is not waited for."""
    monkeypatch.setattr(services, "REST_SECONDS", 0.1)
    monkeypatch.setattr(services, "MAX_WAIT", 0.3)


@dataclass(frozen=True)
class PrefectServer:
    """A running Prefect server. `env` is what a process needs to use it."""

    api_url: str
    env: dict[str, str]
    log: Path


@pytest.fixture(scope="session")
def new_database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database of Prefect without runs: making its tables takes longer than starting a server."""
    run = os.environ.get("PYTEST_XDIST_TESTRUNUID", "")  # the same in all processes of a session
    folder = tmp_path_factory.getbasetemp().parent / f"database-{run}" if run else tmp_path_factory.mktemp("database")
    folder.mkdir(exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "ready").exists():
            command = [sys.executable, "-m", "prefect", "server", "database", "upgrade", "--yes"]
            subprocess.run(command, env=base_env() | {"PREFECT_HOME": str(folder)}, check=True, capture_output=True)
            (folder / "ready").touch()
    return folder / "prefect.db"


@pytest.fixture(scope="session")
def prefect_server(new_database: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[PrefectServer]:
    """A real Prefect server on SQLite; this process already points at it."""
    env = {name: value for name, value in os.environ.items() if name.startswith("PREFECT_")}
    Path(env["PREFECT_HOME"]).mkdir(exist_ok=True)
    shutil.copy(new_database, env["PREFECT_HOME"])
    api_url = env["PREFECT_API_URL"]
    log = tmp_path_factory.mktemp("prefect") / "server.log"
    url = httpx.URL(api_url)
    command = server_command(url.port or 0)
    rare = {f"PREFECT_SERVER_SERVICES_{name}_LOOP_SECONDS": "60" for name in _RARELY}
    with log.open("wb") as output:
        process = subprocess.Popen(
            command, stdout=output, stderr=output, env=base_env() | env | rare, start_new_session=True
        )
    try:
        _wait_until_healthy(f"{api_url}/health", process, log)
        yield PrefectServer(api_url, env, log)
        _drain_prefect()
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        try:
            process.wait(15)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


@pytest.fixture(scope="module")
def served(prefect_server: PrefectServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A Fathom server without sign-in and a worker; runs of other tests of the module may be in its store.

    For longer than that it is not kept: a worker that waits for runs, and the server that it asks, cost a second of a
    processor each minute, and starting both a third of one.
    """
    from fathom.service.options import Options
    from tests.server import served_with

    root = tmp_path_factory.mktemp("served")
    with served_with(Options(str(root), port=quiet_port())) as running:
        yield running


@pytest.fixture
async def quiet(prefect_server: PrefectServer) -> None:
    """Wait until the server has written down the last run: it answers 503 until then, and Prefect waits two seconds."""
    async with httpx.AsyncClient(base_url=prefect_server.api_url) as client:
        taken = 0
        while taken < 3:
            answer = await client.post("/flows/", json={"name": f"probe-{taken}"})
            taken = 0 if answer.status_code == httpx.codes.SERVICE_UNAVAILABLE else taken + 1
            await asyncio.sleep(0.05)


def _drain_prefect() -> None:
    """Let this process send the logs and events of its flow runs while there is a server to take them."""
    from prefect.events.worker import EventsWorker
    from prefect.logging.handlers import APILogWorker

    APILogWorker.drain_all(timeout=10)
    EventsWorker.drain_all(timeout=10)


def _wait_until_healthy(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + 240  # the first start migrates the database: half a minute on a busy machine
    while time.monotonic() < deadline and process.poll() is None:
        try:
            if httpx.get(url, timeout=2).is_success:
                return
        except httpx.TransportError:
            time.sleep(0.2)
    raise RuntimeError(f"the Prefect server did not start:\n{log.read_text()[-4_000:]}")


@dataclass(frozen=True)
class Bucket:
    """An empty bucket. `env` is what a process needs to use it; this process has it set."""

    url: str  # s3://name
    env: dict[str, str]


@pytest.fixture(scope="session")
def s3_endpoint() -> Iterator[str]:
    """Address of an S3 server for the session, which looks at a condition and writes in one step, as S3 does."""
    from moto.s3.responses import S3Response
    from moto.server import ThreadedMotoServer

    writing, put_object = threading.Lock(), S3Response.put_object

    def put_alone(self: S3Response) -> Any:
        with writing:
            return put_object(self)

    server = ThreadedMotoServer("127.0.0.1", port=0, verbose=False)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(S3Response, "put_object", put_alone)
        server.start()
        host, port = server.get_host_and_port()
        yield f"http://{host}:{port}"
        server.stop()


@pytest.fixture
def moto_s3(s3_endpoint: str, monkeypatch: pytest.MonkeyPatch) -> Bucket:
    """A fresh bucket on the session's S3 server."""
    import boto3

    env = {
        "AWS_ACCESS_KEY_ID": "stub",
        "AWS_SECRET_ACCESS_KEY": "stub",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_ENDPOINT_URL": s3_endpoint,
    }
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    name = f"fathom-{uuid.uuid4().hex[:12]}"
    client = boto3.client("s3")
    client.create_bucket(Bucket=name)
    client.close()
    return Bucket(f"s3://{name}", env)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Chromium, where it is installed."""
    from playwright.sync_api import sync_playwright

    program = next(filter(None, map(shutil.which, PROGRAMS)), None)
    if not program:
        pytest.skip("Chromium is not installed")
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=program, args=["--no-sandbox", "--disable-gpu"])
        yield chromium
        chromium.close()


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty home directory, XDG folders included, for this process and for `fathom_cli`."""
    folder = tmp_path / "home"
    folder.mkdir()
    for name, value in _home_env(folder).items():
        monkeypatch.setenv(name, value)
    return folder


def _home_env(folder: Path) -> dict[str, str]:
    return {
        "HOME": str(folder),
        "XDG_CACHE_HOME": str(folder / ".cache"),
        "XDG_CONFIG_HOME": str(folder / ".config"),
        "XDG_DATA_HOME": str(folder / ".local/share"),
        "XDG_STATE_HOME": str(folder / ".local/state"),
    }


def base_env() -> dict[str, str]:
    """What a child process needs of this one's environment, and nothing else of it."""
    paths = [str(ROOT), *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
    env = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
    own = {"PYTHONPATH": os.pathsep.join(paths), "HOME": os.environ.get("HOME", "/")}
    return {**env, **own, "FATHOM_WARM_SECONDS": "0"}  # each command is a process that has nothing loaded


class FathomCLI(Protocol):
    """Runs `fathom` with the arguments; `env` comes on top of a clean environment."""

    def __call__(
        self, args: Sequence[str], env: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]: ...


@pytest.fixture(scope="session")
def command_forks() -> Iterator[Forks]:
    """A process that has imported what commands need, and forks for each."""
    with forking(base_env(), COMMANDS) as forks:
        yield forks


@pytest.fixture(scope="session")
def run_forks(prefect_server: PrefectServer) -> Iterator[Forks]:
    """A process that has imported what runs need, Prefect and litellm with it, and forks for each."""
    with forking({**base_env(), **prefect_server.env}, RUNS) as forks:
        yield forks


class Forked(Protocol):
    """Starts `fathom` with the arguments and with nothing else in its environment, in the folder of the checkout."""

    def __call__(self, env: Mapping[str, str], *arguments: str) -> Fork: ...


@pytest.fixture
def forked(run_forks: Forks, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Forked]:
    """Commands beside each other, as `tests.processes.fathom` starts them, without their start-up."""
    folder = tmp_path_factory.mktemp("forked")
    started: list[Fork] = []

    def start(env: Mapping[str, str], *arguments: str) -> Fork:
        started.append(run_forks.start(env, folder / f"{len(started)}", arguments))
        return started[-1]

    yield start
    for process in started:  # what a test that failed has left running
        process.tell()
        process.kill()
        process.wait()


@pytest.fixture
def fathom_cli(
    request: pytest.FixtureRequest,
    command_forks: Forks,
    home: Path,
    tmp_path: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> FathomCLI:
    """The command line in a process of its own, with an empty home, in the test's temporary folder."""
    output = tmp_path_factory.mktemp("output") / "out"

    def run(args: Sequence[str], env: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
        # A server that a developer runs must not be found.
        wanted = {**base_env(), **_home_env(home), "PREFECT_SERVER_API_PORT": str(quiet_port()), **(env or {})}
        # A replay imports Prefect, though it asks no server.
        uses_prefect = wanted.get("PREFECT_API_URL") == os.environ["PREFECT_API_URL"] or args[:1] == ["replay"]
        forks = request.getfixturevalue("run_forks") if uses_prefect else command_forks
        process = forks.start(wanted, output, args, tmp_path)
        code = process.wait()
        return subprocess.CompletedProcess(args, code, *process.communicate())

    return run

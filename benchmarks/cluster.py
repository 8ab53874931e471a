"""A small cluster on one machine: PostgreSQL, Redis, Prefect servers behind HAProxy, an S3 server, scripted providers.

Real programs, found on the PATH (Debian: `postgresql redis-server haproxy`); `rclone` and `prefect-redis` come from
Python packages. Each is a session of its own, so that it can be killed with its children and its processor time read.
"""

from __future__ import annotations

import getpass
import os
import shutil
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path

from benchmarks.pipeline import ROOT, environment
from fathom.flows.server import server_command

_TICKS = os.sysconf("SC_CLK_TCK")
_DEBIAN = Path("/usr/lib/postgresql")
_DATABASE = ("postgres", "initdb", "redis-server", "haproxy")
START_SECONDS = 300


class Service:
    """A program that can be killed and started again; its log is appended to."""

    def __init__(self, name: str, command: Sequence[str], env: Mapping[str, str], folder: Path) -> None:
        self.name = name
        self._command = list(command)
        self._env = dict(env)
        self._log = folder / f"{name}.log"
        self._ended = 0.0  # processor seconds of the processes that were killed
        self.peak_mb = 0.0
        self.start()

    def start(self) -> None:
        """Start the program."""
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                self._command, env=self._env, cwd=ROOT, stdout=log, stderr=log, start_new_session=True
            )

    @property
    def pid(self) -> int:
        """The id of its first process."""
        return self._process.pid

    @property
    def running(self) -> bool:
        """Whether it has not ended."""
        return self._process.poll() is None

    def kill(self) -> None:
        """Kill it and all of its children, as a power cut would."""
        self._ended += self._seconds()
        for pid in [pid for pid, _ in self._processes()]:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        self._process.wait()

    def stop(self) -> None:
        """End it politely."""
        self._process.send_signal(signal.SIGINT if self.name == "postgres" else signal.SIGTERM)
        try:
            self._process.wait(30)
        except subprocess.TimeoutExpired:
            self.kill()

    def cpu(self, *, children: bool = True) -> float:
        """Return the processor seconds that it has used."""
        return self._ended + self._seconds(children=children)

    def look(self) -> None:
        """Take note of how much memory it has used at most."""
        status = Path(f"/proc/{self.pid}/status")
        if status.exists():
            peak = [line.split()[1] for line in status.read_text().splitlines() if line.startswith("VmHWM")]
            self.peak_mb = max([self.peak_mb, *(int(kilobytes) / 1024 for kilobytes in peak)])

    def _seconds(self, *, children: bool = True) -> float:
        family = self._processes()
        if not children:
            return sum(sum(map(int, fields[11:13])) for pid, fields in family if pid == self.pid) / _TICKS
        # A process that has ended counts with its parent: fields 16 and 17.
        return sum(sum(map(int, fields[11:15])) for _, fields in family) / _TICKS

    def _processes(self) -> list[tuple[int, list[str]]]:
        """Return the ids of the process and its descendants, with the fields of their `stat` after the name."""
        known: dict[int, list[str]] = {}
        for path in Path("/proc").glob("[0-9]*/stat"):
            try:
                known[int(path.parent.name)] = path.read_text().rpartition(")")[2].split()
            except OSError:
                continue
        family = {self._process.pid}
        while more := {pid for pid, fields in known.items() if int(fields[1]) in family} - family:
            family |= more
        return [(pid, fields) for pid, fields in known.items() if pid in family]


class Cluster:
    """The services, by name: `postgres redis balancer server-1 ... services s3 providers worker-1 ...`.

    With no `postgres`, there is one server on SQLite and neither Redis nor a balancer; with no `s3`, the store is a
    folder.

    Raises:
        SystemExit: something that it needs is not installed, or did not start; nothing is left running.
    """

    def __init__(
        self, home: Path, port: int, *, servers: int = 2, postgres: bool = True, s3: bool = True, stub: Sequence[str]
    ) -> None:
        self._programs = _programs(postgres=postgres, s3=s3)
        self.home = home
        self.services: dict[str, Service] = {}
        self._port = port
        self.api = f"http://127.0.0.1:{port}/api"
        self.stub_log = home / "providers.jsonl"
        self._settings: dict[str, str] = {}
        self._store = {"FATHOM_ARTIFACTS": str(home / "store")}
        try:
            self._start_prefect(servers if postgres else 0)
            if s3:
                self._start_s3()
            self._start_providers(stub)
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """Stop everything, what started last first."""
        for service in reversed(self.services.values()):
            service.stop()

    def env(self, **extra: str) -> dict[str, str]:
        """Return the environment of workers and commands."""
        return environment(self.home, **self._providers, **self._store, PREFECT_API_URL=self.api, **extra)

    def start_fathom(self, name: str, *command: str, **extra: str) -> Service:
        """Start a command of Fathom that goes on, such as `worker`."""
        return self._add(name, [sys.executable, "-m", "fathom", *command], self.env(**extra))

    def cpu(self, *names: str) -> float:
        """Return the processor seconds of the services whose names begin so."""
        return sum(service.cpu() for name, service in self.services.items() if name.startswith(names))

    def _add(self, name: str, command: Sequence[str], env: Mapping[str, str] | None = None) -> Service:
        self.services[name] = Service(name, command, env or environment(self.home, **self._settings), self.home)
        return self.services[name]

    def _start_prefect(self, servers: int) -> None:
        """Start so many servers with a database of their own; 0: one on SQLite."""
        if servers:
            self._start_database()
            self._start_redis()
        ports = [self._port + 10 + n for n in range(servers)] or [self._port]
        for number, own in enumerate(ports, 1):
            self._start_server(number, own, alone=not servers)
        if servers:
            self._add("services", [sys.executable, "-m", "prefect", "server", "services", "start"])
            self._start_balancer(ports)

    def _start_database(self) -> None:
        data = self.home / "postgres"
        data.mkdir()
        root = getpass.getuser() == "root"  # for whom PostgreSQL does not run
        if root:
            shutil.chown(data, "postgres")
            self.home.chmod(0o755)
        before = ["runuser", "-u", "postgres", "--"] if root else []
        command = [*before, self._programs["initdb"], "-D", str(data), "-U", "prefect", "-A", "trust", "-E", "UTF8"]
        subprocess.run(command, check=True, capture_output=True, cwd=data)
        port = str(self._port + 1)
        options = ["-D", str(data), "-p", port, "-k", str(data), "-h", "127.0.0.1", "-c", "max_connections=300"]
        command = [*before, self._programs["postgres"], *options]
        database = self._add("postgres", command, {**environment(self.home)})
        address = f"postgresql+asyncpg://prefect@127.0.0.1:{port}/postgres"
        self._settings |= {
            "PREFECT_API_DATABASE_CONNECTION_URL": address,
            "PREFECT_API_DATABASE_MIGRATE_ON_START": "false",
        }
        upgrade = [sys.executable, "-m", "prefect", "server", "database", "upgrade", "-y"]
        env = environment(self.home, **self._settings)
        wait_until(lambda: not database.running or _succeeds(upgrade, env), "the migration")
        if not database.running:
            raise SystemExit(f"PostgreSQL has ended; is port {port} taken? See {self.home / 'postgres.log'}")

    def _start_redis(self) -> None:
        port = str(self._port + 2)
        self._add("redis", [self._programs["redis-server"], "--port", port, "--save", "", "--dir", str(self.home)])
        self._settings |= {
            "PREFECT_MESSAGING_BROKER": "prefect_redis.messaging",
            "PREFECT_MESSAGING_CACHE": "prefect_redis.messaging",
            "PREFECT_SERVER_EVENTS_CAUSAL_ORDERING": "prefect_redis.ordering",
            "PREFECT_SERVER_CONCURRENCY_LEASE_STORAGE": "prefect_redis.lease_storage",
            "PREFECT_REDIS_MESSAGING_HOST": "127.0.0.1",
            "PREFECT_REDIS_MESSAGING_PORT": port,
            "PREFECT_SERVER_DOCKET_URL": f"redis://127.0.0.1:{port}/1",
        }

    def _start_server(self, number: int, port: int, *, alone: bool) -> None:
        command = server_command(port)
        self._add(f"server-{number}", [*command, *([] if alone else ["--no-services"])])
        # The second one starts when the first has filled the new database: else one of them fails.
        wait_until(lambda: answers(f"http://127.0.0.1:{port}/api/health"), f"server {number}")

    def _start_balancer(self, ports: Sequence[int]) -> None:
        backends = "\n".join(
            f"  server s{port} 127.0.0.1:{port} check inter 500 fall 2 rise 1 on-marked-down shutdown-sessions"
            for port in ports
        )
        (self.home / "haproxy.cfg").write_text(
            "global\n  log stdout format raw local0\ndefaults\n  log global\n  option httplog\n"
            "  mode http\n  timeout connect 2s\n  timeout client 300s\n  timeout server 300s\n"
            "  timeout tunnel 1h\n  retries 3\n  option redispatch\n"
            f"frontend api\n  bind 127.0.0.1:{self._port}\n  default_backend servers\n"
            f"backend servers\n  balance leastconn\n  option httpchk GET /api/health\n"
            f"  retry-on conn-failure empty-response\n{backends}\n"
        )
        self._add("balancer", [self._programs["haproxy"], "-f", str(self.home / "haproxy.cfg"), "-db"])
        wait_until(lambda: answers(f"{self.api}/health"), "the balancer")

    def _start_s3(self) -> None:
        (self.home / "s3" / "fathom").mkdir(parents=True)
        port = self._port + 3
        options = ["--auth-key", "stub,stub-secret", "--vfs-cache-mode", "off", "--config", os.devnull]
        command = [self._programs["rclone"], "serve", "s3", *options]
        self._add("s3", [*command, "--addr", f"127.0.0.1:{port}", str(self.home / "s3")])
        self._store = {
            "FATHOM_ARTIFACTS": "s3://fathom/store",
            "AWS_ACCESS_KEY_ID": "stub",
            "AWS_SECRET_ACCESS_KEY": "stub-secret",
            "AWS_DEFAULT_REGION": "us-east-1",
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}",
        }

    def _start_providers(self, options: Sequence[str]) -> None:
        port_file = self.home / "providers.port"
        port_file.unlink(missing_ok=True)
        command = [sys.executable, "-m", "tests.stubs", "--port-file", str(port_file), "--log", str(self.stub_log)]
        self._add("providers", [*command, *options])
        wait_until(port_file.exists, "the providers")
        url = f"http://127.0.0.1:{port_file.read_text().strip()}"
        self._providers = {
            "OPENAI_API_KEY": "stub",
            "OPENAI_BASE_URL": f"{url}/v1",
            "TAVILY_API_KEY": "stub",
            "TAVILY_BASE_URL": url,
        }


def _programs(*, postgres: bool, s3: bool) -> dict[str, str]:
    """Return where the programs are that a cluster needs, by name.

    Raises:
        SystemExit: some are not installed, or a package of Python is not.
    """
    folders = [Path(sys.executable).parent, *sorted(_DEBIAN.glob("*/bin"), reverse=True)]
    path = os.pathsep.join([*map(str, folders), os.environ["PATH"], "/usr/sbin"])
    names = [*(_DATABASE if postgres else ()), *(["rclone"] if s3 else [])]
    found = {name: shutil.which(name, path=path) for name in names}
    missing = [name for name, where in found.items() if not where]
    if postgres and not find_spec("prefect_redis"):
        missing.append("prefect-redis (a package of Python)")
    if missing:
        raise SystemExit(f"not installed: {', '.join(missing)}")
    return {name: where for name, where in found.items() if where}


def wait_until(condition: Callable[[], bool], what: str, seconds: float = START_SECONDS) -> None:
    """Wait for something to become true.

    Raises:
        SystemExit: it did not in that many seconds.
    """
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise SystemExit(f"{what} did not start in {seconds:.0f} s")
        time.sleep(0.3)


def answers(url: str) -> bool:
    """Whether a server answers, within two seconds and with success."""
    try:
        with urllib.request.urlopen(url, timeout=2):
            return True
    except OSError:
        return False


def _succeeds(command: Sequence[str], env: Mapping[str, str]) -> bool:
    return subprocess.run(command, env=dict(env), capture_output=True, check=False).returncode == 0

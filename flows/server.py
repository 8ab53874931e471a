"""The Prefect API that a command uses: the configured one, a local one that is running, or one that it starts.

Called before Prefect is imported, because that is when Prefect reads its settings. Besides
`fathom.config.environment`, only this module uses the environment: it sets Prefect's own variables.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import tomllib
from base64 import b64encode
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path
from typing import Any, TextIO
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import BaseHandler, HTTPRedirectHandler, OpenerDirector, ProxyHandler, Request, build_opener

from fathom.errors import ServerUnreachable

DEFAULT_PORT = 4200
START_SECONDS = 120  # the first start makes the database: half a minute on a busy machine
PROBE_SECONDS = 3  # seconds after which the user is told that a listening server is waited for
BUSY_SECONDS = 300
MOST_AT_ONCE = 200
"""The most flow runs, or other records, that a Prefect server returns for one request."""


@dataclass(frozen=True)
class ServerInfo:
    """A Prefect API that answers; `started`: whether this call started it."""

    api_url: str
    started: bool = False

    @property
    def ui_url(self) -> str:
        """Address of its user interface."""
        return _setting("PREFECT_UI_URL") or self.api_url.removesuffix("/api")


def ensure_api(say: Callable[[str], object] | None = None) -> ServerInfo:
    """Return a Prefect API that answers, and make Prefect use it in this process.

    If none is configured, a local server is started in the background; it keeps running for the next command. `say`
    gets one line then, and one when a busy server is waited for; by default they are written to stderr.

    Raises:
        ServerUnreachable: the configured API does not answer, no server could be started, or one was busy for too long.
    """
    say = say or _to_stderr
    return find_api(say) or _use(_start_once(say))


def find_api(say: Callable[[str], object] | None = None) -> ServerInfo | None:
    """Return and use the configured Prefect API or a local one that is running; None if there is neither.

    Raises:
        ServerUnreachable: the configured API does not answer, or one was busy for too long.
    """
    say = say or _to_stderr
    quieten()
    if url := _setting("PREFECT_API_URL"):
        url = url.rstrip("/")
        if not _answers(url, say):
            raise ServerUnreachable(
                f"The Prefect API {url} does not answer.",
                next_step="start it, or unset PREFECT_API_URL in the environment or Prefect profile for a local one",
            )
        return _use(ServerInfo(url))
    return _use(ServerInfo(running)) if (running := _running(say)) else None


def ask_api(path: str, body: object, seconds: float = BUSY_SECONDS) -> Any:
    """Return the API's answer to a POST request; None if it refuses the request or does not answer in time."""
    url = f"{_setting('PREFECT_API_URL')}/{path}"
    headers = {"Content-Type": "application/json"}
    if key := _setting("PREFECT_API_KEY"):
        headers["Authorization"] = f"Bearer {key}"
    elif credentials := _setting("PREFECT_API_AUTH_STRING"):
        headers["Authorization"] = f"Basic {b64encode(credentials.encode()).decode()}"
    try:
        request = Request(url, json.dumps(body).encode(), headers)  # noqa: S310 - the configured address
        with _opener(url, _NoRedirect()).open(request, timeout=seconds) as response:
            return json.load(response)
    except (OSError, HTTPException, ValueError):
        return None


def be_patient() -> None:
    """Make Prefect's client try again for minutes: also after a 500, which a server returns while Redis is gone."""
    os.environ.setdefault("PREFECT_CLIENT_RETRY_EXTRA_CODES", "500")
    os.environ.setdefault("PREFECT_CLIENT_MAX_RETRIES", "10")


def _to_stderr(line: str) -> None:
    sys.stderr.write(f"{line}\n")


def _use(server: ServerInfo) -> ServerInfo:
    os.environ["PREFECT_API_URL"] = server.api_url
    if "prefect.context" in sys.modules:  # where a process was forked that has read its settings
        from prefect.context import refresh_global_settings_context
        from prefect.settings import get_current_settings

        if get_current_settings().api.url != server.api_url:
            refresh_global_settings_context()
    return server


def quieten() -> None:
    """Keep Prefect's log lines off the screen; the API still gets them and shows them on the run's page."""
    if not _setting("PREFECT_LOGGING_LEVEL"):  # a user who sets a level wants to see log lines
        os.environ.setdefault("PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL", "CRITICAL")
        os.environ.setdefault("PREFECT_INTERNAL_LOGGING_LEVEL", "CRITICAL")
    os.environ.setdefault("PREFECT_SERVER_ANALYTICS_ENABLED", "false")
    os.environ.setdefault("DO_NOT_TRACK", "1")  # otherwise Prefect prints a notice about telemetry


def _home() -> Path:
    return Path(os.environ.get("PREFECT_HOME") or Path.home() / ".prefect").expanduser().absolute()


def _setting(name: str) -> str:
    """Return a Prefect setting from the environment, else from the active profile, else an empty string."""
    if value := os.environ.get(name):
        return value
    path = Path(os.environ.get("PREFECT_PROFILES_PATH") or _home() / "profiles.toml").expanduser()
    try:
        profiles = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):  # none, or one that Prefect itself will complain about
        return ""
    active = os.environ.get("PREFECT_PROFILE") or profiles.get("active")
    return str(profiles.get("profiles", {}).get(active, {}).get(name) or "")


# -- a server of this machine -------------------------------------------------------------------------------------


def _local_url(port: int) -> str:
    return f"http://127.0.0.1:{port}/api"


def _running(say: Callable[[str], object]) -> str | None:
    return next((url for url in map(_local_url, _ports()) if _answers(url, say)), None)


def _ports() -> list[int]:
    """Return the port for a local server, and the port chosen last time if another program had taken the first."""
    port = _setting("PREFECT_SERVER_API_PORT") or str(DEFAULT_PORT)
    try:
        chosen = [(_home() / "fathom-server.port").read_text(encoding="ascii").strip()]
    except (OSError, ValueError):
        chosen = []
    if not port.isdecimal():
        how = "set it to a port number, such as 4200"
        raise ServerUnreachable(f"PREFECT_SERVER_API_PORT is {port!r}.", next_step=how)
    return [int(port), *(int(text) for text in chosen if text.isdecimal() and text != port)]


def _start_once(say: Callable[[str], object]) -> ServerInfo:
    """Start a server, or wait for another process that is starting one."""
    home = _home()
    home.mkdir(parents=True, exist_ok=True)
    with _locked(home / "fathom-server.lock"):
        if running := _running(say):
            return ServerInfo(running)
        preferred = _ports()[0]
        for port in filter(_is_free, range(preferred, preferred + 1000)):
            say(f"Starting a Prefect server on http://127.0.0.1:{port}; the first start takes half a minute ...")
            if _start(home, port):
                break
        if port != preferred:
            (home / "fathom-server.port").write_text(str(port), encoding="ascii")
    return ServerInfo(_local_url(port), started=True)


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Lock a file; the lock ends with this process at the latest."""
    import fcntl

    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _start(home: Path, port: int) -> bool:
    """Start a server; False if another program took the port before the server could.

    Raises:
        ServerUnreachable: the server ended, or did not answer in time; or one runs already, at an unknown address.
    """
    pid_file = home / "server.pid"  # read by `prefect server stop`
    if _is_server(_pid(pid_file)):
        raise ServerUnreachable(
            f"A Prefect server (process {_pid(pid_file)}) is running in the background, but does not answer on port "
            f"{port}.",
            next_step="set PREFECT_API_URL to its address, or stop it with `prefect server stop`",
        )
    with (home / "fathom-server.log").open("w+", encoding="utf-8", errors="replace") as log:
        process = _in_background(home, port, log)
        pid_file.write_text(str(process.pid), encoding="ascii")
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline and process.poll() is None:
            with suppress(TimeoutError):  # another program may have the port: then the server ends
                if _is_api(_local_url(port), PROBE_SECONDS):
                    return True
            time.sleep(0.25)
        log.seek(0)
        said = " ".join(log.read().split())[-300:]
    if process.poll() is not None:
        pid_file.unlink(missing_ok=True)
        if not _is_free(port):
            return False
    raise ServerUnreachable(
        f"No Prefect server could be started on port {port}. {said}".strip(),
        next_step="start one with `prefect server start`, and set PREFECT_API_URL if it is not on port 4200",
    )


def server_command(port: int) -> list[str]:
    """Return the command of a Prefect server on this machine."""
    start = ["-m", "fathom.flows.prefect_server", "server", "start"]
    return [sys.executable, *start, "--host", "127.0.0.1", "--port", str(port)]


def _in_background(home: Path, port: int, log: TextIO) -> subprocess.Popen[bytes]:
    """Start the process of a server.

    In its own session: Ctrl-C at the terminal must not reach a server that other commands use. In Prefect's own folder:
    the current one may be removed while the server runs.
    """
    return subprocess.Popen(  # noqa: S603 - no part of the command is user input
        server_command(port),
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=log,
        env={**os.environ, "PREFECT_HOME": str(home)},
        cwd=home,
        start_new_session=True,
    )


def _pid(path: Path) -> int:
    try:
        return int(path.read_text(encoding="ascii"))
    except (OSError, ValueError):
        return 0


def _is_server(pid: int) -> bool:
    """Whether a process is a Prefect server; after a reboot its id may belong to another program."""
    if not pid:
        return False
    try:
        os.kill(pid, 0)
        return b"prefect" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except (ProcessLookupError, PermissionError):
        return False
    except FileNotFoundError:  # no /proc on this system
        return True


def _is_free(port: int) -> bool:
    import socket

    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def _answers(api_url: str, say: Callable[[str], object]) -> bool:
    """Whether a Prefect API answers; while something listens there and is silent, it is waited for.

    Raises:
        ServerUnreachable: it was silent for too long.
    """
    try:
        return _is_api(api_url, PROBE_SECONDS)
    except TimeoutError:
        say(f"The Prefect server at {api_url} is busy; waiting for up to {BUSY_SECONDS // 60} minutes ...")
    try:
        return _is_api(api_url, BUSY_SECONDS)
    except TimeoutError:
        raise ServerUnreachable(
            f"The server at {api_url} is busy: it accepts connections, but did not answer for {BUSY_SECONDS} s.",
            next_step="wait for its runs to end; if it is not a Prefect server, choose another PREFECT_API_URL or "
            "PREFECT_SERVER_API_PORT",
        ) from None


def _is_api(api_url: str, seconds: float) -> bool:
    """Whether a Prefect API answers; an API that asks for credentials counts, and reports that itself later.

    Raises:
        TimeoutError: the connection was accepted, and nothing was said in that many seconds.
    """
    host = urlsplit(api_url).hostname or ""
    try:
        with _opener(api_url).open(f"{api_url}/health", timeout=seconds) as response:
            return bool(response.read(100).strip() == b"true") or host.endswith("prefect.cloud")
    except HTTPError as error:
        with error:
            return error.code in (401, 403) or host.endswith("prefect.cloud")
    except TimeoutError:  # one while connecting is a URLError
        raise
    except (OSError, HTTPException, ValueError):
        return False


class _NoRedirect(HTTPRedirectHandler):
    """Follows no redirect: the key would go with it."""

    def redirect_request(self, *_: object) -> None:
        """Return None: the answer becomes an HTTPError."""


def _opener(url: str, *handlers: BaseHandler) -> OpenerDirector:
    """Return an opener of URLs; local addresses bypass a proxy from the environment."""
    local = urlsplit(url).hostname in ("127.0.0.1", "localhost", "::1")
    return build_opener(*handlers, ProxyHandler({})) if local else build_opener(*handlers)

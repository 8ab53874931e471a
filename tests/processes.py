"""Commands and servers as processes that a test kills, and the proof that nothing finished was done twice."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx

from fathom.flows.server import server_command
from tests.conftest import ROOT, base_env, is_own
from tests.forking import Fork
from tests.stubs import Record, Stubs

__all__ = [
    "AT_ONCE",
    "COMMIT_SECONDS",
    "Kills",
    "OwnServer",
    "asking",
    "end_all",
    "ended_process",
    "fathom",
    "finish",
    "flow_runs",
    "left_behind",
]  # fmt: skip

AT_ONCE = 4  # requests, which a run may be about to make when it is stopped
COMMIT_SECONDS = 2.0  # in which an answer is stored, on a busy machine too

_started: list[subprocess.Popen[str]] = []


def fathom(env: Mapping[str, str], *arguments: str) -> subprocess.Popen[str]:
    """Start the command line afresh. The fixture `forked` starts it in a hundredth of the time."""
    command = [sys.executable, "-m", "fathom", *arguments]
    process = subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT)
    _started.append(process)
    return process


def end_all() -> None:
    """Kill what a test that failed has left running."""
    for process in _started:
        process.kill()
        process.communicate()
    _started.clear()


def finish(process: subprocess.Popen[str] | Fork) -> dict[str, Any]:
    """Return what a command prints with --json, once it has ended well."""
    try:
        printed, errors = process.communicate(timeout=120)
    except subprocess.TimeoutExpired as late:
        raise AssertionError(f"It has not ended after {late.timeout:g} s. It said:\n{late.stderr!s}") from late
    assert process.returncode == 0, errors
    result: dict[str, Any] = json.loads(printed)
    return result


class _Patient(httpx.HTTPTransport):
    """Makes a request again while a Prefect server answers 503: its database is busy."""

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        deadline = time.monotonic() + 120
        while (answer := super().handle_request(request)).status_code == httpx.codes.SERVICE_UNAVAILABLE:
            if time.monotonic() > deadline:
                break
            answer.close()
            time.sleep(0.1)
        return answer


def asking(api_url: str) -> httpx.Client:
    """Return a client of a Prefect server that may be busy; a refused request is an error.

    It waits twice as long as that server waits for its database, so that it always hears what the server says.
    """
    hooks = {"response": [httpx.Response.raise_for_status]}
    return httpx.Client(base_url=api_url, transport=_Patient(), timeout=120, event_hooks=hooks)


def flow_runs(api_url: str) -> list[dict[str, Any]]:
    """Return the runs of a server, the latest first, without those that a schedule has for later."""
    due = {"expected_start_time": {"before_": datetime.now(UTC).isoformat()}}
    wanted = {"sort": "EXPECTED_START_TIME_DESC", "limit": 5, "flow_runs": due}
    with asking(api_url) as client:
        found: list[dict[str, Any]] = client.post("/flow_runs/filter", json=wanted).json()
        return found


def left_behind(result: Mapping[str, Any]) -> dict[str, bytes]:
    """Return what a run stored, without the files that name the run and without half-written, hidden ones."""
    folder = Path(result["artifacts"])
    return {p.name: p.read_bytes() for p in folder.iterdir() if not is_own(p.name) and p.name[0] != "."}


class Kills:
    """When a run was stopped, and what had finished by then."""

    def __init__(self, stubs: Stubs) -> None:
        self._stubs = stubs
        self._moments: list[float] = []

    def after(self, answered: int, kill: Callable[[], object]) -> float:
        """Kill once that many requests were answered and stored, while others are under way; return when.

        No other is answered before, so that the run cannot end however quick it is. Those under way never are.
        """
        self._stubs.settings.answers = answered
        deadline = time.monotonic() + 120
        try:
            while len(self._stubs.answered()) < answered:
                assert time.monotonic() < deadline, "the run makes no progress"
                time.sleep(0.005)
            time.sleep(COMMIT_SECONDS)
            return self.now(kill)
        finally:
            self._stubs.settings.answers = None

    def now(self, kill: Callable[[], object]) -> float:
        """Kill, and return when."""
        moment = time.monotonic()
        self._moments.append(moment)
        kill()
        return moment

    def repeated(self) -> list[Record]:
        """Return the requests that were made again although their answer had been there before a kill."""
        return [
            again
            for moment in self._moments
            for done in self._stubs.requests
            if done.ended is not None and done.ended < moment - COMMIT_SECONDS
            for again in self._stubs.requests
            if again.started > moment and again.fingerprint == done.fingerprint
        ]


class OwnServer:
    """A Prefect server of one test, with a database of its own, which may be killed and started again."""

    def __init__(self, folder: Path, port: int) -> None:
        self.api_url = f"http://127.0.0.1:{port}/api"
        self.env = {
            "PREFECT_HOME": str(folder),
            "PREFECT_API_URL": self.api_url,
            "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
        }
        self._folder = folder
        self._port = port
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it and wait until it answers."""
        self._folder.mkdir(exist_ok=True)
        command = server_command(self._port)
        with (self._folder / "server.log").open("ab") as log:
            self._process = subprocess.Popen(
                command, env={**base_env(), **self.env}, stdout=log, stderr=log, start_new_session=True
            )
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline and self._process.poll() is None:
            try:
                if httpx.get(f"{self.api_url}/health", timeout=2).is_success:
                    return
            except httpx.TransportError:
                time.sleep(0.2)
        raise RuntimeError((self._folder / "server.log").read_text()[-4_000:])

    def kill(self) -> None:
        """Kill it with everything it started."""
        if self._process:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
            self._process = None


def ended_process() -> int:
    """Return the id of a process that has ended."""
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid

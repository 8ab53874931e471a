"""Kill a run at five moments, resume it each time: no call that had finished is made again."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.conftest import ROOT, PrefectServer, base_env
from tests.stubs import Record, Stubs

QUERY = "How do tides form on moons with liquid methane seas?"
MOMENTS = (1, 9, 20, 31, 43)  # answered requests at each kill; an undisturbed run makes 46
COMMIT_SECONDS = 0.1  # an answer that came this shortly before the kill may not have been stored yet


@pytest.fixture
def env(stubs: Stubs, prefect_server: PrefectServer, home: Path) -> dict[str, str]:
    """A process's environment: the session's server, the stubs, an empty home."""
    stubs.settings.llm_delay = stubs.settings.search_delay = 0.15
    return {**base_env(), "HOME": str(home), **prefect_server.env, **stubs.env}


def fathom(env: dict[str, str], *arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "flows.cli", *arguments]
    return subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT)


def finish(process: subprocess.Popen[str]) -> dict[str, Any]:
    printed, errors = process.communicate(timeout=120)
    assert process.returncode == 0, errors
    result: dict[str, Any] = json.loads(printed)
    return result


def flow_runs(server: PrefectServer, **filters: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = httpx.post(
        f"{server.api_url}/flow_runs/filter", json={"sort": "EXPECTED_START_TIME_DESC", "limit": 1, **filters}
    ).json()
    return found


class Kills:
    """When a run was killed, and what had finished by then."""

    def __init__(self, stubs: Stubs) -> None:
        self._stubs = stubs
        self._moments: list[float] = []

    def after(self, answered: int, kill: Callable[[], None]) -> None:
        """Kill once that many requests were answered, a little later, so that others are under way."""
        deadline = time.monotonic() + 90
        while sum(r.ended is not None for r in self._stubs.requests) < answered:
            assert time.monotonic() < deadline, "the run makes no progress"
            time.sleep(0.005)
        time.sleep(COMMIT_SECONDS)
        self._moments.append(time.monotonic())
        kill()

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


def left_behind(result: dict[str, Any]) -> dict[str, bytes]:
    """Return what a run stored, without the files that name the run."""
    folder = Path(result["artifacts"])
    return {p.name: p.read_bytes() for p in folder.iterdir() if p.name not in ("run.json", "result.json")}


@pytest.fixture
def undisturbed(stubs: Stubs, env: dict[str, str], tmp_path: Path) -> dict[str, bytes]:
    """What a run leaves that nobody kills; every request it makes is different, so a repetition can be told."""
    arguments = ["--model", "openai/stub", "--json", "--quiet", "--artifacts", str(tmp_path / "undisturbed")]
    result = finish(fathom(env, "research", QUERY, *arguments))
    assert len({record.fingerprint for record in stubs.requests}) == len(stubs.requests) > MOMENTS[-1]
    stubs.requests.clear()
    return left_behind(result)


def test_a_killed_adhoc_run_repeats_nothing(
    stubs: Stubs, env: dict[str, str], prefect_server: PrefectServer, undisturbed: dict[str, bytes], tmp_path: Path
) -> None:
    arguments = ["--model", "openai/stub", "--json", "--quiet", "--artifacts", str(tmp_path / "killed")]
    process = fathom(env, "research", QUERY, *arguments)
    kills = Kills(stubs)
    run_id = ""
    for answered in MOMENTS:
        kills.after(answered, process.kill)
        process.communicate()
        run_id = run_id or flow_runs(prefect_server)[0]["id"]
        process = fathom(env, "resume", run_id, "--json", "--quiet")
    result = finish(process)
    assert result["status"] == "complete"
    assert result["run_id"] == run_id
    assert kills.repeated() == []
    assert left_behind(result) == undisturbed


def test_a_run_is_not_resumed_without_the_key_it_needs(
    stubs: Stubs, env: dict[str, str], prefect_server: PrefectServer, tmp_path: Path
) -> None:
    arguments = ["--model", "openai/stub", "--quiet", "--artifacts", str(tmp_path)]
    process = fathom(env, "research", QUERY, *arguments)
    Kills(stubs).after(2, process.kill)
    process.communicate()
    run_id = flow_runs(prefect_server)[0]["id"]
    without = {name: value for name, value in env.items() if name != "OPENAI_API_KEY"}
    resumed = fathom(without, "resume", run_id, "--quiet")
    _printed, said = resumed.communicate(timeout=60)
    assert resumed.returncode == 2
    assert "E4003" in said
    assert "OPENAI_API_KEY" in said
    assert finish(fathom(env, "resume", run_id, "--json", "--quiet"))["status"] == "complete"


@pytest.fixture
def worker(env: dict[str, str], tmp_path: Path) -> Iterator[None]:
    """Deploy everything to a process work pool and run a worker on it."""
    prefect = [sys.executable, "-m", "prefect", "--no-prompt"]
    for command in (["work-pool", "create", "fathom", "--type", "process", "--overwrite"], ["deploy", "--all"]):
        done = subprocess.run([*prefect, *command], env=env, cwd=ROOT, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
    polling = {**env, "PREFECT_WORKER_QUERY_SECONDS": "1"}
    with (tmp_path / "worker.log").open("wb") as log:
        command = [*prefect, "worker", "start", "--pool", "fathom"]
        process = subprocess.Popen(command, env=polling, cwd=ROOT, stdout=log, stderr=log, start_new_session=True)
    yield
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()


@pytest.mark.usefixtures("worker")
def test_a_killed_worker_run_repeats_nothing(
    stubs: Stubs, env: dict[str, str], prefect_server: PrefectServer, undisturbed: dict[str, bytes], tmp_path: Path
) -> None:
    settings = json.dumps({"model": "openai/stub", "artifacts": str(tmp_path / "deployed")})
    command = ["deployment", "run", "deep-research/on-demand", "-p", f"query={QUERY}", "-p", f"settings={settings}"]
    started = subprocess.run(
        [sys.executable, "-m", "prefect", *command], env=env, cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert started.returncode == 0, started.stdout + started.stderr
    run_id = flow_runs(prefect_server)[0]["id"]

    def kill() -> None:
        pid = httpx.get(f"{prefect_server.api_url}/flow_runs/{run_id}").json()["infrastructure_pid"]
        os.kill(int(pid.rpartition(":")[2]), signal.SIGKILL)

    kills = Kills(stubs)
    process: subprocess.Popen[str] | None = None
    for answered in MOMENTS:
        kills.after(answered, kill)
        if process:
            process.kill()
            process.communicate()
        process = fathom(env, "resume", run_id, "--json", "--quiet")
    assert process
    result = finish(process)
    assert result["status"] == "complete"
    assert kills.repeated() == []
    assert left_behind(result) == undisturbed

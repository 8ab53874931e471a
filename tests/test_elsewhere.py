"""Durable tasks that a task runner sends to other processes: results are stored there, and at once."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from prefect import flow
from prefect.futures import PrefectFuture
from prefect.task_runners import ProcessPoolTaskRunner

from fathom.storage.store import ArtifactStore
from fathom.tasks.durable import computed_task, durable_run, recorded_task
from tests.conftest import ROOT, PrefectServer, base_env

STEPS, CALLS = 2, 3


@recorded_task(name="call", run_name="call")
async def call(step: int, number: int, _folder: str) -> int:
    """Leave a line behind; the last call of each step does not end before a file says so."""
    leave(Path(_folder, "calls"), f"{step}.{number}\n")
    if number == CALLS - 1 and not Path(_folder, "go on").exists():
        await asyncio.sleep(3_600)
    return step * 10 + number


def leave(path: Path, line: str) -> None:
    with path.open("a") as file:
        file.write(line)


@computed_task(name="step", run_name="step")
async def step(number: int, _folder: str) -> int:
    """Make calls one after another."""
    return sum([await call(number, n, _folder) for n in range(CALLS)])


@flow(task_runner=ProcessPoolTaskRunner(max_workers=STEPS))  # type: ignore[arg-type]  # its type is narrower
async def elsewhere(folder: str, run_key: str) -> int:
    """Run the steps in other processes."""
    with durable_run(ArtifactStore(f"{folder}/store")):
        futures: list[PrefectFuture[int]] = [step.task.submit(n, folder) for n in range(STEPS)]
        return sum([await asyncio.to_thread(future.result) for future in futures])


def calls(folder: Path) -> list[str]:
    path = folder / "calls"
    return path.read_text().split() if path.exists() else []


def test_no_finished_call_is_repeated_by_other_processes(
    prefect_server: PrefectServer, home: Path, tmp_path: Path
) -> None:
    env = {**base_env(), "HOME": str(home), **prefect_server.env}
    command = [sys.executable, "-m", "tests.test_elsewhere", str(tmp_path)]
    with subprocess.Popen(command, env=env, cwd=ROOT, start_new_session=True) as process:
        deadline = time.monotonic() + 100
        while len(calls(tmp_path)) < STEPS * CALLS and time.monotonic() < deadline:
            time.sleep(0.05)
        os.killpg(process.pid, signal.SIGKILL)
    first = calls(tmp_path)
    assert sorted(first) == [f"{step}.{number}" for step in range(STEPS) for number in range(CALLS)]
    (tmp_path / "go on").touch()
    done = subprocess.run(command, env=env, cwd=ROOT, capture_output=True, text=True, timeout=100, check=False)
    assert (done.returncode, done.stdout) == (0, "36\n"), done.stderr
    again = calls(tmp_path)[len(first) :]
    assert sorted(again) == [f"{step}.{CALLS - 1}" for step in range(STEPS)]  # those that were under way


if __name__ == "__main__":
    print(asyncio.run(elsewhere(sys.argv[1], "elsewhere")))

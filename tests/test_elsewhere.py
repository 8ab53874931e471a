"""Durable tasks that a task runner sends to other processes: results are stored there, and at once."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from prefect import flow

from fathom.storage.store import ArtifactStore
from fathom.tasks.durable import durable_run, recorded_task
from tests.conftest import ROOT, PrefectServer, base_env
from tests.elsewhere import CALLS, STEPS
from tests.failing_disk import flushes


def calls(folder: Path) -> list[str]:
    path = folder / "calls"
    return path.read_text().split() if path.exists() else []


def test_no_finished_call_is_repeated_by_other_processes(
    prefect_server: PrefectServer, home: Path, tmp_path: Path
) -> None:
    env = {**base_env(), "HOME": str(home), **prefect_server.env}
    command = [sys.executable, "-m", "tests.elsewhere", str(tmp_path)]
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


async def test_parallel_steps_that_need_the_same_result_make_and_flush_it_once(
    prefect_server: PrefectServer, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = list[str]()

    @recorded_task(name="window", run_name="window", shown=False)
    async def window(role: str) -> int:
        asked.append(role)
        await asyncio.sleep(0.1)
        return 8192

    @flow
    async def together(folder: str) -> list[int]:
        with durable_run(ArtifactStore(folder)):
            return await asyncio.gather(*(window(role) for role in ("judge", "compressor") for _ in range(8)))

    flushed = flushes(monkeypatch, int)
    assert await together(str(tmp_path)) == [8192] * 16
    assert sorted(asked) == ["compressor", "judge"]
    assert len(flushed) == 4  # each result is a file and a name in its folder

"""A flow whose steps run in other processes, as a program of its own: `tests/test_elsewhere.py` kills it.

Each process imports this module, and so neither pytest nor what the tests share.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from prefect import flow
from prefect.futures import PrefectFuture
from prefect.task_runners import ProcessPoolTaskRunner

from fathom.storage.store import ArtifactStore
from fathom.tasks.durable import computed_task, durable_run, recorded_task

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


if __name__ == "__main__":
    print(asyncio.run(elsewhere(sys.argv[1], "elsewhere")))

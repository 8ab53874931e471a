"""What one durable task run costs beyond its own work: `python -m benchmarks.tasks` against the running Prefect API.

Prints milliseconds a task run: created, keyed, looked up, run, its result written to the local disk and committed.
`benchmarks.pipeline` calls it on the server it starts.
"""

from __future__ import annotations

import asyncio
import tempfile
import time

from prefect import flow

from fathom.storage.store import ArtifactStore
from fathom.tasks.durable import durable_run, recorded_task

TASKS = 200


@recorded_task(name="nothing", run_name="nothing {number}")
async def nothing(number: int) -> int:
    """Return at once."""
    return number


@flow(name="benchmark-tasks")
async def many(root: str) -> float:
    """Run the tasks one after another and return the milliseconds of one."""
    with durable_run(ArtifactStore(root)):
        began = time.perf_counter()
        for number in range(TASKS):
            await nothing(number)
        return 1000 * (time.perf_counter() - began) / TASKS


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        print(asyncio.run(many(folder)))

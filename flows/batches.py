"""A batch that a command runs: its flow here, its questions on the workers of a pool or, if there is none, here too.

Imports Prefect: call `flows.server.ensure_api` first.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from typing import Any

from prefect.client.orchestration import get_client
from prefect.client.schemas.objects import WorkerStatus
from prefect.exceptions import ObjectNotFound

from fathom.batch.folder import BATCHES, QUESTIONS
from fathom.batch.questions import lines_of
from fathom.models.batch import BatchQuestion, BatchResult
from fathom.storage.store import ArtifactStore
from flows.batch import research_batch
from flows.deploying import POOL
from flows.local import address, new_run, run_here
from flows.worker import Worker, serving


async def run(
    questions: Sequence[BatchQuestion], request: Mapping[str, Any], say: Callable[[str], object]
) -> BatchResult:
    """Research questions and return how they ended; `request` holds the other parameters of the batch's flow.

    Raises:
        FathomError: the batch failed or was stopped; another one with its run key continues it.
    """
    store = ArtifactStore(request["settings"].artifacts)
    path = f"{BATCHES}/{request['run_key']}/{QUESTIONS}"
    await store.write(path, lines_of(questions).encode())
    pool = await _pool(request["deployment"])
    flow_run = await new_run(research_batch, {**request, "file": store.address(path)})
    say(f"Batch {request['run_key']}  {address(flow_run)}")
    working = await _has_workers(pool)
    if not working:
        say(f"No worker serves the pool {pool!r}: the questions are researched in this process.")
    with nullcontext() if working else serving(Worker(pool, request["at_once"])):
        state = await run_here(research_batch, flow_run)
    result = await state.aresult(raise_on_failure=False)
    if isinstance(result, BaseException):
        raise result
    assert isinstance(result, BatchResult)
    return result


async def _pool(deployment: str) -> str:
    """Return the work pool of a deployment; the usual one if there is no such deployment yet."""
    async with get_client() as client:
        try:
            return (await client.read_deployment_by_name(deployment)).work_pool_name or POOL
        except ObjectNotFound:
            return POOL


async def _has_workers(pool: str) -> bool:
    async with get_client() as client:
        try:
            workers = await client.read_workers_for_work_pool(pool)
        except ObjectNotFound:
            return False
    return any(worker.status is WorkerStatus.ONLINE for worker in workers)

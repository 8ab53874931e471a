"""A batch that a command runs: its flow here, its questions on the workers of a pool or, if there is none, here too.

Imports Prefect: call `fathom.flows.server.ensure_api` first.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager
from typing import Any

import httpx
from prefect.client.orchestration import get_client
from prefect.client.schemas.objects import WorkerStatus
from prefect.exceptions import PrefectHTTPStatusError

from fathom.batch.folder import BATCHES, QUESTIONS
from fathom.batch.questions import lines_of
from fathom.flows.batch import research_batch
from fathom.flows.deploying import POOL, ensure_pool
from fathom.flows.runs.local import address, new_run, run_here
from fathom.flows.submitting import pool_of
from fathom.flows.worker import HEARTBEAT_SECONDS, Worker, serving
from fathom.flows.worker_process import is_dead
from fathom.models.run import BatchQuestion, BatchResult
from fathom.storage.store import ArtifactStore

ASK_SECONDS = HEARTBEAT_SECONDS  # a worker that was killed counts as running for three of them


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
    pool = await pool_of(request["deployment"]) or POOL
    await ensure_pool(pool)
    flow_run = await new_run(research_batch, {**request, "file": store.address(path)})
    say(f"Batch {request['run_key']}  {address(flow_run)}")
    async with _staffed(pool, request["at_once"], say):
        state = await run_here(research_batch, flow_run)
    result = await state.aresult(raise_on_failure=False)
    if isinstance(result, BaseException):
        raise result
    assert isinstance(result, BatchResult)
    return result


@asynccontextmanager
async def _staffed(pool: str, limit: int, say: Callable[[str], object]) -> AsyncIterator[None]:
    """Have a worker in this process inside the block as soon as the pool has none."""
    with ExitStack() as own:

        async def watch() -> None:
            while await _has_workers(pool):  # noqa: ASYNC110 - the server tells nobody
                await asyncio.sleep(ASK_SECONDS)
            say(f"No worker serves the pool {pool!r}: the questions are researched in this process.")
            own.enter_context(serving(Worker(pool, limit)))

        watching = asyncio.create_task(watch())
        try:
            yield
        finally:
            watching.cancel()
            await asyncio.wait([watching])


async def _has_workers(pool: str) -> bool:
    try:
        async with get_client() as client:
            workers = await client.read_workers_for_work_pool(pool)
    except (httpx.HTTPError, PrefectHTTPStatusError):  # asked again
        return True
    return any(worker.status is WorkerStatus.ONLINE and not is_dead(worker.name) for worker in workers)

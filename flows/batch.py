"""A batch: many questions, each in its own flow run on a work pool, and one budget for all.

If a command runs a batch, its flow runs in the command's process, its questions on the workers of a pool or, if there
are none, in the process too. Imports Prefect: call `fathom.flows.server.ensure_api` first.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager
from typing import Annotated, Any

import httpx
from fsspec.core import open as open_file
from prefect import flow
from prefect.client.orchestration import get_client
from prefect.client.schemas.objects import State
from prefect.exceptions import Abort, PrefectHTTPStatusError
from prefect.runtime import flow_run
from prefect.states import Completed, Failed
from pydantic import Field

from fathom.batch.folder import BATCHES, QUESTIONS, dollars, used, words
from fathom.batch.questions import format_of, lines_of, read_questions
from fathom.config.environment import Environment
from fathom.config.groups import BatchBudget
from fathom.config.secrets import Scrubber, guard_logs
from fathom.config.settings import ResearchSettings
from fathom.errors import InvalidInput, RunCancelled
from fathom.flows.deep_research import RunKey
from fathom.flows.deploying import POOL, ensure_pool, living
from fathom.flows.local import address, new_run, run_here
from fathom.flows.runs.states import BATCH
from fathom.flows.submitting import ON_DEMAND, BatchRunner, pool_of
from fathom.flows.worker import Worker, serving
from fathom.models.run import BatchQuestion, BatchResult
from fathom.storage.store import ArtifactStore
from fathom.tasks.durable import current_run_id, current_run_key, run_store
from fathom.tasks.supervision import Supervision
from fathom.tasks.ui import Display
from fathom.telemetry.logs import start_logs
from fathom.text.plain import counted

_NO_QUESTIONS: list[str] = []
_DEFAULTS = ResearchSettings()
_NO_CAPS = BatchBudget()
AtOnce = Annotated[int, Field(ge=1, le=500)]


def _run_name() -> str:
    return f"batch {flow_run.parameters.get('run_key') or flow_run.id}"


@flow(name=BATCH, flow_run_name=_run_name, retries=0)
async def research_batch(  # noqa: PLR0917 - the boxes of a form
    questions: list[str] = _NO_QUESTIONS,
    file: str = "",
    settings: ResearchSettings = _DEFAULTS,
    at_once: AtOnce = 8,
    budget: BatchBudget = _NO_CAPS,
    deployment: str = ON_DEMAND,
    run_key: RunKey = "",
) -> State[BatchResult]:
    """Research many questions, each in a flow run of its own, and list how each ended.

    Args:
        questions: The questions. Example: `["What is a descriptor?", "What is a metaclass?"]`
        file: Instead of questions: a txt, csv or jsonl file of them, as the worker sees it. Example: `s3://bucket/q.csv`
        settings: How to research them. A line of a csv or jsonl file can have settings of its own.
        at_once: Maximum number of questions researched at the same time. Example: `8`
        budget: Caps over all questions together.
        deployment: The deployment that researches a question. Example: `deep-research/on-demand`
        run_key: Batches with the same key share what has finished. Empty: only retries of this one do. Example: `may`
    """
    environment = Environment.read()
    start_logs(environment)
    scrubber = Scrubber(environment.secrets)
    guard_logs(scrubber)
    store = run_store(settings.artifacts or environment.artifacts)
    await store.check_writable()
    how = f"the same command with --run-key {current_run_key()}, or Retry in the UI"
    batch: BatchRunner | None = None
    try:
        async with Supervision(store, scrubber, how=how), Display() as display:
            batch = BatchRunner(
                current_run_key(),
                await _questions(questions, file, settings),
                store,
                settings=settings,
                budget=budget,
                at_once=at_once,
                deployment=deployment,
                tags=flow_run.tags,  # such as the owner's tag
                show=lambda batch: _show(display, batch),
            )
            await batch.run()
            result = batch.folder.result(current_run_id(), batch.rows)
    except Abort as abort:
        if batch and isinstance(abort.__cause__, RunCancelled):
            await batch.cancel()
        raise
    ended = ", ".join(f"{count} {words(status)}" for status, count in result.ended.items())
    message = f"{counted(result.questions, 'question')}: {ended}. Results: {result.page}"
    state: State[BatchResult] = (Failed if result.failed else Completed)(message=message, data=result)
    return state


research_batch.parameters.properties["run_key"].pop("default")


async def _questions(texts: Sequence[str], file: str, settings: ResearchSettings) -> list[BatchQuestion]:
    """Return the questions of a batch.

    Raises:
        InvalidInput: there are none, they are given twice, or one cannot be used.
    """
    if bool(texts) == bool(file):
        raise InvalidInput("Give either questions or a file of them.", next_step="fill in one of the two")
    if texts:
        return read_questions("\n".join(" ".join(text.split()) for text in texts), "txt", settings)

    def read() -> str:
        with open_file(file, "rt", encoding="utf-8") as opened:
            return str(opened.read())

    try:
        text = await asyncio.to_thread(read)
    except (OSError, ValueError, ImportError) as error:
        raise InvalidInput(f"{file} cannot be read: {error}.", next_step="check its path and encoding") from error
    return read_questions(text, format_of(file), settings)


def _show(display: Display, batch: BatchRunner) -> None:
    table = [
        {
            "number": row.number,
            "question": row.question,
            "ended": words(row.status),
            "sources": row.sources or "",
            "cost": dollars(row),
            "reason": row.reason,
            "report": row.report,
        }
        for row in batch.rows
    ]
    done = sum(row.status.ended for row in batch.rows)
    display.table("research-batch", table, f"### {done} of {counted(len(table), 'question')}\n\n{used(batch.rows)}")


ASK_SECONDS = 5.0


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
    """Run a worker in this process inside the block as soon as the pool has none."""
    with ExitStack() as own:

        async def watch() -> None:
            while await _has_workers(pool):  # noqa: ASYNC110 - the server sends no notice
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
            return bool(await living(client, pool))
    except (httpx.HTTPError, PrefectHTTPStatusError):  # asked again
        return True

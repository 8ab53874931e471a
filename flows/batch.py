"""A batch: many questions, each in its own flow run on a work pool, and one budget for all.

If a command runs a batch, its flow runs in the command's process, its questions on the workers of a pool or, if there
are none, in the process too. Imports Prefect: call `fathom.flows.server.ensure_api` first.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager
from time import monotonic
from typing import Annotated, Any
from uuid import UUID

from fsspec.core import open as open_file
from prefect import flow, runtime
from prefect.client.schemas.filters import FlowRunFilter, FlowRunFilterId, FlowRunFilterState, FlowRunFilterStateType
from prefect.client.schemas.objects import TERMINAL_STATES, FlowRun, State, StateType
from prefect.deployments import arun_deployment
from prefect.exceptions import Abort, PrefectException, PrefectHTTPStatusError
from prefect.states import Cancelling, Completed, Failed
from pydantic import Field

from fathom.batch.folder import QUESTIONS, BatchFolder, Record, dollars, used, words
from fathom.batch.questions import format_of, lines_of, read_questions, settings_of
from fathom.budget.ledger import Cost, Ledger, SharedBudget, caps
from fathom.config.environment import Environment
from fathom.config.groups import DEFAULT_USD, BatchBudget
from fathom.config.secrets import Scrubber, guard_logs
from fathom.config.settings import ResearchSettings
from fathom.errors import BudgetExceeded, FathomError, InvalidInput, RunCancelled
from fathom.flows.deep_research import RunKey, deep_research
from fathom.flows.execution.deploying import ON_DEMAND, POOL, deploy, ensure_pool, pool_of, unattended
from fathom.flows.execution.local import address, new_run, result_of, run_here
from fathom.flows.execution.resuming import MOST_DEATHS, recover_runs
from fathom.flows.execution.worker import Worker, serving
from fathom.flows.runs.states import BATCH, ending_in, place
from fathom.flows.server import MOST_AT_ONCE
from fathom.models import RunResult
from fathom.models.run import BatchQuestion, BatchResult, BatchRow, RowStatus
from fathom.storage.lease import died, note_progress, read_lease, result_key
from fathom.storage.store import BATCHES, ArtifactStore
from fathom.tasks.clients import prefect_client
from fathom.tasks.durable import current_run_id, current_run_key, run_logger, run_store
from fathom.tasks.supervision import Supervision
from fathom.tasks.ui import Display
from fathom.telemetry.logs import start_logs
from fathom.telemetry.progress import Event, phase, publish
from fathom.text.plain import counted

_NO_QUESTIONS: list[str] = []
_DEFAULTS = ResearchSettings()
_NO_CAPS = BatchBudget()
ASK_SECONDS = 5.0
POLL_SECONDS = 1.5
KEEP_SECONDS = 10.0  # seconds between two updates of the results on the store and of the table in the UI
LOOK_SECONDS = 5.0  # seconds between two checks of whether the runs in progress still exist
AtOnce = Annotated[int, Field(ge=1, le=500)]


def _run_name() -> str:
    return f"batch {runtime.flow_run.parameters.get('run_key') or runtime.flow_run.id}"


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
                BatchFolder(store, current_run_key()),
                await _questions(questions, file, settings),
                settings=settings,
                budget=budget,
                at_once=at_once,
                deployment=deployment,
                display=display,
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


def _show(display: Display, rows: Sequence[BatchRow]) -> None:
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
        for row in rows
    ]
    done = sum(row.status.ended for row in rows)
    display.table("research-batch", table, f"### {done} of {counted(len(table), 'question')}\n\n{used(rows)}")


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
            while not (missing := await unattended(pool)):  # noqa: ASYNC110 - the server sends no notice
                await asyncio.sleep(ASK_SECONDS)
            say(f"{missing} Meanwhile, this process researches the questions.")
            own.enter_context(serving(Worker(pool, limit)))

        watching = asyncio.create_task(watch())
        try:
            yield
        finally:
            watching.cancel()
            await asyncio.wait([watching])


class BatchRunner:
    """Researches its questions, at most `at_once` of them at the same time.

    A record of each is stored before its run is submitted and when it has ended, so a batch that was stopped goes on
    where it was. Its runs have the batch's tags in addition to their own.
    """

    def __init__(
        self,
        folder: BatchFolder,
        questions: Sequence[BatchQuestion],
        *,
        settings: ResearchSettings,
        budget: BatchBudget,
        at_once: int,
        deployment: str,
        display: Display,
    ) -> None:
        self.folder = folder
        self._asked = questions
        self._settings = settings
        self._caps = budget
        self._budget = SharedBudget(caps(budget.max_usd, budget.max_tokens, budget.max_calls), at_once)
        self._at_once = at_once
        self._deployment = deployment
        self._display = display
        own_tags = runtime.flow_run.tags  # such as the owner's
        self._tags = [*dict.fromkeys(["fathom", f"batch:{folder.key}", *own_tags])]
        self._questions: dict[str, BatchQuestion] = {}  # by id, as is the next
        self._records: dict[str, Record] = {}
        self._open: dict[UUID, str] = {}  # ids of the questions under way, by their flow run
        self._kept = 0.0  # when, as the next
        self._looked = monotonic()
        self._changed = False
        self._told = 0, 0, False  # the questions that wait, those that start, and whether a worker is missing

    @property
    def rows(self) -> list[BatchRow]:
        """A row for each question, in the order of the file."""
        return [record.row for record in self._records.values()]

    async def run(self) -> None:
        """Research every question that is not finished yet.

        Raises:
            InvalidInput: there is no such deployment.
        """
        if await pool_of(self._deployment) is None:
            await deploy(ON_DEMAND.rpartition("/")[2], deep_research, description="Research a question on request.")
        waiting = await self._load()
        try:
            while waiting or self._open:
                while waiting and len(self._open) < self._at_once and await self._start(waiting[0]):
                    del waiting[0]
                await self._note_ended()
                if monotonic() - self._looked > LOOK_SECONDS:
                    await self._look_after()
                    self._looked = monotonic()
                if self._changed and monotonic() - self._kept > KEEP_SECONDS:
                    await self._keep()
                if self._open:
                    await asyncio.sleep(POLL_SECONDS)
        finally:
            await self._keep()

    async def cancel(self) -> None:
        """Cancel the runs that are under way."""
        async with prefect_client() as client:
            for run_id in self._open:
                await client.set_flow_run_state(run_id, Cancelling(message="The batch was cancelled."))

    async def _load(self) -> list[str]:
        """Read the records of earlier attempts, and return the ids of the questions that are not finished."""
        self._records = await self.folder.records(self._asked)
        self._questions = dict(zip(self._records, self._asked, strict=True))
        for record in self._records.values():
            if record.used:
                self._budget.take(record.used)
                self._budget.settle(record.used, record.used)
            if record.granted:
                self._budget.take(record.granted)
        waiting = [row_id for row_id, record in self._records.items() if not record.row.status.finished]
        # First those whose runs may be under way.
        waiting.sort(key=lambda row_id: self._records[row_id].row.status is not RowStatus.running)
        before = len(self._records) - len(waiting)
        publish(Event("batch", rows=tuple(self.rows)))
        phase(f"researching {counted(len(waiting), 'question')}" + (f"; {before} finished before" if before else ""))
        return waiting

    async def _keep(self) -> None:
        """Store the results as they are, and show them."""
        self._kept, self._changed = monotonic(), False
        await self.folder.save_results(f"Batch of {counted(len(self._records), 'question')}", self.rows)
        _show(self._display, self.rows)

    async def _start(self, row_id: str) -> bool:
        """Submit the run of a question; False if it must wait until others give back to the budget."""
        record = self._records[row_id]
        granted = record.granted
        if self._caps != BatchBudget() and granted is None:
            try:
                granted = self._budget.reserve(self._own_caps(row_id))
            except BudgetExceeded as error:
                row = record.row.model_copy(update={"status": RowStatus.not_asked, "reason": error.message})
                await self._note(row_id, record.model_copy(update={"row": row}))
                return True
            if granted is None:
                return False
        await self._submit(row_id, granted)
        return True

    async def _submit(self, row_id: str, granted: Cost | None) -> None:
        """Submit the run of a question, in a new attempt if the last one has ended without a result."""
        record, question = self._records[row_id], self._questions[row_id]
        attempt = record.attempt + (record.row.status.ended and bool(record.run_key))
        run_key = question.run_key or f"{self.folder.key}-{row_id}"
        # The run's own account includes the usage of earlier attempts.
        spent = record.used or Cost()
        settings = self._settings_of(row_id, granted.plus(spent) if granted else None)
        record = record.model_copy(
            update={
                "row": record.row.model_copy(update={"status": RowStatus.running, "reason": ""}),
                "run_key": result_key("", run_key),
                "attempt": attempt,
                "granted": granted,
            }
        )
        await self._note(row_id, record)
        given = settings.model_dump(mode="json", exclude_unset=True)
        try:
            # Not as a sub-flow: when a batch is cancelled, Prefect would cancel its questions again and again, also
            # after it was continued.
            flow_run = await arun_deployment(
                self._deployment,
                parameters={"query": question.question, "settings": given, "run_key": run_key},
                timeout=0,
                as_subflow=False,
                tags=self._tags,
                idempotency_key=f"{self.folder.key}/{row_id}/{attempt}",
            )
        except (PrefectHTTPStatusError, PrefectException) as error:
            await self._settle(row_id, failed(record.row, f"its run could not be submitted: {error}"))
            return
        self._open[flow_run.id] = row_id
        row = record.row.model_copy(update={"run_id": str(flow_run.id)})
        self._records[row_id] = record.model_copy(update={"row": row})

    async def _note_ended(self) -> None:
        """Take note of the runs that have ended, asking for all of them at once."""
        ended = FlowRunFilterState(type=FlowRunFilterStateType(any_=list(TERMINAL_STATES)))
        for flow_run in await self._read(ended):
            row_id = self._open[flow_run.id]
            if row := await outcome(flow_run, self._records[row_id].row, self.folder.store.address()):
                del self._open[flow_run.id]
                await self._settle(row_id, row)

    async def _look_after(self) -> None:
        """Schedule the runs again whose process is gone, take note of deleted runs, and say what is waited for."""
        found = {flow_run.id: flow_run for flow_run in await self._read()}
        queued = [flow_run for flow_run in found.values() if flow_run.state_type is StateType.SCHEDULED]
        starting = sum(flow_run.state_type is StateType.PENDING for flow_run in found.values())
        await self._tell_waiting(len(queued), starting, queued[0].work_pool_name if queued else None)
        await recover_runs(list(found.values()))
        for run_id in self._open.keys() - found.keys():
            row_id = self._open.pop(run_id)
            await self._settle(row_id, failed(self._records[row_id].row, "its flow run was deleted"))

    async def _tell_waiting(self, queued: int, starting: int, pool: str | None) -> None:
        """Say how many questions no worker has begun yet, when that changes, and whether a worker is missing."""
        missing = await unattended(pool) if pool else ""
        before, self._told = self._told, (queued, starting, bool(missing))
        if before == self._told:
            return
        parts = [f"{counted(queued, 'question')} waiting"] if queued else []
        parts += [f"{counted(starting, 'question')} starting"] if starting else []
        said = ", ".join(parts) or "every question that was submitted is being researched"
        if missing and not before[-1]:
            said = f"{said}. {missing}"
            run_logger().warning("%s", said)
            publish(Event("warning", said))
        else:
            phase(said)

    async def _read(self, state: FlowRunFilterState | None = None) -> list[FlowRun]:
        """Return the runs in progress from the server, all or only in some states."""
        run_ids, found = list(self._open), list[FlowRun]()
        async with prefect_client() as client:
            for start in range(0, len(run_ids), MOST_AT_ONCE):
                which = FlowRunFilter(id=FlowRunFilterId(any_=run_ids[start : start + MOST_AT_ONCE]), state=state)
                found += await client.read_flow_runs(flow_run_filter=which)
        return found

    async def _settle(self, row_id: str, row: BatchRow) -> None:
        record = self._records[row_id].model_copy(update={"row": row})
        if record.granted:
            total = (await Ledger.read(self.folder.store, record.run_key)).total
            before = record.used or Cost()
            self._budget.settle(record.granted, total.minus(before))
            record = record.model_copy(update={"used": total, "granted": None})
        await self._note(row_id, record)
        await note_progress(self.folder.store, self.folder.key, f"{row_id} {record.attempt}")
        run_logger().info("%d. %s: %s", row.number, words(row.status), row.question)

    async def _note(self, row_id: str, record: Record) -> None:
        await self.folder.save(row_id, record)
        self._records[row_id] = record
        self._changed = True
        publish(Event("batch", rows=(record.row,)))

    def _own_caps(self, row_id: str) -> Cost:
        own = settings_of(self._questions[row_id], self._settings).budget
        usd = DEFAULT_USD if own.max_usd is None and self._caps.max_usd else own.max_usd
        return caps(usd, own.max_tokens, own.max_calls)

    def _settings_of(self, row_id: str, granted: Cost | None) -> ResearchSettings:
        """Return the settings of a question's run: with the batch's store, and its share of each cap of the batch."""
        settings = settings_of(self._questions[row_id], self._settings)
        settings = settings.model_copy(
            update={"artifacts": self.folder.store.address(), "people": settings.people.unattended}
        )
        if granted is None:
            return settings
        given = {"max_usd": float(granted.usd), "max_tokens": granted.tokens, "max_calls": granted.calls}
        capped = {name: cap for name, cap in given.items() if getattr(self._caps, name)}
        return settings.model_copy(update={"budget": settings.budget.model_copy(update=capped)})


async def outcome(flow_run: FlowRun, row: BatchRow, root: str) -> BatchRow | None:
    """Return the row of a question whose run is in a terminal state; None if a worker will take it up again."""
    try:
        if result := await result_of(flow_run):
            return _with(row, result)
    except FathomError as error:
        return failed(row, str(error), flow_run)
    message = (flow_run.state and flow_run.state.message) or "it ended without a result"
    if ending_in(message):
        message = (
            f"it has ended, but its result is not in {root}: check that its workers have the same FATHOM_ARTIFACTS"
        )
    status = RowStatus.failed
    if flow_run.state_type is StateType.CANCELLED:
        status = RowStatus.cancelled
    elif flow_run.state_type is StateType.CRASHED:
        where = place(str(flow_run.id), flow_run.parameters)
        if await read_lease(*where) and await died(*where) < MOST_DEATHS:
            return None
    return failed(row, message, flow_run, status)


def failed(
    row: BatchRow, reason: str, flow_run: FlowRun | None = None, status: RowStatus = RowStatus.failed
) -> BatchRow:
    """Return the row of a question that was not researched to its end, with the reason."""
    run_id = str(flow_run.id) if flow_run else row.run_id
    return row.model_copy(update={"status": status, "reason": reason, "run_id": run_id})


def _with(row: BatchRow, result: RunResult) -> BatchRow:
    metrics = result.metrics
    return row.model_copy(
        update={
            "status": RowStatus(result.status.value),
            "reason": result.reason,
            "run_id": result.run_id,
            "report": result.report or "",
            "answer": result.answer or (result.cited_answer.markdown if result.cited_answer else None),
            "answer_sources": [source.url for source in result.cited_answer.sources] if result.cited_answer else [],
            "confidence": result.confidence,
            "answered": result.answered,
            "sources": len(result.sources),
            "tool_calls": metrics.tool_calls,
            "llm_calls": metrics.llm_calls,
            "tokens": metrics.prompt_tokens + metrics.completion_tokens,
            "cost_usd": metrics.cost_usd,
            "seconds": round(metrics.account.seconds if metrics.account else metrics.seconds, 1),
        }
    )

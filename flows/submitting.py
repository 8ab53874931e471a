"""The questions of a batch: submitted as flow runs within one budget, and settled when they have ended."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from time import monotonic
from uuid import UUID

from prefect.client.orchestration import get_client
from prefect.client.schemas.filters import FlowRunFilter, FlowRunFilterId, FlowRunFilterState, FlowRunFilterStateType
from prefect.client.schemas.objects import TERMINAL_STATES, FlowRun, StateType
from prefect.deployments import arun_deployment
from prefect.exceptions import ObjectNotFound, PrefectException, PrefectHTTPStatusError
from prefect.states import Cancelling

from fathom.batch.folder import BatchFolder, Record, words
from fathom.batch.questions import settings_of
from fathom.budget.ledger import Cost, Ledger, SharedBudget, caps
from fathom.config.groups import DEFAULT_USD, BatchBudget
from fathom.config.settings import ResearchSettings
from fathom.errors import BudgetExceeded, FathomError, InvalidInput
from fathom.flows.deep_research import deep_research
from fathom.flows.deploying import deploy, unattended
from fathom.flows.local import result_of
from fathom.flows.resuming import MOST_DEATHS, recover_runs
from fathom.flows.runs.states import FLOW, ending_in, place
from fathom.models import RunResult
from fathom.models.run import BatchQuestion, BatchRow, RowStatus
from fathom.storage.lease import died, read_lease, result_key
from fathom.storage.store import ArtifactStore
from fathom.tasks.durable import run_logger
from fathom.telemetry.logs import Warnings
from fathom.telemetry.progress import Event, phase, publish
from fathom.text.plain import counted

ON_DEMAND = f"{FLOW}/on-demand"
POLL_SECONDS = 1.5
KEEP_SECONDS = 10.0  # seconds between two updates of the results on the store and of the table in the UI
LOOK_SECONDS = 5.0  # seconds between two checks of whether the runs in progress still exist
_IDS = 200  # runs in one request, the maximum that the server returns


class BatchRunner:
    """Researches its questions, at most `at_once` of them at the same time.

    A record of each is stored before its run is submitted and when it has ended, so a batch that was stopped goes on
    where it was. Its runs have `tags` in addition to their own. `show` is called after the results were stored.
    """

    def __init__(
        self,
        key: str,
        questions: Sequence[BatchQuestion],
        store: ArtifactStore,
        *,
        settings: ResearchSettings,
        budget: BatchBudget,
        at_once: int,
        deployment: str = ON_DEMAND,
        tags: Sequence[str] = (),
        show: Callable[[BatchRunner], object] = lambda batch: None,
    ) -> None:
        self.folder = BatchFolder(store, key)
        self._key = key
        self._asked = questions
        self._store = store
        self._settings = settings
        self._caps = budget
        self._budget = SharedBudget(caps(budget.max_usd, budget.max_tokens, budget.max_calls), at_once)
        self._at_once = at_once
        self._deployment = deployment
        self._warnings = Warnings()
        self._tags = [*dict.fromkeys(["fathom", f"batch:{key}", *tags])]
        self._show = show
        self._questions: dict[str, BatchQuestion] = {}  # by id, as is the next
        self._records: dict[str, Record] = {}
        self._open: dict[UUID, str] = {}  # ids of the questions under way, by their flow run
        self._kept = 0.0  # when, as the next
        self._looked = monotonic()
        self._changed = False
        self._waiting = ""  # what was last said of questions that no worker has begun

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
        async with get_client() as client:
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
        self._show(self)

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
        run_key = question.run_key or f"{self._key}-{row_id}"
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
                idempotency_key=f"{self._key}/{row_id}/{attempt}",
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
            if row := await outcome(flow_run, self._records[row_id].row, self._store.address()):
                del self._open[flow_run.id]
                await self._settle(row_id, row)

    async def _look_after(self) -> None:
        """Schedule the runs again whose process is gone, take note of deleted runs, and say what is waited for."""
        found = {flow_run.id: flow_run for flow_run in await self._read()}
        queued = [flow_run for flow_run in found.values() if flow_run.state_type is StateType.SCHEDULED]
        starting = sum(flow_run.state_type is StateType.PENDING for flow_run in found.values())
        self._tell_waiting(len(queued), starting, queued[0].work_pool_name if queued else None)
        if pool := next((flow_run.work_pool_name for flow_run in queued), None):
            async with get_client() as client:
                if said := await unattended(client, pool):
                    self._warnings.warn(run_logger(), said, pool)
        await recover_runs(list(found.values()))
        for run_id in self._open.keys() - found.keys():
            row_id = self._open.pop(run_id)
            await self._settle(row_id, failed(self._records[row_id].row, "its flow run was deleted"))

    def _tell_waiting(self, queued: int, starting: int, pool: str | None) -> None:
        """Say how many questions no worker has begun yet, when that changes."""
        parts = [f"{counted(queued, 'question')} waiting for a worker of the pool {pool}"] if queued else []
        parts += [f"{counted(starting, 'question')} starting"] if starting else []
        if (said := ", ".join(parts)) != self._waiting:
            self._waiting = said
            phase(said or "every question that was submitted is being researched")

    async def _read(self, state: FlowRunFilterState | None = None) -> list[FlowRun]:
        """Return the runs in progress from the server, all or only in some states."""
        run_ids, found = list(self._open), list[FlowRun]()
        async with get_client() as client:
            for start in range(0, len(run_ids), _IDS):
                which = FlowRunFilter(id=FlowRunFilterId(any_=run_ids[start : start + _IDS]), state=state)
                found += await client.read_flow_runs(flow_run_filter=which)
        return found

    async def _settle(self, row_id: str, row: BatchRow) -> None:
        record = self._records[row_id].model_copy(update={"row": row})
        if record.granted:
            total = (await Ledger.read(self._store, record.run_key)).total
            before = record.used or Cost()
            self._budget.settle(record.granted, total.minus(before))
            record = record.model_copy(update={"used": total, "granted": None})
        await self._note(row_id, record)
        run_logger().info("%d. %s: %s", row.number, words(row.status), row.question)

    async def _note(self, row_id: str, record: Record) -> None:
        await self.folder.save(row_id, record)
        self._records[row_id] = record
        self._changed = True
        publish(Event("batch", rows=(record.row,)))

    def _own_caps(self, row_id: str) -> Cost:
        """Return the caps of a question by itself."""
        own = settings_of(self._questions[row_id], self._settings).budget
        usd = DEFAULT_USD if own.max_usd is None and self._caps.max_usd else own.max_usd
        return caps(usd, own.max_tokens, own.max_calls)

    def _settings_of(self, row_id: str, granted: Cost | None) -> ResearchSettings:
        """Return the settings of a question's run: with the batch's store, and its share of each cap of the batch."""
        settings = settings_of(self._questions[row_id], self._settings)
        settings = settings.model_copy(
            update={"artifacts": self._store.address(), "people": settings.people.unattended}
        )
        if granted is None:
            return settings
        given = {"max_usd": float(granted.usd), "max_tokens": granted.tokens, "max_calls": granted.calls}
        capped = {name: cap for name, cap in given.items() if getattr(self._caps, name)}
        return settings.model_copy(update={"budget": settings.budget.model_copy(update=capped)})


async def pool_of(deployment: str) -> str | None:
    """Return the work pool of a deployment; None if it is the default pool, which does not exist yet.

    Raises:
        InvalidInput: there is no such deployment, or it has no work pool.
    """
    async with get_client() as client:
        try:
            found = await client.read_deployment_by_name(deployment)
        except ObjectNotFound:
            if deployment == ON_DEMAND:
                return None
            raise InvalidInput(
                f"There is no deployment {deployment!r}.", next_step="prefect deployment ls lists them"
            ) from None
    if not found.work_pool_name:
        raise InvalidInput(f"{deployment} has no work pool.", next_step="deploy it to one")
    return found.work_pool_name


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

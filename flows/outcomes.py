"""How the run of a question in a batch ended, by what Prefect and the artifact store know of it."""

from __future__ import annotations

from prefect.client.schemas.objects import FlowRun, StateType

from fathom.errors import FathomError
from fathom.flows.runs.flow_runs import place
from fathom.flows.runs.local import result_of
from fathom.flows.runs.recovering import MOST_DEATHS
from fathom.flows.runs.states import ending_in
from fathom.models import RunResult
from fathom.models.run import BatchRow, RowStatus
from fathom.storage.lease import died, read_lease


async def outcome(flow_run: FlowRun, row: BatchRow, root: str) -> BatchRow | None:
    """Return the row of a question whose run is in a terminal state; None if a worker is to take it up again."""
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
    """Return the row of a question that was not researched to its end, and why."""
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
            "answer": result.answer,
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

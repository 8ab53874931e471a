"""The Prefect state of a finished run, and its message on how the run ended.

Its name is one of Prefect's own, because the UI's filters and automations know no others. How the run ended is the
first word of its message.
"""

from __future__ import annotations

from typing import Any

from prefect import Flow
from prefect.client.schemas.objects import FlowRun, State
from prefect.states import Completed, Failed

from fathom.flows.runs.states import ending_in, place
from fathom.models import Ending, RunResult
from fathom.tasks import events


def ended(result: RunResult) -> State[RunResult]:
    """Return the state of a finished run. One without a report must not look like a success: it is `Failed`."""
    reason = result.reason.partition("\n")[0].rstrip(".")
    message = f"{result.status.value}{f': {reason}' if reason else ''}. {whereabouts(result)}"
    state: State[RunResult] = (Completed if result.report else Failed)(message=message, data=result)
    return state


async def result_in(state: State[Any]) -> RunResult:
    """Return the result in the state of a run of this process, or raise the run's error."""
    result = await state.aresult(raise_on_failure=ending_in(state.message) is None)
    assert isinstance(result, RunResult)
    return result


def whereabouts(result: RunResult) -> str:
    """Return a line with the place of the report or, without one, of the texts that were read."""
    return f"Report: {page(result)}" if result.report else f"No report; what was read: {result.artifacts}"


def page(result: RunResult) -> str:
    """Return the path or address of the report's page."""
    return f"{result.artifacts}/report.html"


async def tell_failure(flow: Flow[..., Any], flow_run: FlowRun, state: State[Any]) -> None:
    """Report that a run failed with an error, as a hook of its flow; a run without a report has done so itself."""
    if ending_of(state) is None:
        reason = (state.message or "").partition("\n")[0]
        await events.tell_failure(flow_run, reason, *place(str(flow_run.id), flow_run.parameters))


def ending_of(state: State[Any] | None) -> Ending | None:
    """Return how a run ended by its final state; None if it has not ended, failed, or is of an older version."""
    return ending_in(state.message) if state and state.is_final() else None

"""The end of a run: for a watch, what has changed since its run before; its Prefect state, whose message says how.

The name of the state is one of Prefect's own, because the UI's filters and automations know no others. How the run
ended is the first word of its message.
"""

from __future__ import annotations

import asyncio
from typing import Any

from prefect import Flow
from prefect.client.schemas.objects import FlowRun, State
from prefect.states import Completed, Failed

from fathom.changes.comparing import ComparedRun, compare
from fathom.changes.model import CHANGES, Changes
from fathom.errors import NoReport, StoreError
from fathom.flows.runs.comparing import runs_of, side_of
from fathom.flows.runs.states import ending_in, place
from fathom.models import Ending, Report, RunResult
from fathom.report.changes import render_changes, render_changes_html, summary_of
from fathom.run.engine import Engine, RunStart
from fathom.run.state import ResearchState
from fathom.storage.names import watch_report
from fathom.storage.runs import StoredRun
from fathom.tasks import events
from fathom.tasks.checking import read_texts
from fathom.tasks.durable import run_logger
from fathom.telemetry.progress import phase


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


async def compare_with_last(engine: Engine, run: ResearchState, report: Report | None) -> Changes | None:
    """Compare a run of a watch with the previous one, save and return the changes; None if there is no earlier run.

    A run is compared with the latest run that has a report: a run without evidence in between must not make everything
    count as new. If the earlier run cannot be read, the log names it, and this run is not compared.
    """
    start = engine.start
    if not start.watch:
        return None
    phase("comparing with the run before this one")
    earlier = await runs_of(engine.store, lambda run: is_before(run, start))
    reported = next((one for one in earlier if one.result and one.result.report), None)
    last = earlier[0] if earlier else None
    base = reported if report else last
    if not base or not (report or base is reported):
        return None
    try:
        before = await side_of(base.run)
    except (StoreError, NoReport) as error:
        run_logger().warning("Not compared with the run before (%s): %s", base.run.run_id[:8], error)
        return None
    texts = await read_texts(engine, (call.result for call in run.all_calls)) if report else []
    after = ComparedRun(start.run_id, start.started, start.query, report, texts)
    changes = await asyncio.to_thread(compare, before, after)
    changes = changes.model_copy(update={"regained": base is not last})
    folder = engine.run_folder
    await folder.save_json(CHANGES, changes)
    await folder.save_text("changes.md", render_changes(changes))
    await folder.save_text("changes.html", render_changes_html(changes))
    run_logger().info("Since the run before (%s): %s.", base.run.run_id[:8], summary_of(changes))
    return changes


def is_before(run: StoredRun, start: RunStart) -> bool:
    """Whether a run is an earlier one of the same watch, or the one whose report it was made from.

    Another watch of that name may be somebody else's.
    """
    same = run.run_id == watch_report(start.watch) or (run.watch == start.watch and run.query == start.query)
    return same and run.run_id != start.run_id and run.started <= start.started

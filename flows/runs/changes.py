"""The addition of a watch's run to research: the changes since the previous run."""

from __future__ import annotations

import asyncio

from fathom.changes.comparing import ComparedRun, compare
from fathom.changes.model import CHANGES, Changes
from fathom.errors import NoReport, StoreError
from fathom.flows.runs.comparing import runs_of, side_of
from fathom.models import Report
from fathom.report.changes import render_changes, render_changes_html, summary_of
from fathom.run.engine import Engine, RunStart
from fathom.run.state import ResearchState
from fathom.storage.runs import StoredRun
from fathom.tasks.checking import read_texts
from fathom.tasks.durable import run_logger
from fathom.telemetry.progress import phase


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
    """Whether a run is an earlier one of the same watch; another watch of that name may be somebody else's."""
    same = run.watch == start.watch and run.query == start.query
    return same and run.run_id != start.run_id and run.started <= start.started

"""`fathom runs` and `fathom show`: the latest runs, and one of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Literal

import typer
from rich.console import Console
from rich.text import Text

from fathom.cli.options import Json, Open, Root, Run
from fathom.cli.printing import MARKS, line, one_line, open_page, output, printable, row, show_summary
from fathom.text.plain import counted, size

if TYPE_CHECKING:
    from fathom.flows.runs.listing import RunRow
    from fathom.flows.runs.stored import RunDetails
    from fathom.models import Plan


def runs(
    limit: Annotated[int, typer.Option(metavar="N", min=1, max=200, help="Number of runs to list.")] = 20,
    sizes: Annotated[
        bool, typer.Option("--sizes", help="Also show how much space each run takes in the store.")
    ] = False,
    artifacts: Root = None,
    as_json: Json = False,
) -> None:
    """List the latest runs.

    The list covers the artifact store and, if it is running, the Prefect server. --json also prints the folders. A size
    includes the run's folder and stored results; results shared by several runs count towards the newest run.

    Example: fathom runs --limit 5
    """
    import asyncio

    from fathom.flows.preflight import artifact_root
    from fathom.flows.runs.listing import latest, with_sizes
    from fathom.flows.runs.stored import on_stderr
    from fathom.storage.store import ArtifactStore

    async def listed() -> list[RunRow]:
        store = ArtifactStore(artifact_root(artifacts))
        rows = await latest(store, limit, on_stderr)
        return await with_sizes(store, rows) if sizes else rows

    output(asyncio.run(listed()), _show_rows, as_json=as_json)


def _show_rows(found: Sequence[RunRow]) -> None:
    """Show one line a run; on a terminal, the query is cut to fit."""
    console = Console(highlight=False)
    if not found:
        console.print("No runs.")
        return
    width = max(len(run.state) for run in found)
    sizes = [size(run.bytes) for run in found if run.bytes is not None]
    wide = max((len(text) for text in ("size", *sizes)), default=0)
    column = f"{'size':>{wide}}  " if sizes else ""
    console.print(Text(f"{'run':8}  {'started (UTC)':16}  {'state':{width}}  {column}query", style="bold"))
    for run in found:
        started = run.started[:16].replace("T", " ")
        column = f"{size(run.bytes):>{wide}}  " if run.bytes is not None else ""
        state = f"{run.state.replace('_', ' '):{width}}"
        cells = Text(f"{one_line(run.run_id[:8]):8}  {started:16}  {state}  {column}{one_line(run.query)}")
        if run.parent:
            cells.append(f"  (follows {one_line(run.parent[:8])})", style="dim")
        overflow: Literal["ellipsis", "ignore"] = "ellipsis" if console.is_terminal else "ignore"
        console.print(cells, no_wrap=True, overflow=overflow, soft_wrap=not console.is_terminal)
    if sizes:
        console.print(f"{counted(len(found), 'run')}, {size(sum(run.bytes or 0 for run in found))}")


def show(run: Run, open_it: Open = False, artifacts: Root = None, as_json: Json = False) -> None:
    """Print a run's plan and report.

    Needs no server. If the output is not a terminal, the command prints only the report's Markdown.

    Example: fathom show 1a2b3c4d > report.md
    """
    from fathom.flows.runs.stored import load, read_run

    found = read_run(run, artifacts, load)
    output(found, _show_run, as_json=as_json)
    if open_it and found.result:
        open_page(found.result)


def _show_run(run: RunDetails) -> None:
    console = Console(highlight=False)
    if not console.is_terminal and run.report:
        console.file.write(run.report)
        return
    line((one_line(run.query), "bold"))
    if run.parent:
        row(("  follows  ", "dim"), f"{one_line(run.parent.run_id[:8])} {one_line(run.parent.query)}")
    if run.result:
        show_summary(run.result)
    else:
        row(("  ended    ", "dim"), "not finished")
        row(("  files    ", "dim"), printable(run.artifacts))
        row(("  finish   ", "dim"), f"fathom resume {run.run_id[:8]}")
    if run.plan:
        _show_plan(run.plan)
    if run.report:
        from rich.markdown import Markdown

        console.print(Markdown(printable(run.report)))


def _show_plan(plan: Plan) -> None:
    line("")
    for step in plan.steps:
        status = f" ({plan.state_of(step)})"
        row(f"  {MARKS[step.status]} {step.step_id}. ", one_line(step.title), (status, "dim"))
    line("")

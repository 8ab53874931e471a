"""`fathom runs` and `fathom show`: the latest runs, and one of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.text import Text

from flows.cli.options import Json, Root, Run
from flows.cli.printing import line, one_line, output, printable, summary

if TYPE_CHECKING:
    from fathom.models import Plan
    from flows.listing import RunRow
    from flows.runs import StoredRun

_MARKS = {"todo": "○", "in_progress": "◐", "done": "●", "blocked": "✗"}


def runs(
    limit: Annotated[int, typer.Option(metavar="N", min=1, max=200, help="How many runs to list.")] = 20,
    artifacts: Root = None,
    as_json: Json = False,
) -> None:
    """List the latest runs.

    The list covers the artifact store and, while it is running, the Prefect server. --json also gives the folders.

    Example: fathom runs --limit 5
    """
    import asyncio

    from fathom.storage.store import ArtifactStore
    from flows.listing import latest
    from flows.preflight import artifact_root

    rows = asyncio.run(latest(ArtifactStore(artifact_root(artifacts)), limit))
    output(rows, _show_rows, as_json=as_json)


def _show_rows(rows: Sequence[RunRow]) -> None:
    """Show one line a run; on a terminal, the query is cut to fit."""
    console = Console(highlight=False)
    width = max((len(row.state) for row in rows), default=0)
    console.print(
        Text(f"{'run':8}  {'started (UTC)':16}  {'state':{width}}  query", style="bold") if rows else "No runs."
    )
    for row in rows:
        started = row.started[:16].replace("T", " ")
        cells = Text(f"{one_line(row.run_id[:8]):8}  {started:16}  {row.state:{width}}  {one_line(row.query)}")
        console.print(cells, no_wrap=True, overflow="ellipsis", soft_wrap=not console.is_terminal)


def show(run: Run, artifacts: Root = None, as_json: Json = False) -> None:
    """Print a run's plan and report.

    Needs no server. If the output is not a terminal, only the report's Markdown is printed.

    Example: fathom show 1a2b3c4d > report.md
    """
    from flows.runs import load, read_run

    output(read_run(run, artifacts, load), _show_run, as_json=as_json)


def _show_run(run: StoredRun) -> None:
    console = Console(highlight=False)
    if not console.is_terminal and run.report:
        console.file.write(run.report)
        return
    if run.result:
        line(summary(run.result))
    else:
        line(printable(f"{run.query}: not finished\n  artifacts  {run.artifacts}"))
        line(f"  finish it  fathom resume {run.run_id[:8]}")
    if run.plan:
        console.print(Text(_checklist(run.plan)))
    if run.report:
        from rich.markdown import Markdown

        console.print(Markdown(printable(run.report)))


def _checklist(plan: Plan) -> str:
    steps = (
        f"  {_MARKS[step.status.value]} {step.step_id}. {step.title} ({step.status.value.replace('_', ' ')})"
        for step in plan.steps
    )
    return printable("\n".join(["", *steps, ""]))

"""`fathom audit`: what happened in a run, in order, and whether the log of it is whole."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from flows.cli.options import Json, Root, Run
from flows.cli.printing import line, one_line, output, row

if TYPE_CHECKING:
    from flows.runs import Audit

_KINDS = {"llm_called": "role asked"}
"""What is shown for a type whose name is not true of every event: a role may answer without a model."""


def audit(run: Run, artifacts: Root = None, as_json: Json = False) -> None:
    """Print the log of a run and check that it is whole.

    The log says what was done, by whom and when. Needs no server. Exits with 1 if an event was changed, moved or
    removed, and names the first such line.

    Example: fathom audit 1a2b3c4d
    """
    from flows.runs import read_audit, read_run

    found = read_run(run, artifacts, read_audit)
    output(found, _show_audit, as_json=as_json)
    raise typer.Exit(0 if found.whole else 1)


def _show_audit(found: Audit) -> None:
    depths: dict[str, int] = {}
    for event in found.events:
        depth = depths[event.id] = depths.get(event.parent or "", -1) + 1  # a parent comes before its children
        kind = _KINDS.get(event.type.value, event.type.value.replace("_", " "))
        before = f"{event.at[11:19]}  {event.actor:<10}  {kind:<20}  {'  ' * depth}"
        style = "red" if event.type.value in ("error_occurred", "budget_warning") else ""
        row((before, "dim"), (one_line(event.action), style))
    if found.broken:
        line((f"broken at line {found.broken.line}: {found.broken.problem}", "red"))
    else:
        end = "" if found.head else "; the run's result does not say where the log ends"
        line((f"{len(found.events)} events, none changed, moved or removed{end}", "green"))

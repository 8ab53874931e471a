"""`fathom audit`: what happened in a run, in order, and whether the log of it is whole."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from fathom.cli.options import Json, Root, Run
from fathom.cli.printing import line, one_line, output, row

if TYPE_CHECKING:
    from fathom.flows.runs.stored import Audit
    from fathom.serve.access.journal import Entry
    from fathom.storage.runs import StoredRun

_KINDS = {"llm_called": "role asked"}
"""What is shown for a type whose name is not true of every event: a role may answer without a model."""


def audit(run: Run, artifacts: Root = None, as_json: Json = False) -> None:
    """Print the audit log of a run and check that it is intact.

    The log says what was done, by whom and when. What people did with the run through `fathom serve` is listed
    below it. Needs no server. If an event was changed, moved or removed, the command names the first such line and
    exits with 1.

    Example: fathom audit 1a2b3c4d
    """
    from fathom.flows.runs.stored import read_audit, read_run
    from fathom.serve.access.journal import Journal

    async def both(stored: StoredRun) -> tuple[Audit, list[Entry]]:
        return await read_audit(stored), await Journal(stored.store).of(stored.run_id)

    found, people = read_run(run, artifacts, both)

    def show(_found: object) -> None:
        _show_audit(found)
        for entry in people:
            line((f"{entry.at[:19]}  ", "dim"), one_line(f"{entry.by} ({entry.role}) {entry.deed} {entry.detail}"))

    told = [entry.model_dump(mode="json", exclude={"unique"}) for entry in people]
    output({**found.model_dump(mode="json"), "people": told}, show, as_json=as_json)
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
        end = "" if found.head else "; the run's result does not record where the log ends"
        line((f"{len(found.events)} events, none changed, moved or removed{end}", "green"))

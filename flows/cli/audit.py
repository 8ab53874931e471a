"""The audit log of a run as a person reads it: what happened, under what, and whether the log is whole."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pydantic import BaseModel, ConfigDict, ValidationError
from rich.console import Console
from rich.text import Text

from fathom.models import AuditHead
from fathom.storage.store import ArtifactStore, RunFolder
from fathom.telemetry.audit_events import Break, ChainedEvent, check, events_in
from fathom.telemetry.audit_log import AUDIT_FILE
from flows.cli.screen import printable
from flows.runs import find, read_json

if TYPE_CHECKING:
    from rich.console import RenderableType


class Audit(BaseModel):
    """A run's audit log with the verdict on it. `head` is what the run's result says of its end, if it says it."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    run_id: str
    file: str
    whole: bool
    broken: Break | None
    head: AuditHead | None
    events: list[ChainedEvent]


async def audit(store: ArtifactStore, name: str) -> Audit:
    """Read and check the audit log of the one run that a name stands for.

    Raises:
        RunNotFound: there is none.
        InvalidInput: there are several.
    """
    manifest = await find(store, name)
    folder = RunFolder(store, manifest["folder"])
    head = _head(await read_json(folder, "result.json"))
    events: list[ChainedEvent] = []
    try:
        data = await store.read(f"{folder.folder}/{AUDIT_FILE}")
    except FileNotFoundError:
        broken: Break | None = Break(line=1, problem=f"there is no {AUDIT_FILE}")
    else:
        broken, events = check(data, head), events_in(data, ChainedEvent)
    return Audit(
        run_id=str(manifest.get("run_id", "")),
        file=folder.path_of(AUDIT_FILE),
        whole=broken is None,
        broken=broken,
        head=head,
        events=events,
    )


def _head(result: object) -> AuditHead | None:
    try:
        return AuditHead.model_validate(result["audit_head"]) if isinstance(result, dict) else None
    except (KeyError, ValidationError):  # of a version that did not write it
        return None


def show_audit(found: Audit) -> None:
    """Show the events in the order in which they were written, each indented under its parent, and the verdict."""
    console = Console(highlight=False)
    depths = _depths(found.events)
    for event in found.events:
        console.print(_line(event, depths[event.id]), soft_wrap=True)
    if found.broken:
        verdict = Text(f"broken at line {found.broken.line}: {found.broken.problem}", style="red")
    else:
        end = "" if found.head else "; the run's result does not say where the log ends"
        verdict = Text(f"{len(found.events)} events, none changed, moved or removed{end}", style="green")
    console.print(verdict, soft_wrap=True)


def _line(event: ChainedEvent, depth: int) -> RenderableType:
    style = "red" if event.type.value in ("error_occurred", "budget_warning") else ""
    before = f"{event.at[11:23]}  {event.actor:<10}  {event.type.value.replace('_', ' '):<20}  "
    return Text.assemble((before, "dim"), (printable(f"{'  ' * depth}{event.action}"), style))


def _depths(events: Sequence[ChainedEvent]) -> dict[str, int]:
    """Return how many known ancestors each event has; a parent is always written before its children."""
    depths: dict[str, int] = {}
    for event in events:
        depths[event.id] = depths.get(event.parent or "", -1) + 1
    return depths

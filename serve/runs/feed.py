"""The events of a run, read from its audit log: they are there however often a listener or the server is restarted.

An event's id is the number of its line. Before the run has a folder, its lines are in another file, in the same order.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping

from fathom.client.shapes import EventType, RunEvent
from fathom.storage.lease import RESULTS
from fathom.storage.store import ArtifactStore
from fathom.telemetry.audit_events import AuditEvent, AuditType, events_in
from fathom.telemetry.audit_log import AUDIT_FILE, PENDING_FILE
from serve.runs.finding import Found, find_run
from tasks.sentences import sentence_of

POLL_SECONDS = 0.5
_TYPES: Mapping[AuditType, EventType] = {
    AuditType.step_started: EventType.step_started,
    AuditType.step_completed: EventType.step_completed,
    AuditType.tool_called: EventType.tool_called,
    AuditType.source_added: EventType.source_found,
    AuditType.note_created: EventType.note_created,
    AuditType.reflection_completed: EventType.reflection,
    AuditType.budget_warning: EventType.warning,
    AuditType.error_occurred: EventType.error,
}
"""All others are changes of state."""


def told(number: int, event: AuditEvent) -> RunEvent:
    """Return an event of the audit log as the API has it."""
    kind = _TYPES.get(event.type, EventType.state_change)
    data = {**event.details, **({"state": event.type.value} if kind is EventType.state_change else {})}
    return RunEvent(id=number, type=kind, at=event.at, message=sentence_of(event), data=data)


async def so_far(store: ArtifactStore, found: Found) -> list[RunEvent]:
    """Return the events of a run that have happened."""
    path = f"{found.folder.folder}/{AUDIT_FILE}" if found.folder else f"{RESULTS}/{found.run_key}/{PENDING_FILE}"
    try:
        lines = events_in(await store.read(path), AuditEvent)
    except FileNotFoundError:
        return []
    return [told(number, event) for number, event in enumerate(lines, 1)]


async def events(store: ArtifactStore, run_id: str, after: int = 0) -> AsyncGenerator[RunEvent, None]:
    """Yield the events of a run after the one of an id, until the run has ended."""
    number = after
    while True:
        found = await find_run(store, run_id)
        for event in (await so_far(store, found))[number:]:
            number = event.id
            yield event
        if found.flow_run is None or (found.flow_run.state and found.flow_run.state.is_final()):
            return
        await asyncio.sleep(POLL_SECONDS)

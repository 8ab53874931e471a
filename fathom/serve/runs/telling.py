"""The lines of a run's audit log as the events of the API."""

from __future__ import annotations

from collections.abc import Mapping

from fathom.client.shapes import EventType, RunEvent
from fathom.models import RunState, StepStatus
from fathom.tasks.sentences import sentence_of
from fathom.telemetry.audit_events import AuditEvent, AuditType
from fathom.telemetry.progress import Live

_TYPES: Mapping[AuditType, EventType] = {
    AuditType.step_started: EventType.step_started,
    AuditType.step_completed: EventType.step_completed,
    AuditType.tool_called: EventType.tool_called,
    AuditType.source_added: EventType.source_found,
    AuditType.note_created: EventType.note_created,
    AuditType.reflection_completed: EventType.reflection,
    AuditType.section_written: EventType.section,
    AuditType.budget_warning: EventType.warning,
    AuditType.error_occurred: EventType.error,
}
"""All others are changes of state."""
_TITLED: Mapping[AuditType, str] = {
    AuditType.plan_generated: "plan_title",
    AuditType.step_started: "title",
    AuditType.step_completed: "title",
    AuditType.source_added: "title",
    AuditType.note_created: "title",
    AuditType.section_written: "heading",
    AuditType.synthesis_completed: "title",
}
"""Under which name `data` has what such an event is called."""


def told(number: int, event: AuditEvent) -> RunEvent:
    """Return an event of the audit log as the API has it; `number` is that of its line."""
    kind = _TYPES.get(event.type, EventType.state_change)
    data = dict(event.details)
    if kind is EventType.state_change:
        data["state"] = event.type.value
    if name := _TITLED.get(event.type):
        data[name] = event.action
    if event.type is AuditType.step_started:
        data["status"] = StepStatus.in_progress.value
    elif event.type is AuditType.step_completed and "status" not in data:  # logs of earlier versions
        data["status"] = (StepStatus.done if data.get("notes") else StepStatus.blocked).value
    elif event.type is AuditType.plan_generated:
        titles = data.get("steps")
        titles = titles if isinstance(titles, list) else []
        ids = data.pop("step_ids", None)
        ids = ids if isinstance(ids, list) else list(range(1, len(titles) + 1))
        data["steps"] = [{"step_id": step_id, "title": title} for step_id, title in zip(ids, titles, strict=False)]
    return RunEvent(id=number, type=kind, at=event.at, message=_sentence(event), data=data)


def _sentence(event: AuditEvent) -> str:
    try:
        return sentence_of(event)
    except (KeyError, TypeError, AttributeError):  # a line of another version, with other details
        return event.action


def told_now(live: Live) -> RunEvent:
    """Return what a run does right now."""
    return RunEvent(
        id=0,
        type=EventType.now,
        at=live.at,
        message=live.phase,
        data=live.model_dump(mode="json", exclude={"at"}),
    )


def told_end(state: RunState, at: str, message: str) -> RunEvent:
    """Return the last event of a stream: how the run ended, or that its process is gone and nobody goes on."""
    data = {"state": state.value, "ended": state.ended}
    return RunEvent(id=0, type=EventType.state_change, at=at, message=message or state.value, data=dict(data))

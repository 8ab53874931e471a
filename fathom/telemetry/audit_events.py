"""The events of a run's audit log, and the hash chain that shows any change of them.

Each line of `audit.jsonl` is an event with the hash of the line before it and its own, so changing, removing or moving
a line means rewriting all later ones. The hash of the last line is in the run's result: with a copy of the result kept
elsewhere, the whole log cannot be replaced either.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from enum import StrEnum
from typing import Any, Literal, TypeVar

from pydantic import JsonValue, ValidationError

from fathom.config.groups import Role
from fathom.models import AuditHead, Model

Actor = Literal["user", "system"] | Role
BEGINNING = AuditHead(events=0, hash="0" * 64)

EventT = TypeVar("EventT", bound="AuditEvent")


class AuditType(StrEnum):
    """The type of an event."""

    session_created = "session_created"
    session_resumed = "session_resumed"
    person_asked = "person_asked"
    person_replied = "person_replied"
    plan_generated = "plan_generated"
    step_started = "step_started"
    step_completed = "step_completed"
    tool_called = "tool_called"
    llm_called = "llm_called"
    source_added = "source_added"
    note_created = "note_created"
    reflection_completed = "reflection_completed"
    steered = "steered"
    section_written = "section_written"
    synthesis_completed = "synthesis_completed"
    budget_warning = "budget_warning"
    error_occurred = "error_occurred"
    session_completed = "session_completed"


class AuditEvent(Model):
    """One event."""

    id: str
    at: str  # ISO 8601 in UTC, milliseconds
    type: AuditType
    actor: Actor
    action: str  # one line for a person
    details: dict[str, JsonValue] = {}
    parent: str | None = None  # id of the event that this one is part of


class ChainedEvent(AuditEvent):
    """A line of the log: `seq` counts from 1, `hash` is the SHA-256 of the rest, `prev` the previous line's hash."""

    seq: int
    prev: str
    hash: str


class Break(Model):
    """The first line, counted from 1, at which a log was changed, and the error."""

    line: int
    problem: str


def chained(events: Sequence[AuditEvent], head: AuditHead) -> tuple[list[ChainedEvent], AuditHead]:
    """Return the lines of events that follow a head, and the new head."""
    lines: list[ChainedEvent] = []
    for event in events:
        data = {**event.model_dump(mode="json"), "seq": head.events + 1, "prev": head.hash}
        lines.append(ChainedEvent.model_validate({**data, "hash": _hash(data)}))
        head = AuditHead(events=lines[-1].seq, hash=lines[-1].hash)
    return lines, head


def written(events: Sequence[AuditEvent]) -> bytes:
    """Return events as the lines of a file."""
    return b"".join(_canonical(event.model_dump(mode="json")) + b"\n" for event in events)


def _canonical(data: object) -> bytes:
    """Return the canonical form that is written and hashed; characters outside UTF-8 become question marks."""
    text = json.dumps(data, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return text.encode("utf-8", "replace")


def _hash(data: Mapping[str, Any]) -> str:
    return hashlib.sha256(_canonical({name: value for name, value in data.items() if name != "hash"})).hexdigest()


def events_in(data: bytes, kind: type[EventT]) -> list[EventT]:
    """Return the events of a log without checking their hashes; other lines are left out."""
    found: list[EventT] = []
    for line in data.split(b"\n")[:-1]:
        with suppress(ValidationError):
            found.append(kind.model_validate_json(line))
    return found


def check(data: bytes, head: AuditHead | None = None) -> Break | None:
    """Return the first break of a log, or None if it is complete and unchanged.

    Without the head from the run's result, missing last lines cannot be noticed.
    """
    *lines, rest = data.split(b"\n")
    end = BEGINNING
    for line in lines:
        event = _authentic(line)
        if event is None:
            return Break(line=end.events + 1, problem="it was changed")
        if event.prev != end.hash or event.seq != end.events + 1:
            missing = event.seq - end.events - 1
            why = f"{missing} before it removed" if missing > 0 else "it does not belong here"
            return Break(line=end.events + 1, problem=f"lines were moved or removed: {why}")
        end = AuditHead(events=event.seq, hash=event.hash)
        if head and event.seq == head.events and event.hash != head.hash:
            return Break(line=event.seq, problem="it is not the event in the run's result: the log was rewritten")
    if rest:
        why = "it is incomplete: a process was killed while writing it, or the end was cut off"
        return Break(line=end.events + 1, problem=why)
    if head and end.events < head.events:
        why = f"the log ends here, but had {head.events} events when the run ended"
        return Break(line=end.events + 1, problem=why)
    return None


def _authentic(line: bytes) -> ChainedEvent | None:
    """Return the event of a line in canonical form with the right hash; None for any other line."""
    try:
        data = json.loads(line)
        event = ChainedEvent.model_validate(data)
        return event if _canonical(data) == line and _hash(data) == event.hash else None
    except (ValueError, RecursionError):
        return None

"""The state of a conversation: its messages with what the research added to them, and its checklist."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from fathom.interfaces.chat.shapes import Message
from fathom.models import Matter, Note, Plan
from fathom.service import reports
from fathom.service.runs import RunHandle
from fathom.telemetry.audit_events import AuditType, ChainedEvent


async def state_of(run: RunHandle, said: Sequence[Message], answer: str) -> dict[str, Any]:
    """Return the messages so far, the plan, each call with its findings and the answer; then the checklist.

    A run that waits for a clarification has neither plan nor calls: its answer is what it asks.
    """
    read = await run.read()
    folder = run.found.folder
    events = (await reports.audit(run)).events if folder else []
    notes = (await folder.notes() or []) if folder else []
    sources = {str(one.details["source_id"]): one for one in events if one.type is AuditType.source_added}
    asked = read.asked.questions if read.asked and read.asked.matter is Matter.question else []
    messages = [message.model_dump(exclude={"type"}) for message in said]
    if read.plan:
        messages += [{"role": "assistant", "content": _told(read.plan)}, *_calls(events, notes, sources)]
    return {
        "messages": [*messages, {"role": "assistant", "content": answer}],
        "needs_clarification": bool(asked),
        "clarifying_questions": [question.question for question in asked],
        "checklist": [
            {
                "id": str(step.step_id),
                "question": step.title,
                "resolved": step.status.value == "done",
                "findings": _findings([note for note in notes if str(step.step_id) in note.steps], sources),
            }
            for step in (read.plan.steps if read.plan else [])
        ],
        "iteration_count": read.result.metrics.rounds if read.result else 0,
    }


def _told(plan: Plan) -> str:
    return "\n".join([plan.plan_title, "", *(f"{step.step_id}. {step.title}" for step in plan.steps)])


def _calls(
    events: Sequence[ChainedEvent], notes: Sequence[Note], sources: Mapping[str, ChainedEvent]
) -> Iterator[dict[str, str]]:
    """Yield two messages for each call of a tool: what was asked of it, and what was found."""
    for event in events:
        if event.type is AuditType.tool_called:
            made = [note for note in notes if note.artifact_file == event.details.get("artifact_file")]
            found = _findings(made, sources) or {"failures": event.details.get("failures")}
            read = {"read": [_named(one) for one in sources.values() if one.parent == event.id]}
            yield {"role": "tool", "name": str(event.details["tool"]), "content": str(event.details["input"])}
            yield {"role": "tool", "name": "search_results", "content": json.dumps({**found, **read})}


def _findings(notes: Sequence[Note], sources: Mapping[str, ChainedEvent]) -> dict[str, Any] | None:
    """Return what notes say and by which sources; None without any."""
    if not notes:
        return None
    ids = dict.fromkeys(source_id for note in notes for source_id in note.source_ids if source_id in sources)
    return {
        "summary": " ".join(note.summary for note in notes),
        "key_points": [point for note in notes for point in note.extraction],
        "sources": [_named(sources[one]) for one in ids],
    }


def _named(source: ChainedEvent) -> dict[str, Any]:
    return {"title": source.action, **source.details}

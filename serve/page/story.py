"""What has happened in a run, as its page tells it: notes, sections, remarks, and every event in one line."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from fathom.client.shapes import EventType, RunEvent

_QUIET = ("llm_called",)


@dataclass(frozen=True)
class Told:
    """One thing that the page shows by itself: a note with its sources, or a section."""

    title: str
    at: str
    text: str = ""
    sources: list[dict[str, Any]] = field(default_factory=list)


@dataclass
class Story:
    """What has happened so far. `last`: the id of the last event."""

    last: int = 0
    notes: list[Told] = field(default_factory=list)
    sections: list[Told] = field(default_factory=list)
    remarks: list[Told] = field(default_factory=list)
    warnings: list[Told] = field(default_factory=list)
    sources: int = 0
    searches: int = 0
    log: list[RunEvent] = field(default_factory=list)


def story_of(events: Sequence[RunEvent]) -> Story:
    """Return what some events tell."""
    story = Story(last=events[-1].id if events else 0)
    known: dict[str, dict[str, Any]] = {}
    for event in events:
        data = event.data
        state = data.get("state")
        match event.type:
            case EventType.source_found:
                known.setdefault(str(data.get("source_id")), {"title": event.message, "url": str(data.get("url", ""))})
                continue
            case EventType.note_created:
                ids = data.get("source_ids")
                sources = [known[i] for i in ids if i in known] if isinstance(ids, list) else []
                title = event.message.partition(": ")[2] or event.message
                story.notes.append(Told(title, event.at, sources=sources))
            case EventType.section:
                text = data.get("markdown") or data.get("text") or ""
                story.sections.append(Told(str(data.get("heading") or event.message), event.at, str(text)))
            case EventType.tool_called:
                story.searches += 1
            case EventType.warning | EventType.error:
                story.warnings.append(Told(event.message, event.at))
            case _ if state == "steered":
                story.remarks.append(Told(event.message, event.at))
        if state not in _QUIET and event.id:
            story.log.append(event)
    story.sources = len(known)
    return story

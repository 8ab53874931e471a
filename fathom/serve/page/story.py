"""What has happened in a run, as its page tells it: notes, sections, remarks, and every event in one line."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from pydantic import ValidationError

from fathom.client.shapes import EventType, RunEvent
from fathom.flows.runs.finding import KnownRun
from fathom.models import Draft, Plan
from fathom.models.plan import StepStatus
from fathom.serve.runs.log_reader import LogReader
from fathom.storage.store import ArtifactStore
from fathom.text.citations import without_citations

_QUIET = ("llm_called",)


@dataclass(frozen=True)
class Told:
    """One thing that the page shows by itself, such as a note with its sources."""

    title: str
    at: str
    text: str = ""
    sources: list[dict[str, Any]] = field(default_factory=list)


@dataclass
class Story:
    """What has happened so far. `last`: the id of the last event."""

    last: int = 0
    notes: list[Told] = field(default_factory=list)
    sections: list[Draft] = field(default_factory=list)  # in the order of the report
    remarks: list[Told] = field(default_factory=list)
    warnings: list[Told] = field(default_factory=list)
    steps: dict[str, StepStatus] = field(default_factory=dict)  # by their ids, as far as they have ended
    now: set[str] = field(default_factory=set)  # ids of those that have begun and not ended
    sources: int = 0
    log: list[RunEvent] = field(default_factory=list)

    def plan(self, plan: Plan | None) -> Plan | None:
        """Return a plan with the statuses of its steps at this moment: the stored one has those of the last round."""
        if plan is None:
            return None
        now = [
            step.model_copy(update={"status": self.steps.get(str(step.step_id), step.status)})
            if step.status is StepStatus.todo
            else step
            for step in plan.steps
        ]
        return plan.model_copy(update={"steps": now})


async def read_story(store: ArtifactStore, found: KnownRun) -> Story:
    """Return what has happened in a run.

    Raises:
        StoreError: the store fails.
    """
    folder = found.folder.folder if found.folder else ""
    return story_of(await LogReader(store, found.run_id, found.stored.run_key, folder).new())


def story_of(events: Sequence[RunEvent]) -> Story:
    """Return what some events tell."""
    story = Story(last=events[-1].id if events else 0)
    known: dict[str, dict[str, Any]] = {}
    sections: dict[int, Draft] = {}  # by their places: one may be written again
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
                story.notes.append(
                    Told(str(data.get("title", "")), event.at, _plain(str(data.get("summary", ""))), sources=sources)
                )
            case EventType.section:
                with suppress(ValidationError):  # a line of another version
                    section = Draft.model_validate({name: data.get(name) for name in Draft.model_fields})
                    sections[section.position] = section
            case EventType.step_started:
                story.now.add(str(data.get("step_id")))
            case EventType.step_completed:
                story.steps[str(data.get("step_id"))] = StepStatus(str(data["status"]))
                story.now.discard(str(data.get("step_id")))
            case EventType.warning | EventType.error:
                story.warnings.append(Told(event.message, event.at))
            case _ if state == "steered":
                story.remarks.append(Told(event.message, event.at))
        if state not in _QUIET and event.id:
            story.log.append(event)
    story.sources = len(known)
    story.sections = [sections[position] for position in sorted(sections)]
    return story


def _plain(text: str) -> str:
    return without_citations(text).replace(" .", ".").replace("*", "")

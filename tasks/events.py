"""What Fathom tells of a run through Prefect's events, for automations, other programs and `--watch`.

The resource of each is the flow run; its name says where the report is, because `prefect deployment run --watch` prints
the name of an event's resource and no message of a state. `docs/watching.md` lists the payloads.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from prefect.client.schemas.objects import FlowRun
from prefect.events import emit_event
from prefect.runtime import deployment, flow_run

from fathom.changes.model import Change, Changes, Statement
from fathom.config.environment import Environment
from fathom.config.models import Role
from fathom.config.secrets import Scrubber, each_text
from fathom.evidence.provenance import digest_of
from fathom.models import Ending, Report, RunResult
from fathom.report.changes import HEADINGS, summary_of
from fathom.run.engine import Engine, RunStart
from fathom.storage.lease import RESULTS
from fathom.storage.store import json_bytes

STARTED, CHANGED, BUDGET = "fathom.run.started", "fathom.answer.changed", "fathom.budget.warning"
FAILED = "fathom.run.failed"
ENDED = {
    Ending.complete: "fathom.run.completed",
    Ending.degraded: "fathom.run.degraded",
    Ending.insufficient_evidence: FAILED,
    Ending.failed: FAILED,
}
"""The event of each ending; a run without a report failed, and its payload says how."""
MOST_CHANGES, MOST_CHARS = 20, 500  # that a payload shows, and characters of each text

Payload = Mapping[str, Any]


@dataclass(frozen=True)
class About:
    """The run that an event is of."""

    run_id: str
    question: str
    watch: str  # empty for none

    @classmethod
    def of(cls, start: RunStart) -> About:
        """Return what every event of a run says."""
        return cls(start.run_id, start.query, start.watch)


async def tell(event: str, about: About, place: str, payload: Payload) -> None:
    """Emit an event of this flow run; a run that has none, such as a replay, tells nothing.

    Args:
        event: its name.
        about: the run.
        place: where to look, or what happened, in one line: the name of the event's resource.
        payload: what is told beside the run and its deployment.
    """
    if flow_run.id:
        told = {**asdict(about), "deployment_id": str(deployment.id or ""), **payload}
        await asyncio.to_thread(_emit, event, str(flow_run.id), place, told)


def _emit(event: str, flow_run_id: str, place: str, payload: Payload) -> None:
    scrubber = Scrubber(Environment.read().secrets)
    resource = {"prefect.resource.name": place, "fathom.watch": payload["watch"]}
    resource = {"prefect.resource.id": f"prefect.flow-run.{flow_run_id}", **each_text(resource, scrubber.message)}
    emit_event(event, resource, payload=each_text({"event": event, **payload}, scrubber.message))


async def tell_start(start: RunStart) -> None:
    """Tell that a run has begun."""
    settings = start.settings
    payload = {"profile": settings.profile.value, "model": settings.role_models[Role.reporter].model}
    await tell(STARTED, About.of(start), start.query, payload)


async def tell_end(
    engine: Engine, result: RunResult, report: Report | None, where: str, changes: Changes | None
) -> None:
    """Tell how a run has ended and, of a watch, what changed; a retry that ends in the same way tells nothing again."""
    start, store = engine.start, engine.store
    ended: dict[str, Any] = {
        "ending": result.status.value,
        "reason": result.reason.partition("\n")[0],
        "report": f"{result.artifacts}/report.html" if report else "",
        "folder": result.artifacts,
        "answered": result.answered.value if result.answered else "",
        "claims": dict(Counter(claim.verdict.value for claim in report.claims)) if report else {},
        "sources": len(result.sources),
        "changes": changes_payload(changes, result.artifacts) if changes else None,
    }
    ended["text"] = _text(ended, changes)
    digest = digest_of(json_bytes([start.run_id, ended]))[:24]
    told = f"{RESULTS}/{start.run_key}/told-{digest}"
    if await store.exists(told):
        return
    spent = {"cost_usd": result.metrics.cost_usd, "seconds": round(result.metrics.seconds, 1)}
    for event in [ENDED[result.status], *([CHANGED] if changes and changes.any else [])]:
        await tell(event, About.of(start), where, {**ended, **spent})
    await store.write(told, b"")


def changes_payload(changes: Changes, folder: str) -> dict[str, Any]:
    """Return what changed as an event has it: the counts, and the first changes with both values and sources."""
    return {
        "summary": summary_of(changes),
        "any": changes.any,
        "counts": {
            **{kind: len(changes.of(kind)) for kind in HEADINGS},
            "unchanged": changes.unchanged,
            "unmentioned": changes.unmentioned,
            "unread": len(changes.unread),
        },
        "compared_with": changes.before.run_id,
        "page": f"{folder}/changes.html",
        "claims": [_item(change) for change in changes.changes[:MOST_CHANGES]],
    }


def _text(ended: Payload, changes: Changes | None) -> str:
    """Return what happened in a few lines for a person."""
    how = f"{ended['ending']}: {ended['reason']}" if ended["reason"] else ended["ending"]
    lines = [summary_of(changes) if changes else how.replace("_", " ")]
    for change in changes.changes[:MOST_CHANGES] if changes else []:
        values = "; ".join(f"{d.before or '–'} → {d.after or '–'}" for d in change.differences)
        said = change.after or change.before
        places = ", ".join(place.url for place in said.sources) if said else ""
        lines.append(
            f"- {change.kind}: {f'{values}: ' if values else ''}{_short(said.sentence) if said else ''} ({places})"
        )
    return "\n".join([*lines, str(ended["report"] or ended["folder"])])


def _item(change: Change) -> dict[str, Any]:
    return {
        "kind": change.kind,
        "values": [
            {"about": d.about, "before": _short(d.before), "after": _short(d.after)} for d in change.differences
        ],
        "before": _side(change.before),
        "after": _side(change.after),
        "note": change.note,
    }


def _side(said: Statement | None) -> dict[str, Any] | None:
    return {"sentence": _short(said.sentence), "sources": [place.url for place in said.sources]} if said else None


def _short(text: str) -> str:
    return text if len(text) <= MOST_CHARS else f"{text[: MOST_CHARS - 1]}…"


async def tell_failure(run: FlowRun, reason: str) -> None:
    """Tell that a run failed with an error."""
    about = About(str(run.id), *(str(run.parameters.get(name) or "") for name in ("query", "watch")))
    payload = {
        **asdict(about),
        "ending": Ending.failed.value,
        "reason": reason,
        "report": "",
        "changes": None,
        "text": reason,
    }
    await asyncio.to_thread(
        _emit, FAILED, str(run.id), reason, {**payload, "deployment_id": str(run.deployment_id or "")}
    )

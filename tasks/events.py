"""Fathom's Prefect events about a run, for automations, other programs and `--watch`.

The resource of each is the flow run; its name says where the report is, because `prefect deployment run --watch` prints
the name of an event's resource and no message of a state. `docs/watching.md` lists the payloads.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from prefect.client.schemas.objects import FlowRun
from prefect.context import FlowRunContext
from prefect.events import emit_event
from prefect.logging.loggers import flow_run_logger

from fathom.changes.model import Change, Changes, Statement
from fathom.config.environment import Environment
from fathom.config.groups import Role
from fathom.config.secrets import Scrubber, each_text
from fathom.errors import StoreError
from fathom.evidence.provenance import digest_of
from fathom.models import Ending, Report, RunResult
from fathom.report.changes import HEADINGS, summary_of
from fathom.run.engine import Engine, RunStart
from fathom.storage.atomic import Flush
from fathom.storage.lease import RESULTS, read_lease
from fathom.storage.names import watch_name
from fathom.storage.store import ArtifactStore, json_bytes
from fathom.tasks.durable import run_logger
from fathom.text.plain import clean_line

STARTED, CHANGED, BUDGET = "fathom.run.started", "fathom.answer.changed", "fathom.budget.warning"
WAITING = "fathom.run.waiting"
FAILED = "fathom.run.failed"
ENDED = {
    Ending.complete: "fathom.run.completed",
    Ending.degraded: "fathom.run.degraded",
    Ending.insufficient_evidence: FAILED,
    Ending.failed: FAILED,
}
"""The event of each ending; a run without a report failed, and its payload says how."""
MOST_CHANGES, MOST_CHARS = 20, 500  # that a payload shows, and characters of each text
_PLAIN = str.maketrans("<>|!@", "＜＞｜！＠")  # look the same, and mean nothing to Slack

Payload = Mapping[str, Any]
Log = logging.Logger | logging.LoggerAdapter[logging.Logger]


@dataclass(frozen=True)
class About:
    """The run of an event."""

    run_id: str
    question: str
    watch: str  # empty for none

    @classmethod
    def of(cls, start: RunStart) -> About:
        """Return the payload that all events of a run share."""
        return cls(start.run_id, start.query, watch_name(start.watch))


async def tell(event: str, about: About, place: str, payload: Payload) -> None:
    """Emit an event of this flow run; a run that has none, such as a replay, tells nothing.

    Args:
        event: its name.
        about: the run.
        place: where to look, or what happened, in one line: the name of the event's resource.
        payload: data in addition to the run and its deployment.
    """
    # Not from `prefect.runtime`, which asks the server for the deployment of a run that has none, while all else waits.
    context = FlowRunContext.get()
    if context and (run := context.flow_run):
        told = {**asdict(about), "deployment_id": str(run.deployment_id or ""), **payload}
        await asyncio.to_thread(_emit, event, str(run.id), place, told)


def _emit(event: str, flow_run_id: str, place: str, payload: Payload) -> None:
    scrubber = Scrubber(Environment.read().secrets)
    resource = {"prefect.resource.name": place, "fathom.watch": payload["watch"]}
    resource = {"prefect.resource.id": f"prefect.flow-run.{flow_run_id}", **each_text(resource, scrubber.message)}
    said = each_text({"event": event, **payload}, scrubber.message)
    emit_event(event, resource, payload={**said, "slack": for_slack(said)})


def for_slack(payload: Payload) -> dict[str, str]:
    """Return the texts of a message to Slack. A page's text cannot mention a channel there or disguise an address."""
    return {name: str(payload.get(name, "")).translate(_PLAIN) for name in ("question", "text")}


async def tell_start(start: RunStart) -> None:
    """Emit the event that a run has begun."""
    settings = start.settings
    payload = {"profile": settings.profile.value, "model": settings.role_models[Role.reporter].model}
    await tell(STARTED, About.of(start), start.query, payload)


async def tell_waiting(start: RunStart, what: str, how: str) -> None:
    """Emit the event that a run waits for a person, with instructions for answering."""
    said = f"It waits for somebody to say {what}: {how}"
    await tell(WAITING, About.of(start), said, {"asks": what, "answer": how, "text": said})


async def tell_end(
    engine: Engine, result: RunResult, report: Report | None, where: str, changes: Changes | None
) -> None:
    """Emit the event of a run's ending, for a watch with the changes; a retry with the same ending emits nothing."""
    start = engine.start
    ended: dict[str, Any] = {
        "ending": result.status.value,
        "reason": clean_line(result.reason.partition("\n")[0]),
        "report": f"{result.artifacts}/report.html" if report else "",
        "folder": result.artifacts,
        "answered": result.answered.value if result.answered else "",
        "claims": dict(Counter(claim.verdict.value for claim in report.claims)) if report else {},
        "sources": len(result.sources),
        "changes": changes_payload(changes, result.artifacts) if changes else None,
    }
    ended["text"] = text_of(ended, changes)
    spent = {"cost_usd": result.metrics.cost_usd, "seconds": round(result.metrics.seconds, 1)}

    async def told() -> None:
        for event in [ENDED[result.status], *([CHANGED] if changes and changes.any else [])]:
            await tell(event, About.of(start), where, {**ended, **spent})

    await _once(engine.store, start.run_key, {"run_id": start.run_id, **ended}, told, run_logger())


async def _once(
    store: ArtifactStore, run_key: str, ended: Payload, told: Callable[[], Awaitable[None]], log: Log
) -> None:
    """Emit an ending unless it was emitted before. A store's failure is logged: emitting twice is better than never.

    So the marker is not flushed: a run that is resumed after a power cut may tell its ending again. A torn marker is
    right, since only its name is read.
    """
    marker = f"{RESULTS}/{run_key}/told/{digest_of(json_bytes(ended))[:24]}.json"
    try:
        if await store.exists(marker):
            return
    except StoreError as error:
        log.warning("Whether this ending was told is not known, so it is told: %s", error)
    await told()
    try:
        told_of = json_bytes({name: ended[name] for name in ("run_id", "ending")})
        await store.write(marker, told_of, flush=Flush.nothing)
    except StoreError as error:
        log.warning("That this ending was told is not stored, so a retry may tell it again: %s", error)


def changes_payload(changes: Changes, folder: str) -> dict[str, Any]:
    """Return the changes as an event's payload: the counts, and the first changes with both values and sources."""
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


def text_of(ended: Payload, changes: Changes | None) -> str:
    """Return a summary of the event in a few lines for a person."""
    how = f"{ended['ending']}: {ended['reason']}" if ended["reason"] else ended["ending"]
    lines = [summary_of(changes) if changes else how.replace("_", " ")]
    for change in changes.changes[:MOST_CHANGES] if changes else []:
        values = "; ".join(f"{_short(d.before) or '–'} → {_short(d.after) or '–'}" for d in change.differences)
        said = change.after or change.before
        places = ", ".join(clean_line(place.url) for place in said.sources) if said else ""
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
        "note": clean_line(change.note),
    }


def _side(said: Statement | None) -> dict[str, Any] | None:
    if said is None:
        return None
    return {"sentence": _short(said.sentence), "sources": [clean_line(place.url) for place in said.sources]}


def _short(text: str) -> str:
    text = clean_line(text)
    return text if len(text) <= MOST_CHARS else f"{text[: MOST_CHARS - 1]}…"


async def tell_failure(run: FlowRun, reason: str, store: ArtifactStore, run_key: str) -> None:
    """Emit the event that a run failed with an error; a retry that fails in the same way emits nothing."""
    query, watch = (str(run.parameters.get(name) or "") for name in ("query", "watch"))
    about = About(str(run.id), query, watch_name(watch))
    reason = clean_line(reason)
    payload = {
        **asdict(about),
        "ending": Ending.failed.value,
        "reason": reason,
        "report": "",
        "changes": None,
        "text": reason,
        "deployment_id": str(run.deployment_id or ""),
    }

    async def told() -> None:
        await asyncio.to_thread(_emit, FAILED, str(run.id), reason, payload)

    log = flow_run_logger(run)
    try:
        lease = await read_lease(store, run_key)
    except StoreError as error:
        log.warning("Whether this run has begun is not known: %s", error)
        lease = None
    if lease and lease.run_id == about.run_id:
        await _once(store, run_key, payload, told, log)
    else:  # it was refused, and changes nothing in a store that may hold another run of its key
        await told()

"""Research sessions: created with settings, executed with a question, and then a run.

A session is a file on the store until it is executed, and one more that names its run: both are created only once, so
neither a restart nor a second server changes anything.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from contextlib import aclosing
from datetime import UTC, datetime
from typing import Any
from uuid import UUID, uuid4

from pydantic import ValidationError

from fathom.client.sessions import (
    CreateSessionRequest,
    ExecuteRequest,
    ExecutionStarted,
    ProgressEvent,
    Session,
    SessionConfig,
    SessionMetrics,
    SessionPlan,
    SessionResult,
    SessionState,
    SessionStep,
)
from fathom.client.shapes import EventType, Run, RunEvent, RunRequest
from fathom.errors import Conflict, NoReport, NotThere
from fathom.models import Model, Plan, RunState, StepStatus
from fathom.service.caller import Caller, Ownership, Role
from fathom.service.events import PULSE, PULSE_SECONDS
from fathom.service.runs import Desk
from fathom.storage.store import json_bytes

FOLDER = ".serve/sessions"
_STATES: dict[RunState, SessionState] = {
    RunState.queued: "planning",
    RunState.interrupted: "researching",
    RunState.complete: "completed",
    RunState.degraded: "completed",
    RunState.insufficient_evidence: "completed",
    RunState.failed: "failed",
    RunState.cancelled: "cancelled",
}
_STEPS: dict[StepStatus, Any] = {
    StepStatus.todo: "pending",
    StepStatus.in_progress: "in_progress",
    StepStatus.done: "completed",
    StepStatus.blocked: "failed",
}
_TYPES = {
    **{one: one.value for one in EventType},
    EventType.section: "state_change",
    EventType.warning: "state_change",
}

_UNTOLD = (EventType.now, EventType.tool_called)


class _Kept(Model):
    owner: str
    created: str
    config: dict[str, Any]


async def create(desk: Desk, caller: Caller, request: CreateSessionRequest) -> Session:
    """Create a session; nothing is researched yet.

    Raises:
        NotAllowed: the caller may not ask.
        InvalidInput: a run cannot have these settings.
    """
    caller.check(Role.asker)
    desk.settings_for(caller, settings_in(request.config))
    session_id = str(uuid4())
    config = request.config.model_dump(mode="json", by_alias=True, exclude_none=True)
    kept = _Kept(owner=caller.name, created=datetime.now(UTC).isoformat(timespec="seconds"), config=config)
    await desk.store.create(_path(session_id), json_bytes(kept))
    return Session(id=session_id, state="created", config=request.config)


async def execute(desk: Desk, caller: Caller, session_id: str, request: ExecuteRequest) -> ExecutionStarted:
    """Start the run of a session; the same question again names the same run.

    Raises:
        NotThere: there is no such session, or it is somebody else's.
        NotAllowed: the caller may not ask.
        InvalidInput: the question cannot be researched.
        Conflict: it was executed with another question, or was cancelled.
    """
    kept, run_id = await _find(desk, caller, session_id)
    if run_id == "":
        raise Conflict("The session was cancelled.", next_step="create another")
    config = SessionConfig.model_validate(kept.config)
    asked = RunRequest(question=request.query, settings=settings_in(config))
    run = await desk.start(caller, asked, f"session/{session_id}")
    if not await desk.store.create(_path(session_id, "run"), json_bytes({"run_id": run.id})):
        await desk.cancel(caller, run.id)
        raise Conflict("The session was cancelled, or somebody else is executing it.", next_step="create another")
    return ExecutionStarted(session_id=session_id, run_id=run.id, stream=f"/research/sessions/{session_id}/stream")


async def read(desk: Desk, caller: Caller, session_id: str) -> Session:
    """Return a session as it stands.

    Raises:
        NotThere: there is no such session, or it is somebody else's.
    """
    kept, run_id = await _find(desk, caller, session_id)
    config = SessionConfig.model_validate(kept.config)
    if not run_id:
        return Session(id=session_id, state="created" if run_id is None else "cancelled", config=config)
    run = await desk.get(caller, run_id)
    account = run.result.metrics.account if run.result else run.spent
    return Session(
        id=session_id,
        state=_state(run),
        config=config,
        run_id=run_id,
        plan=_plan(run.plan) if run.plan else None,
        metrics=SessionMetrics.of(account) if account else None,
        result=await _result(desk, caller, run),
    )


async def cancel(desk: Desk, caller: Caller, session_id: str) -> None:
    """End the run of a session, or keep it from being executed.

    Raises:
        NotThere: there is no such session, or it is somebody else's.
    """
    _, run_id = await _find(desk, caller, session_id)
    if run_id:
        await desk.cancel(caller, run_id)
    elif run_id is None and not await desk.store.create(_path(session_id, "run"), json_bytes({"run_id": ""})):
        await cancel(desk, caller, session_id)  # it was executed just now


async def stream(desk: Desk, caller: Caller, session_id: str, after: int) -> AsyncGenerator[bytes, None]:
    """Yield the events of a session after the one of an id, as they are sent, until its run has ended.

    Raises:
        NotThere: there is no such session, or it is somebody else's.
        Conflict: it was not executed.
    """
    found, _ = await desk.readable(caller, await run_of(desk, caller, session_id))
    followed = desk.feeds.follow(found, after, PULSE_SECONDS)
    async with aclosing(desk.sharing.while_readable(caller, found, followed)) as events:
        async for event in events:
            if event is None:
                yield PULSE
            elif event.type not in _UNTOLD:
                number = f"id: {event.id}\n" if event.id else ""
                data = told(event).model_dump_json(by_alias=True)
                yield f"{number}event: {_TYPES[event.type]}\ndata: {data}\n\n".encode()


async def run_of(desk: Desk, caller: Caller, session_id: str) -> str:
    """Return the id of the run of a session.

    Raises:
        NotThere: there is no such session, or it is somebody else's.
        Conflict: it was not executed.
    """
    _, run_id = await _find(desk, caller, session_id)
    if not run_id:
        raise Conflict("The session was not executed.", next_step=f"POST /research/sessions/{session_id}/execute")
    return run_id


def told(event: RunEvent) -> ProgressEvent:
    """Return an event of a run as one of a session."""
    data = {**event.data, "message": event.message}
    return ProgressEvent.model_validate({"type": _TYPES[event.type], "timestamp": event.at, "data": data})


def settings_in(config: SessionConfig) -> dict[str, Any]:
    """Return the settings of a run that a session's configuration means."""
    named = {"reporter": config.models.synthesizer, **{role: getattr(config.models, role) for role in _ROLES}}
    models = {
        role: {"model": f"{chosen.provider}/{chosen.model}", **chosen.model_dump(include=_OWN, exclude_none=True)}
        for role, chosen in named.items()
        if chosen
    }
    given, limits = config.budget, config.limits
    budget = {
        "max_tokens": given.max_tokens,
        "max_usd": given.max_dollars,
        "max_calls": given.max_api_calls,
        "max_seconds": given.max_duration_ms and given.max_duration_ms / 1_000,
    }
    settings = {
        "depth": limits.max_iterations,
        "max_steps": limits.max_steps_per_iteration,
        "sufficiency": round(limits.sufficiency_threshold),
    }
    caps = {name: cap for name, cap in budget.items() if cap is not None}
    return {**settings, **({"role_models": models} if models else {}), **({"budget": caps} if caps else {})}


_ROLES = ("planner", "researcher", "critic")
_OWN = {"temperature", "max_tokens"}


async def _find(desk: Desk, caller: Caller, session_id: str) -> tuple[_Kept, str | None]:
    """Return a session and the id of its run: None before it is executed, empty if it was cancelled before."""
    missing = NotThere(f"There is no session {session_id[:60]!r}.", next_step="POST /research/sessions creates one")
    try:
        if str(UUID(session_id)) != session_id:
            raise missing
        kept = _Kept.model_validate_json(await desk.store.read(_path(session_id)))
    except (ValueError, FileNotFoundError, ValidationError):
        raise missing from None
    if not Ownership(owner=kept.owner).readable_by(caller):
        raise missing
    try:
        return kept, str(json.loads(await desk.store.read(_path(session_id, "run")))["run_id"])
    except FileNotFoundError:
        return kept, None


def _path(session_id: str, part: str = "session") -> str:
    return f"{FOLDER}/{session_id}/{part}.json"


def _state(run: Run) -> SessionState:
    if state := _STATES.get(run.state):
        return state
    if run.plan is None:
        return "planning"
    if any(step.status is StepStatus.todo for step in run.plan.steps):
        return "researching"
    return "reflecting" if "reflect" in run.phase else "synthesizing"


def _plan(plan: Plan) -> SessionPlan:
    steps = [
        SessionStep(
            id=str(step.step_id),
            description=step.description or step.title,
            search_queries=step.queries,
            priority=step.priority.value,
            dependencies=[str(one) for one in step.depends_on],
            status=_STEPS[step.status],
        )
        for step in plan.steps
    ]
    return SessionPlan(title=plan.plan_title, steps=steps)


async def _result(desk: Desk, caller: Caller, run: Run) -> SessionResult | None:
    if run.result is None:
        return None
    try:
        report = (await desk.report(caller, run.id, "md")).decode()
    except NoReport:
        report = None
    found = [source.model_dump(mode="json", include={"source_id", "url", "title"}) for source in run.result.sources]
    return SessionResult(status=run.result.status.value, report=report, sources=found)

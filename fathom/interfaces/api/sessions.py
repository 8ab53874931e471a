"""Research sessions, as the engine's first design has them: a run by other names."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from http import HTTPStatus
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Path
from fastapi.responses import StreamingResponse

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
from fathom.errors import NoReport
from fathom.interfaces.api.common import JSON_ONLY, PULSE, PULSE_SECONDS, STREAM, EventStream, LastEvent
from fathom.interfaces.dependencies import TheCaller, TheService
from fathom.models import Plan, RunState, StepStatus
from fathom.service import sessions
from fathom.service.runs import RunHandle
from fathom.service.sessions import SessionHandle

router = APIRouter(prefix="/research/sessions", tags=["sessions"])
SessionId = Annotated[
    str,
    Path(
        alias="sessionId",
        max_length=60,
        description="Id of the session.",
        examples=["0b8f5c1e-6f0e-4b57-9c56-0d5a4c1f7a21"],
    ),
]
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


async def _session(session_id: SessionId, service: TheService, caller: TheCaller) -> SessionHandle:
    return await sessions.find(service, caller, session_id)


TheSession = Annotated[SessionHandle, Depends(_session)]


@router.post("", status_code=HTTPStatus.CREATED, summary="Create a session", dependencies=JSON_ONLY)
async def create_session(request: CreateSessionRequest, service: TheService, caller: TheCaller) -> Session:
    """Create a session; nothing is researched until it is executed."""
    config = request.config.model_dump(mode="json", by_alias=True, exclude_none=True)
    session_id = await sessions.create(service, caller, config, _settings(request.config))
    return Session(id=session_id, state="created", config=request.config)


@router.get("/{sessionId}", summary="Read a session")
async def read_session(session: TheSession) -> Session:
    """Return a session: its state, plan, metrics and result."""
    config = SessionConfig.model_validate(session.config)
    if not session.run_id:
        state: SessionState = "created" if session.run_id is None else "cancelled"
        return Session(id=session.session_id, state=state, config=config)
    found = await session.run()
    run = await found.read()
    account = run.result.metrics.account if run.result else run.spent
    return Session(
        id=session.session_id,
        state=_state(run),
        config=config,
        run_id=run.id,
        plan=_plan(run.plan) if run.plan else None,
        metrics=SessionMetrics.of(account) if account else None,
        result=await _result(found, run),
    )


@router.delete("/{sessionId}", status_code=HTTPStatus.NO_CONTENT, summary="Cancel a session")
async def cancel_session(session: TheSession) -> None:
    """End the run of a session, or keep it from being executed."""
    await session.cancel()


@router.post(
    "/{sessionId}/execute", status_code=HTTPStatus.ACCEPTED, summary="Execute a session", dependencies=JSON_ONLY
)
async def execute_session(session: TheSession, request: ExecuteRequest) -> ExecutionStarted:
    """Start the run of a session. The same question again names the same run."""
    settings = _settings(SessionConfig.model_validate(session.config))
    run = await session.execute(RunRequest(question=request.query, settings=settings))
    stream = f"{router.prefix}/{session.session_id}/stream"
    return ExecutionStarted(session_id=session.session_id, run_id=run.id, stream=stream)


@router.get(
    "/{sessionId}/stream",
    summary="Follow a session",
    response_class=EventStream,
    responses={
        200: {
            "description": "Server-sent events until the run has ended; the data of each is a ProgressEvent.",
            "content": {"text/event-stream": {"schema": {"type": "string"}, "example": "event: state_change\n"}},
        },
        409: {"description": "The session was not executed."},
    },
)
async def follow_session(session: TheSession, last_event_id: LastEvent = "") -> StreamingResponse:
    """Follow what happens in a session, as server-sent events."""
    run = await session.run(to_follow=True)
    return EventStream(_frames(run.events(int(last_event_id or 0), PULSE_SECONDS)), headers=STREAM)


async def _frames(events: AsyncGenerator[RunEvent | None, None]) -> AsyncGenerator[bytes, None]:
    async with aclosing(events):
        async for event in events:
            if event is None:
                yield PULSE
            elif event.type not in _UNTOLD:
                number = f"id: {event.id}\n" if event.id else ""
                data = _progress(event).model_dump_json(by_alias=True)
                yield f"{number}event: {_TYPES[event.type]}\ndata: {data}\n\n".encode()


def _progress(event: RunEvent) -> ProgressEvent:
    data = {**event.data, "message": event.message}
    return ProgressEvent.model_validate({"type": _TYPES[event.type], "timestamp": event.at, "data": data})


def _settings(config: SessionConfig) -> dict[str, Any]:
    """Return the settings of a run that a configuration means."""
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


async def _result(found: RunHandle, run: Run) -> SessionResult | None:
    if run.result is None:
        return None
    try:
        report = (await found.report("md")).decode()
    except NoReport:
        report = None
    sources = [source.model_dump(mode="json", include={"source_id", "url", "title"}) for source in run.result.sources]
    return SessionResult(status=run.result.status.value, report=report, sources=sources)

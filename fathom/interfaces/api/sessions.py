"""Research sessions, as the Research engine has them: a run by other names."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import aclosing
from http import HTTPStatus
from math import ceil
from typing import Annotated, Any, get_args

from fastapi import APIRouter, Depends, Path
from fastapi.responses import StreamingResponse
from pydantic import JsonValue

from fathom.client.sessions import (
    CreateSessionRequest,
    ExecuteRequest,
    ExecutionStarted,
    Output,
    ProgressEvent,
    ResultMetrics,
    Session,
    SessionCitation,
    SessionConfig,
    SessionMetrics,
    SessionPlan,
    SessionResult,
    SessionSection,
    SessionState,
    SessionStep,
)
from fathom.client.shapes import EventType, Form, Run, RunEvent, RunRequest
from fathom.errors import NoReport
from fathom.evidence.provenance import PROVENANCE, read
from fathom.interfaces.dependencies import (
    JSON_ONLY,
    PULSE,
    PULSE_SECONDS,
    STREAM,
    EventStream,
    LastEvent,
    TheCaller,
    TheService,
)
from fathom.models import Claim, Plan, RunState, StepStatus, Verdict
from fathom.report.answer import answer_of
from fathom.service import reports, sessions
from fathom.service.runs import RunHandle
from fathom.service.sessions import SessionHandle
from fathom.text.urls import host_of

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
    RunState.complete: "completed",
    RunState.degraded: "completed",
    RunState.insufficient_evidence: "completed",
    RunState.failed: "failed",
    RunState.unreadable: "failed",
    RunState.cancelled: "cancelled",
}
"""How a session ends; before that, its state is the stage of its run."""
_STEPS: dict[StepStatus, Any] = {
    StepStatus.todo: "pending",
    StepStatus.in_progress: "in_progress",
    StepStatus.done: "completed",
    StepStatus.blocked: "failed",
}
_TYPES = frozenset(get_args(ProgressEvent.model_fields["type"].annotation))
"""The types of events that the design has; all others are changes of state."""
_FORMS: dict[str, Form] = {"markdown": "md", "html": "html", "json": "json"}


async def _session(session_id: SessionId, service: TheService, caller: TheCaller) -> SessionHandle:
    return await sessions.find(service, caller, session_id)


TheSession = Annotated[SessionHandle, Depends(_session)]


@router.post("", status_code=HTTPStatus.CREATED, summary="Create a session", dependencies=JSON_ONLY)
async def create_session(request: CreateSessionRequest, service: TheService, caller: TheCaller) -> Session:
    """Create a session; nothing is researched until it is executed."""
    config = request.config.model_dump(mode="json", by_alias=True, exclude_none=True)
    settings, template = _settings(request.config), request.config.domain.domain
    session_id = await sessions.create(service, caller, config, settings, template)
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
        result=await _result(found, run, config.output),
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
    config = SessionConfig.model_validate(session.config)
    asked = RunRequest(question=request.query, settings=_settings(config), template=config.domain.domain)
    run = await session.execute(asked)
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
    state: JsonValue = "planning"
    async with aclosing(events):
        async for event in events:
            if event is None:
                yield PULSE
            elif event.id:
                if event.type is not EventType.tool_called:
                    data = {**event.data, "event": event.data["state"]} if "state" in event.data else event.data
                    yield _frame(event, {**data, "state": state})
            elif event.type is not EventType.now:
                yield _frame(event, {"state": _STATES.get(RunState(str(event.data["state"])), state)})
            elif event.data["stage"] != state:
                state = event.data["stage"]
                yield _frame(event, {"state": state})


def _frame(event: RunEvent, data: dict[str, Any]) -> bytes:
    """Return an event under the names of the design; `state` in its data is the state of the session."""
    told = ProgressEvent.model_validate(
        {
            "type": event.type if event.type in _TYPES else EventType.state_change,
            "timestamp": event.at,
            "data": {**data, "message": event.message},
        }
    )
    number = f"id: {event.id}\n" if event.id else ""
    return f"{number}event: {told.type}\ndata: {told.model_dump_json(by_alias=True)}\n\n".encode()


def _settings(config: SessionConfig) -> dict[str, Any]:
    """Return the settings of a run that a configuration means."""
    chosen = config.models
    named = {
        "planner": chosen.planner,
        "researcher": chosen.researcher,
        "compressor": chosen.researcher,
        "critic": chosen.critic,
        "reporter": chosen.synthesizer,
    }
    models = {
        role: {"model": f"{one.provider}/{one.model}", **one.model_dump(include=_OWN, exclude_none=True)}
        for role, one in named.items()
        if one
    }
    given, limits = config.budget, config.limits
    budget = {
        "max_tokens": given.max_tokens,
        "max_usd": given.max_dollars,
        "max_calls": given.max_api_calls,
        "max_seconds": given.max_duration_ms and given.max_duration_ms / 1_000,
    }
    retries = [one.retry_config for one in named.values() if one]
    calls = {
        "retries": max((one.max_retries for one in retries if one.max_retries is not None), default=None),
        "backoff_seconds": max((one.base_delay / 1_000 for one in retries if one.base_delay is not None), default=None),
    }
    domain = config.domain
    settings = {
        "tools": config.tools.enabled,
        "depth": limits.max_iterations,
        "max_steps": limits.max_steps_per_iteration,
        "max_results": limits.max_sources_per_step,
        "sufficiency": ceil(limits.sufficiency_threshold),
        "role_models": models,
        "model_calls": _given(calls),
        "budget": _given(budget),
        "sources": _given(
            {
                "prefer": domain.preferred_sources,
                "block": domain.blocked_sources,
                "min_quality": domain.min_source_quality,
            }
        ),
        "report": _given({"words": config.output.max_length}),
    }
    return {**config.tools.preferences, **_given(settings)}


def _given(values: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value not in (None, [], {})}


_OWN = {"temperature", "max_tokens"}


def _state(run: Run) -> SessionState:
    return _STATES.get(run.state) or (run.stage.value if run.stage else "planning")


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


async def _result(found: RunHandle, run: Run, output: Output) -> SessionResult | None:
    if run.result is None:
        return None
    sources = [source.model_dump(mode="json", include={"source_id", "url", "title"}) for source in run.result.sources]
    ended = SessionResult(status=run.result.status.value, sources=sources)
    try:
        report, written = await found.report_data(), await reports.exported(found, _FORMS[output.format])
        record, _ = read((await found.files([PROVENANCE]))[PROVENANCE])
    except NoReport:
        return ended
    citations = [*_citations(report.claims)] if output.include_citations else []
    answer = answer_of(report)
    supported = sum(claim.verdict is Verdict.supported for claim in report.claims)
    share = supported / len(report.claims) if report.claims and answer and answer.sure != "not rated" else None
    used = run.result.metrics
    return ended.model_copy(
        update={
            "report": written.decode(),
            "sections": [
                SessionSection(
                    title=section.heading,
                    content=section.markdown,
                    citations=[one.id for one in citations if one.id.startswith(f"{number}.")],
                )
                for number, section in enumerate(report.sections, 1)
            ],
            "citations": citations,
            "confidence": report.confidence if report.confidence is not None else share,
            "limitations": report.limitations,
            "suggested_follow_up": report.next_steps,
            "metrics": ResultMetrics(
                total_sources=len(record.sources),
                unique_domains=len({host_of(source.url) for source in record.sources}),
                tokens_used=used.prompt_tokens + used.completion_tokens,
                api_calls=used.llm_calls + used.tool_calls,
                total_cost=used.cost_usd,
                duration_ms=round(used.seconds * 1_000),
                iterations=used.rounds,
            ),
            "provenance": json.loads(await reports.artifact(found, PROVENANCE)) if output.include_provenance else None,
        }
    )


def _citations(claims: Sequence[Claim]) -> Iterator[SessionCitation]:
    """Yield a citation for each source of each claim: `2.5.1`, the section, the claim and the source, from 1."""
    for claim in claims:
        for number, source_id in enumerate(claim.source_ids, 1):
            quote = next((one for one in claim.quotes if one.source_id == source_id), None)
            yield SessionCitation(
                id=f"{claim.section + 1}.{claim.number}.{number}",
                source_id=source_id,
                claim=claim.sentence,
                quote=quote.text if quote else "",
                location=" > ".join(quote.headings) if quote else "",
                verified=claim.verdict is Verdict.supported and quote is not None,
            )

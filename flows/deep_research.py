"""The pipeline, top to bottom: plan, rounds of research and reflection, outline, sections, report; or one answer."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import aclosing
from datetime import UTC, datetime
from time import monotonic
from typing import Annotated

from prefect import flow
from prefect.client.schemas.objects import State
from prefect.runtime import flow_run
from pydantic import WithJsonSchema

from fathom.budget.ledger import Ledger
from fathom.budget.purse import purse_of
from fathom.config.environment import Environment
from fathom.config.inputs import check_query
from fathom.config.secrets import Scrubber, guard_logs
from fathom.config.settings import Execution, Mode, ResearchSettings
from fathom.evidence.provenance import RoundRecord
from fathom.llm.model_checks import check_models, models_of
from fathom.models import Note, PlanStep, Report, RunResult, StepOutcome, StepStatus
from fathom.network.limits import sharing
from fathom.report.changes import summary_of
from fathom.report.unanswered import render_unanswered
from fathom.report.unread import unread_lines
from fathom.run.convergence import decide
from fathom.run.engine import Engine
from fathom.run.metrics import measure
from fathom.run.state import RunState
from fathom.storage.lease import RESULTS
from fathom.telemetry.audit_events import AuditType
from fathom.telemetry.audit_log import PENDING_FILE, AuditLog
from fathom.telemetry.json_logs import start_logs
from fathom.telemetry.progress import Event, phase, publish
from fathom.telemetry.spans import describe_run
from fathom.telemetry.tracing import start_tracing
from fathom.text.counting import counted
from flows.endings import ended, page, tell_failure, whereabouts
from flows.flow_runs import FLOW
from flows.since_last import compare_with_last
from flows.writing import save_explanation, save_provenance, save_report, write_report
from tasks.auditing import log_event, quieten_tasks, session
from tasks.durable import durable_run, run_logger, run_store
from tasks.events import tell_end, tell_start
from tasks.joining import take_up_servers
from tasks.limits import SharedTurns, read_limits
from tasks.planning import make_plan
from tasks.reflection import reflect
from tasks.research import research_step
from tasks.start import begin, claim_folder
from tasks.supervision import Supervision
from tasks.ui import Display

DEFAULTS = ResearchSettings()
RunKey = Annotated[str | None, WithJsonSchema({"type": "string"})]
"""A run key, empty or None for none. The form has one box for it: see `fathom.config.form`."""
Watch = RunKey


def _run_name() -> str:
    """Name a flow run after its query."""
    query = Scrubber(Environment.read().secrets).message(str(flow_run.parameters.get("query", "")))
    query = " ".join(query.split())
    return query if len(query) <= 80 else f"{query[:79]}…"


# The server would retry a refusal, whose state is `Failed`; within a run, calls are retried one by one.
@flow(name=FLOW, flow_run_name=_run_name, retries=0, on_failure=[tell_failure])
async def deep_research(
    query: str, settings: ResearchSettings = DEFAULTS, run_key: RunKey = "", watch: Watch = ""
) -> State[RunResult]:
    """Research a question and write a cited report.

    Args:
        query: The question, at most 10,000 characters. Example: `How does Python look up an attribute?`
        settings: How to research it. Every field has a default; most runs need none of them.
        run_key: Runs with the same key share finished calls. Empty: only retries of this run do. Example: `q3-prices`
        watch: Name of the watch that the run belongs to, set by `fathom watch`. It says what changed since the run
            before. Example: `plan-prices`
    """
    environment = Environment.read()
    start_logs(environment)
    scrubber = Scrubber(environment.secrets)
    guard_logs(scrubber)
    quieten_tasks()
    phase("preparing the run")
    store = run_store(settings.artifacts or environment.artifacts)
    await store.check_writable()
    with durable_run(store):
        async with Supervision(store, scrubber) as supervision:
            query = check_query(scrubber.message(query))
            asked = settings.model_copy(update={"artifacts": None})  # a store that has moved is the same store
            start = await begin(query, asked, _artifacts=store.address(), _environment=environment, _watch=watch or "")
            check_models(start.settings, environment)  # at each attempt: a key may be missing where the run is resumed
            purse = purse_of(store, environment, datetime.now(UTC))
            if models_of(start.settings):
                await purse.check()
            ledger = await Ledger.open(start.settings.budget, store, f"{RESULTS}/{start.run_key}/ledger", purse)
            audit = AuditLog(store, f"{RESULTS}/{start.run_key}/{PENDING_FILE}", log_event)
            engine = Engine(start, store, environment, ledger, audit)
            if problem := start_tracing(environment):
                engine.warnings.warn(run_logger(), problem, problem)
            turns = SharedTurns(await read_limits())
            async with Display() as display:
                async with aclosing(engine), sharing(turns), session(engine, supervision.taken_over) as span:
                    display.label(start.settings)
                    await tell_start(start)
                    publish(Event("spent", spent=ledger.account, caps=ledger.budget))
                    run, report, result = await investigate(engine, display)
                    if changes := await compare_with_last(engine, run, report):
                        display.changes(changes, f"{result.artifacts}/changes.html")
                        result = result.model_copy(update={"changes": summary_of(changes)})
                    phase("finishing the run")
                    status, metrics = result.status.value, result.metrics.model_dump(mode="json")
                    describe_run(span, status, result.metrics)
                    await audit.record(
                        AuditType.session_completed, "system", status, reason=result.reason, metrics=metrics
                    )
                result = result.model_copy(update={"audit_head": audit.head})
                await engine.run_folder.save_json("result.json", result)
                if report:  # last, because it contains the hash of every other file
                    await save_provenance(engine, run, report)
                display.end(result.status)
            await tell_end(engine, result, report, whereabouts(result), changes)  # whoever hears of it finds every file
    run_logger().info("%s", whereabouts(result))
    return ended(result)


# A property without a default may be null, as it is in the parameters of older runs.
for name in ("run_key", "watch"):
    deep_research.parameters.properties[name].pop("default")


async def investigate(engine: Engine, display: Display) -> tuple[RunState, Report | None, RunResult]:
    """Research and report, in a flow run or a replay of it. Without any note there is no report."""
    began = monotonic()
    run = await _research(engine, display)
    report = await write_report(engine, run) if run.notes else None
    if report:
        await save_report(engine, run, report)
    result = _result(engine, run, report, monotonic() - began)
    if report:
        display.report(report, page(result))
    else:
        unanswered = await save_explanation(engine, run)
        result = result.model_copy(update={"unanswered": unanswered})
        display.refusal(render_unanswered(engine.start.query, unanswered), result.artifacts)
    return run, report, result


async def _research(engine: Engine, display: Display) -> RunState:
    """Plan, then research and reflect in rounds until the decision says to stop."""
    await take_up_servers(engine)
    planned = await make_plan(engine.start.query, _engine=engine)
    run = RunState(planned.plan, planned.usage, planned.unread)
    await engine.enter(await claim_folder(run.plan.plan_title, engine.start.run_id, _engine=engine))
    publish(Event("plan", f"{run.plan.plan_title}: {counted(len(run.plan.steps), 'step')}", plan=run.plan))
    await _keep(engine, run)
    steps: Sequence[PlanStep] = run.plan.steps
    depth = engine.settings.depth
    for round_number in range(1, depth + 1):
        phase(f"researching, round {round_number} of at most {depth}")
        before = len(run.notes)
        await _round(engine, display, run, steps)
        reflection = None
        if depth > 1 and not run.cut:
            phase("judging what was found")
            follow_ups = engine.settings.max_steps if round_number < depth else 0
            reflected = await reflect(run.plan, run.notes, round_number, follow_ups, _engine=engine)
            reflection = reflected.reflection
            run.reflect(reflection, reflected.usage)
        await _keep(engine, run)
        _show_plan(display, run)
        score = reflection.sufficiency_score if reflection else 0
        run.rounds.append(RoundRecord(number=round_number, step_ids=[str(s.step_id) for s in steps], sufficiency=score))
        decision = decide(
            round_number=round_number,
            depth=depth,
            reflection=reflection,
            new_notes=len(run.notes) - before,
            notes=len(run.notes),
            sufficiency=engine.settings.sufficiency,
            cut=run.cut,
        )
        run_logger().info("After round %d: %s.", round_number, decision.reason.value)
        if not decision.go_on or reflection is None:
            break
        steps = reflection.follow_up_steps
        run.extend(steps)
    return run


async def _round(engine: Engine, display: Display, run: RunState, steps: Sequence[PlanStep]) -> None:
    """Research the steps of a round, one at a time or, in parallel execution, in waves of independent steps."""
    for wave in _waves(steps, engine.settings.execution):
        for step in wave:
            run.mark(step.step_id, StepStatus.in_progress)
        _show_plan(display, run)
        limit = asyncio.Semaphore(engine.settings.concurrency)
        known = list(run.notes)

        async def research(step: PlanStep, known: list[Note] = known, limit: asyncio.Semaphore = limit) -> StepOutcome:
            async with limit:
                outcome: StepOutcome = await research_step(run.plan.plan_title, step, known, _engine=engine)
                run.mark(step.step_id, StepStatus.done if outcome.notes else StepStatus.blocked)
                if engine.settings.execution is Execution.parallel:
                    _show_plan(display, run)
                return outcome

        for outcome in await asyncio.gather(*map(research, wave)):
            run.learn(outcome)
        await _keep(engine, run)


def _show_plan(display: Display, run: RunState) -> None:
    publish(Event("plan", plan=run.plan))
    display.plan(run.plan)


def _waves(steps: Sequence[PlanStep], execution: Execution) -> list[list[PlanStep]]:
    """Split steps into groups that may run together; each step comes after those that it depends on."""
    if execution is Execution.sequential:
        return [[step] for step in steps]
    waiting = {str(step.step_id): step for step in steps}
    waves: list[list[PlanStep]] = []
    while waiting:
        waves.append([step for step in waiting.values() if not any(str(d) in waiting for d in step.depends_on)])
        for step in waves[-1]:
            del waiting[str(step.step_id)]
    return waves


async def _keep(engine: Engine, run: RunState) -> None:
    """Save the plan and the notes, so that they exist however the run ends."""
    await engine.run_folder.save_json("plan.json", run.plan)
    await engine.run_folder.save_json("notes.json", run.notes)


def _result(engine: Engine, run: RunState, report: Report | None, seconds: float) -> RunResult:
    status, reason = run.ending()
    return RunResult(
        run_id=engine.start.run_id,
        status=status,
        plan_title=run.plan.plan_title,
        artifacts=engine.run_folder.url,
        report=engine.run_folder.path_of("report.md") if report else None,
        answer=report.sections[0].markdown if report and engine.settings.mode is Mode.answer else None,
        sources=report.sources if report else list(run.sources.values()),
        metrics=measure(run, engine.ledger.account, seconds),
        reason=reason,
        answered=report.answered if report else None,
        warnings=[*engine.start.warnings, *unread_lines(run.unread)],
    )

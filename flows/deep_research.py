"""The pipeline, top to bottom: plan, rounds of research and reflection, outline, sections, report; or one answer."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from time import monotonic

from prefect import flow
from prefect.client.schemas.objects import State
from prefect.logging import get_run_logger
from prefect.runtime import flow_run
from prefect.states import Completed

from fathom.convergence import decide
from fathom.engine import Engine
from fathom.environment import Environment
from fathom.inputs import check_query
from fathom.llm.client import check_models
from fathom.models import Note, PlanStep, Report, ReportSection, RunResult, StepOutcome, StepStatus
from fathom.progress import Event, publish
from fathom.report import assemble, coverage, measure, open_questions, render_markdown
from fathom.settings import Execution, Mode, ResearchSettings
from fathom.state import RunState
from fathom.store import ArtifactStore, RunFolder
from tasks.durable import durable_run
from tasks.planning import make_plan
from tasks.reflection import reflect
from tasks.reporting import make_outline, write_answer, write_section
from tasks.research import research_step
from tasks.running import begin, claim
from tasks.ui import Display

__all__ = ["deep_research"]

DEFAULTS = ResearchSettings()


def _run_name() -> str:
    """Name a flow run after its query."""
    query = " ".join(str(flow_run.parameters.get("query", "")).split())
    return query if len(query) <= 80 else f"{query[:79]}…"


@flow(name="deep-research", flow_run_name=_run_name)
async def deep_research(
    query: str, settings: ResearchSettings = DEFAULTS, run_key: str | None = None
) -> State[RunResult]:
    """Research a question and write a cited report.

    Args:
        query: The question, at most 10,000 characters.
        settings: How to research it; every field has a default.
        run_key: Runs with the same key share finished calls. Empty: only a retry of this run does.
    """
    began = monotonic()
    environment = Environment.read()
    store = ArtifactStore(settings.artifacts or environment.artifacts)
    await store.check_writable()
    with durable_run(store):
        start = await begin(check_query(query), settings, _environment=environment)
        check_models(start.settings, environment)  # at each attempt: a key may be missing where the run is resumed
        engine = Engine(start, store, environment)
        async with Display() as display:
            display.label(start.settings)
            run = await _research(engine, display)
            result = await _report(engine, display, run, began)
        await engine.run_folder.save_json("result.json", result)
    publish(Event("end", result.status.value))
    return Completed(name=result.status.value.replace("_", " ").title(), message=result.reason or None, data=result)


async def _research(engine: Engine, display: Display) -> RunState:
    """Plan, then research and reflect in rounds until the decision says to stop."""
    planned = await make_plan(engine.start.query, _engine=engine)
    run = RunState(planned.plan, planned.usage)
    engine.folder = RunFolder(engine.store, await claim(run.plan.plan_title, _engine=engine))
    publish(Event("plan", f"{run.plan.plan_title}: {len(run.plan.steps)} steps", total=len(run.plan.steps)))
    display.folder(engine.folder.url)
    steps: Sequence[PlanStep] = run.plan.steps
    depth = engine.settings.depth
    for round_number in range(1, depth + 1):
        publish(Event("round", f"round {round_number} of at most {depth}", total=len(run.plan.steps)))
        before = len(run.notes)
        await _round(engine, display, run, steps)
        reflection = None
        if depth > 1:
            follow_ups = engine.settings.max_steps if round_number < depth else 0
            reflected = await reflect(run.plan, run.notes, round_number, follow_ups, _engine=engine)
            reflection = reflected.reflection
            run.reflect(reflection, reflected.usage)
        await _keep(engine, display, run)
        decision = decide(
            round_number=round_number,
            depth=depth,
            reflection=reflection,
            new_notes=len(run.notes) - before,
            notes=len(run.notes),
            sufficiency=engine.settings.sufficiency,
        )
        get_run_logger().info("after round %d: %s", round_number, decision.reason.value)
        if not decision.go_on or reflection is None:
            break
        steps = reflection.follow_up_steps
        run.extend(steps)
    return run


async def _round(engine: Engine, display: Display, run: RunState, steps: Sequence[PlanStep]) -> None:
    """Research the steps of a round, one after another or, in waves, those together that wait for no other."""
    for wave in _waves(steps, engine.settings.execution):
        for step in wave:
            run.mark(step, StepStatus.in_progress)
        display.plan(run.plan)
        limit = asyncio.Semaphore(engine.settings.concurrency)
        known = list(run.notes)

        async def research(step: PlanStep, known: list[Note] = known, limit: asyncio.Semaphore = limit) -> StepOutcome:
            async with limit:
                outcome: StepOutcome = await research_step(run.plan.plan_title, step, known, _engine=engine)
                return outcome

        for outcome in await asyncio.gather(*map(research, wave)):
            run.learn(outcome)
        publish(Event("step", "", done=run.finished, total=len(run.plan.steps)))
        display.progress(run.finished, len(run.plan.steps))


def _waves(steps: Sequence[PlanStep], execution: Execution) -> list[list[PlanStep]]:
    """Split steps into groups that may run together; dependencies go to earlier groups."""
    if execution is Execution.sequential:
        return [[step] for step in steps]
    waiting = {str(step.step_id): step for step in steps}
    waves: list[list[PlanStep]] = []
    while waiting:
        wave = [step for step in waiting.values() if not any(str(d) in waiting for d in step.depends_on)]
        waves.append(wave)
        for step in wave:
            del waiting[str(step.step_id)]
    return waves


async def _keep(engine: Engine, display: Display, run: RunState) -> None:
    """Save the plan with its statuses and the notes."""
    await engine.run_folder.save_json("plan.json", run.plan)
    await engine.run_folder.save_json("notes.json", run.notes)
    display.plan(run.plan)


async def _report(engine: Engine, display: Display, run: RunState, began: float) -> RunResult:
    """Write and save the report, or say that there is nothing to report."""
    path: str | None = None
    cited = list(run.sources.values())
    answer: str | None = None
    if run.notes:
        if engine.settings.mode is Mode.answer:
            report = await _answer(engine, run)
            answer = report.sections[0].markdown
        else:
            report = await _sections(engine, run)
        markdown = render_markdown(report)
        await engine.run_folder.save_text("report.md", markdown)
        await engine.run_folder.save_json("report.json", report)
        display.report(markdown)
        path, cited = engine.run_folder.path_of("report.md"), report.sources
    status, reason = run.ending()
    return RunResult(
        run_id=engine.start.run_id,
        status=status,
        plan_title=run.plan.plan_title,
        artifacts=engine.run_folder.url,
        report=path,
        answer=answer,
        sources=cited,
        metrics=measure(run.all_calls, run.notes, run.usage, monotonic() - began),
        reason=reason,
    )


async def _sections(engine: Engine, run: RunState) -> Report:
    """Write the report section by section."""
    questions = open_questions(run.plan, run.reflection, run.notes)
    outlined = await make_outline(run.plan, run.notes, questions, _engine=engine)
    run.usage += outlined.usage
    sections: list[ReportSection] = []
    for position in range(len(outlined.outline.sections)):
        written = await write_section(outlined.outline, position, run.notes, sections, _engine=engine)
        sections.append(written.section)
        run.usage += written.usage
    return assemble(
        query=engine.start.query,
        title=outlined.outline.title,
        extractive=engine.settings.extractive,
        sections=sections,
        sources=run.sources,
        steps=coverage(run.plan, run.calls, run.notes),
        questions=questions,
        reflection=run.reflection,
    )


async def _answer(engine: Engine, run: RunState) -> Report:
    """Write a report of one short answer; how it was researched is in the plan and the notes."""
    written = await write_answer(run.notes, _engine=engine)
    run.usage += written.usage
    return assemble(
        query=engine.start.query,
        title=run.plan.plan_title,
        extractive=engine.settings.extractive,
        sections=[written.section],
        sources=run.sources,
        steps=[],
        questions=[],
        reflection=run.reflection,
    )

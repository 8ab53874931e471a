"""The rounds of research: steps in waves, a reflection after each round, and the decision whether another follows."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from fathom.config.settings import Execution
from fathom.evidence.provenance import RoundRecord
from fathom.models import Note, PlanStep, StepOutcome, StepStatus
from fathom.run.convergence import decide
from fathom.run.engine import Engine
from fathom.run.state import RunState
from fathom.telemetry.progress import Event, phase, publish
from tasks.durable import run_logger
from tasks.reflection import reflect
from tasks.research import research_step
from tasks.ui import Display


async def research_rounds(engine: Engine, display: Display, run: RunState) -> None:
    """Research and reflect in rounds until the decision says to stop."""
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

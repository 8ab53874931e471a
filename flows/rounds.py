"""The rounds of research: steps in waves, a reflection after each round, and the decision whether another follows.

People's remarks are read before each reflection, and once more before the research ends, so that every accepted remark
is heard.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Collection, Sequence

from fathom.config.groups import Execution
from fathom.evidence.provenance import RoundRecord
from fathom.models import Call, PlanStep, Reflection, Remark, Stage, StepOutcome
from fathom.retrieval.narrowing import Memory
from fathom.run.checklist import decide, next_steps, waves
from fathom.run.engine import Engine
from fathom.run.reading import NotedBefore, Reading
from fathom.run.state import ResearchState
from fathom.storage.store import NOTES, PLAN
from fathom.tasks.checking import rate_retrieved
from fathom.tasks.durable import run_logger
from fathom.tasks.people import hear
from fathom.tasks.planning import reflect
from fathom.tasks.research import research_step
from fathom.tasks.ui import Display
from fathom.telemetry.audit_events import AuditType
from fathom.telemetry.progress import Event, phase, publish
from fathom.text.wording import wording


async def research_rounds(engine: Engine, display: Display, run: ResearchState) -> None:
    """Research and reflect in rounds until the decision says to stop."""
    await _keep(engine, run)
    steps: Sequence[PlanStep] = run.plan.steps
    depth, number = engine.settings.depth, 0
    while steps:
        number += 1
        phase(f"researching, round {number} of at most {max(depth, number)}", Stage.researching)
        before = len(run.notes)
        await _round(engine, display, run, steps)
        taken = [str(step.step_id) for step in steps]
        steps, found = await _judge(engine, display, run, number, len(run.notes) - before)
        score = found.sufficiency_score if found else 0
        run.rounds.append(RoundRecord(number=number, step_ids=taken, sufficiency=score, reflection=found))
        run.extend(steps)
    if run.stopped:
        await _tell(engine, run.stopped, f"stopped by {run.stopped.said}: the report is written with what there is")


async def _judge(
    engine: Engine, display: Display, run: ResearchState, round_number: int, new_notes: int
) -> tuple[list[PlanStep], Reflection | None]:
    """Judge a round's findings, with people's remarks so far; return the next steps, if any, and the critic's view."""
    depth, closing = engine.settings.depth, bool(run.ended) or round_number >= engine.settings.depth
    remarks = await _listen(engine, run, round_number, closing)
    while True:
        reflection = await _reflect(engine, run, round_number, remarks)
        await _keep(engine, run)
        _show_plan(display, run)
        steps = next_steps(
            run.plan,
            reflection,
            remarks,
            evident=run.evident,
            query=engine.start.question,
            round_number=round_number,
            most=engine.settings.max_steps,
            words=wording(engine.language),
        )
        decision = decide(
            engine.settings,
            round_number=round_number,
            reflection=reflection,
            steps=steps,
            new_notes=new_notes,
            notes=len(run.notes),
            ended=run.ended,
            asked=bool(remarks) and round_number <= depth,
        )
        # A remark that came while the critic judged is heard before the research ends.
        late = [] if decision.go_on or closing else await _listen(engine, run, round_number, closing=True)
        if not late:
            run.stop = None if decision.go_on else decision.reason
            run_logger().info("After round %d: %s.", round_number, decision.reason.value)
            return steps if decision.go_on else [], reflection
        closing, remarks = True, late


async def _listen(engine: Engine, run: ResearchState, round_number: int, closing: bool) -> list[Remark]:
    """Take note of people's remarks since the last time, and return them."""
    known, more = len(run.plan.remarks), not run.ended and round_number <= engine.settings.depth
    heard = await hear(round_number, known, closing, more, _engine=engine)
    run.hear(heard.remarks, heard.stopped)
    for remark in heard.remarks:
        await _tell(engine, remark, f"told by {remark.said}: {remark.text}")
    return heard.remarks


async def _tell(engine: Engine, remark: Remark, line: str) -> None:
    publish(Event("remark", line))
    await engine.audit.record(AuditType.steered, "user", remark.text, author=remark.author, at=remark.at)


async def _reflect(
    engine: Engine, run: ResearchState, round_number: int, remarks: Sequence[Remark]
) -> Reflection | None:
    """Ask the critic, if there may be another round or was one before, or if a person asked for one."""
    depth, most = engine.settings.depth, engine.settings.max_steps
    if run.ended or not (remarks or (depth > 1 and not engine.simple)):
        return None
    phase("judging whether enough was found", Stage.reflecting)
    follow_ups = max(most, len(remarks)) if remarks else most if round_number < depth else 0
    reflecting = reflect(run, list(remarks), round_number, follow_ups, _engine=engine)
    if follow_ups:
        reflected = await reflecting
    else:  # the report follows: what it needs is made ready while the critic is waited for
        reflected, run.retrieved = await asyncio.gather(reflecting, rate_retrieved(run, engine))
    run.reflect(reflected.reflection, reflected.usage)
    return reflected.reflection


async def _round(engine: Engine, display: Display, run: ResearchState, steps: Sequence[PlanStep]) -> None:
    """Research the steps of a round, one at a time or, in parallel execution, in waves of independent steps."""
    groups = waves(steps, engine.settings.execution, engine.settings.concurrency)
    for number, wave in enumerate(groups, 1):
        if run.stopped:
            break
        now = {str(step.step_id) for step in wave}
        _show_plan(display, run, now)
        known, made, noted = run.memory, run.all_calls, run.noted
        reading = Reading(wave, list(itertools.chain.from_iterable(groups[number:])))

        async def research(
            step: PlanStep,
            *,
            known: Memory = known,
            made: list[Call] = made,
            noted: NotedBefore = noted,
            reading: Reading = reading,
            now: set[str] = now,
        ) -> StepOutcome:
            outcome: StepOutcome = await research_step(
                run.plan.plan_title, step, known, made, noted, _reading=reading, _engine=engine
            )
            run.mark(step.step_id, outcome.status)
            now.remove(str(step.step_id))
            if engine.settings.execution is Execution.parallel:
                _show_plan(display, run, now)
            return outcome

        run.learn(*await asyncio.gather(*map(research, wave)))
        await _keep(engine, run)


def _show_plan(display: Display, run: ResearchState, now: Collection[str] = ()) -> None:
    publish(Event("plan", plan=run.plan))
    display.plan(run.plan, now)


async def _keep(engine: Engine, run: ResearchState) -> None:
    """Save the plan, the notes and the briefs, so that they exist however the run ends."""
    await engine.run_folder.save_json(PLAN, run.plan)
    await engine.run_folder.save_json(NOTES, run.notes)
    if run.briefs:
        await engine.run_folder.save_json("briefs.json", run.briefs)

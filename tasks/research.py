"""One step of the plan: decide, call tools, compress what they return, and decide again."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence

from fathom.budget.ledger import WARN_FROM, Allowance
from fathom.models import Call, Note, PlanStep, Priority, StepOutcome, StepStatus, ToolCall, ToolResult, Usage
from fathom.retrieval.working_memory import within_budget
from fathom.roles import COMPRESSOR, RESEARCHER, ResearchRequest
from fathom.run.engine import Engine
from fathom.telemetry.audit_events import AuditType
from fathom.telemetry.progress import Event, publish
from fathom.telemetry.spans import step_span
from fathom.tools.earlier import EarlierRunTool
from fathom.tools.routing import resting
from tasks import events
from tasks.durable import computed_task, recorded_task
from tasks.model_calls import ask
from tasks.results import Checked, Compressed, Decided
from tasks.tool_calls import call_tool, compress


@computed_task(name="step", run_name="step {step.step_id}: {step.title}")
async def research_step(
    plan_title: str, step: PlanStep, notes: list[Note], made: list[ToolResult], _engine: Engine
) -> StepOutcome:
    """Research one step, given the useful notes so far and the calls made, which show what is not worth asking."""
    _show(step, StepStatus.in_progress)
    started = await _engine.audit.record(
        AuditType.step_started, "system", step.title, step_id=step.step_id, priority=step.priority.value
    )
    with _engine.audit.under(started), step_span(started, str(step.step_id)):
        outcome = await _research(plan_title, step, notes, made, _engine)
        counts = {"calls": len(outcome.calls), "notes": len(outcome.notes), "cut": outcome.cut}
        await _engine.audit.record(
            AuditType.step_completed,
            "system",
            step.title,
            step_id=step.step_id,
            status=outcome.status.value,
            **counts,
        )
    _show(step, outcome.status)
    return outcome


def _show(step: PlanStep, status: StepStatus) -> None:
    publish(Event("step", f"{step.step_id}. {step.title}", step_id=str(step.step_id), status=status))


async def _research(
    plan_title: str, step: PlanStep, notes: list[Note], made: list[ToolResult], engine: Engine
) -> StepOutcome:
    calls: list[Call] = []
    found: list[Note] = []
    deciding = compressing = Usage()
    cut, stopped = False, None
    before = 1 if engine.start.parent else 0  # turns of a follow-up that only look at what the earlier run has read
    for turn in range(before + engine.settings.turns):
        checked = await check_budget(step, turn, bool(notes or found), _engine=engine)
        allowance, stopped = checked.allowance, checked.stopped
        if stopped:
            break
        least = turn > before or step.priority is Priority.low
        if cut := allowance is Allowance.none or (allowance is Allowance.narrow and least):
            break
        own = [call.result for call in calls]
        down = resting([*made, *own])
        breadth = engine.settings.breadth if allowance is Allowance.full else 1
        if turn < before:
            decided = Decided(calls=[_look_back(step)], usage=Usage())
        else:
            decided = await decide_calls(step, [*notes, *found], [r.call for r in own], breadth, down, _engine=engine)
        deciding += decided.usage
        if not decided.calls:
            break
        results = await _run_calls(plan_title, step, decided.calls, own, engine, down=down)
        read = {text.key for call in calls for text in call.result.sources}
        outcomes = await _compress_all(plan_title, step, results, read, engine, narrow=checked.narrow)
        for result, compressed in zip(results, outcomes, strict=True):
            compressing += compressed.usage
            useful = compressed.note is not None
            calls.append(Call(result=result, useful=useful, narrowed_tokens=compressed.narrowed_tokens))
            found += [compressed.note] if compressed.note else []
    usage = {RESEARCHER.name: deciding, COMPRESSOR.name: compressing}
    return StepOutcome(step_id=step.step_id, notes=found, calls=calls, usage=usage, cut=cut, stopped=stopped)


@recorded_task(name="budget", run_name="check the budget", shown=False)
async def check_budget(step: PlanStep, turn: int, notes: bool, _engine: Engine) -> Checked:
    """Ask the ledger how much research may still do, and whether a person has stopped it.

    The answer is stored, so that a resumed run decides alike.
    """
    level, total = _engine.ledger.level, _engine.ledger.total
    if level >= WARN_FROM:
        message = f"{level:.0%} of the budget for research is spent"
        publish(Event("warning", message))
        spent = {"usd": float(total.usd), "tokens": total.tokens, "calls": total.calls}
        await _engine.audit.record(AuditType.budget_warning, "system", message, step_id=step.step_id, **spent)
        if _engine.warnings.first("budget"):
            await events.tell(
                events.BUDGET, events.About.of(_engine.start), message, {"message": message, "text": message, **spent}
            )
    return Checked(
        allowance=_engine.ledger.allowance(notes=notes),
        narrow=level >= WARN_FROM,
        stopped=await _engine.steering.stopped(),
    )


def _look_back(step: PlanStep) -> ToolCall:
    """Return the call that searches what the earlier run has read."""
    return ToolCall(tool=EarlierRunTool.name, input=step.queries[0] if step.queries else step.title)


async def _run_calls(
    plan_title: str,
    step: PlanStep,
    chosen: Sequence[ToolCall],
    made: Sequence[ToolResult],
    engine: Engine,
    *,
    down: set[str],
) -> list[ToolResult]:
    """Make the calls of one decision together, then those that their results ask for: stand-ins and follow-ups.

    Calls are numbered before anything runs, so the artifacts' names do not depend on which finishes first.
    """
    numbers = Counter(result.call.tool for result in made)

    async def make(call: ToolCall) -> ToolResult:
        numbers[call.tool] += 1
        result: ToolResult = await call_tool(
            plan_title, step, call, numbers[call.tool], engine.tools.settings, _engine=engine
        )
        return result

    results = list(await asyncio.gather(*map(make, chosen)))
    results = await _with_stand_ins(results, made, down, make, engine)
    return [*results, *await asyncio.gather(*map(make, engine.tools.follow_ups(results)))]


async def _with_stand_ins(
    results: Sequence[ToolResult],
    made: Sequence[ToolResult],
    down: set[str],
    make: Callable[[ToolCall], Awaitable[ToolResult]],
    engine: Engine,
) -> list[ToolResult]:
    """Ask, for each search that failed, other tools of its domains one after another, until one has answered.

    A call that the step has made already is not made again. What was taken over is no failure of the run.
    """
    known = {result.call: result for result in (*made, *results)}
    for failed in [result for result in results if result.failed]:
        without = [failed]
        for tool in engine.tools.stand_ins(failed.call.tool, down):
            call = ToolCall(tool=tool, input=failed.call.input)
            if call not in known:
                known[call] = await make(call)
            if not known[call].failed:
                known |= {result.call: result.taken_over(tool) for result in without}
                break
            without.append(known[call])
    old = {result.call for result in made}
    return [result for call, result in known.items() if call not in old]


async def _compress_all(
    plan_title: str, step: PlanStep, results: Sequence[ToolResult], read: set[str], engine: Engine, *, narrow: bool
) -> list[Compressed]:
    """Compress each result; a text that several results of the step contain is read only once."""
    waiting: list[Awaitable[Compressed]] = []
    full = {source.source_id for result in results for source in result.sources if source.full}
    for result in results:
        fresh = [s.key for s in result.sources if s.key not in read and (s.full or s.source_id not in full)]
        read = read.union(fresh)
        waiting.append(compress(plan_title, step, result, fresh, narrow, _engine=engine))
    return list(await asyncio.gather(*waiting))


async def decide_calls(
    step: PlanStep, notes: list[Note], tried: list[ToolCall], breadth: int, down: set[str], _engine: Engine
) -> Decided:
    """Ask the researcher which calls come next; no calls means that the step is done. `down` are tools that rest."""
    focus = f"{step.title} {step.description}"
    offered = _engine.tools.for_step(step, _engine.start.question, down)
    request = ResearchRequest(
        query=_engine.start.question,
        today=_engine.start.today,
        step=step,
        breadth=breadth,
        tools=offered,
        searching=[name for name in offered if name in _engine.tools.searching],
        notes=within_budget(notes, focus, _engine.settings.max_context_tokens),
        tried=tried,
        wanted=_engine.start.wanted,
    )
    answer, usage = await ask(RESEARCHER, request, _engine)
    return Decided(calls=[ToolCall(tool=call.tool, input=call.input) for call in answer.calls], usage=usage)

"""One step of the plan: decide, call tools, compress their outputs, and decide again."""

from __future__ import annotations

import asyncio
import itertools
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence

from fathom.budget.ledger import WARN_FROM, Allowance
from fathom.config.groups import EXTRACTIVE, Execution
from fathom.extractive.asked_rows import asks_to_compute
from fathom.extractive.researcher import decide
from fathom.models import (
    Brief,
    Call,
    Note,
    PlanStep,
    Priority,
    Source,
    StepOutcome,
    StepStatus,
    ToolCall,
    ToolResult,
    Usage,
)
from fathom.retrieval.narrowing import Memory
from fathom.roles import COMPRESSOR, RESEARCHER, ResearchAnswer, ResearchRequest
from fathom.roles.researcher import BRIEF_FROM, BRIEF_TOKENS
from fathom.run.engine import Engine
from fathom.run.reading import EarlierReading, NotedBefore, Reading
from fathom.tasks import events
from fathom.tasks.durable import computed_task, recorded_task
from fathom.tasks.model_calls import ask
from fathom.tasks.results import Checked, Compressed, Decided
from fathom.tasks.tool_calls import call_tool, compress, serving
from fathom.telemetry.audit_events import AuditType
from fathom.telemetry.progress import Event, publish
from fathom.telemetry.tracing import step_span
from fathom.text.tokens import count_tokens
from fathom.tools.compute import ComputeTool
from fathom.tools.earlier_run import EarlierRunTool
from fathom.tools.mcp.configuration import PREFIX
from fathom.tools.toolbox import resting

QUERIES = 2  # decisions about a query of tables after a step's turns: one, and one to mend it


@computed_task(name="step", run_name="step {step.step_id}: {step.title}")
async def research_step(
    plan_title: str,
    step: PlanStep,
    memory: Memory,
    made: list[Call],
    noted: NotedBefore,
    *,
    _reading: Reading,
    _engine: Engine,
) -> StepOutcome:
    """Research one step, given the notes so far, the earlier calls, and what was noted on the texts that they found.

    Pages that steps of the same `_reading` find at first are read once.
    """
    _show(step, StepStatus.in_progress)
    routed = _engine.tools.route(step, _engine.start.question, resting([call.result for call in made]))
    started = await _engine.audit.record(
        AuditType.step_started,
        "system",
        step.title,
        step_id=step.step_id,
        priority=step.priority.value,
        tools=routed.tools,
        routing=routed.why,
    )
    with _engine.audit.under(started), step_span(started, str(step.step_id)):
        try:
            outcome = await _StepResearch(plan_title, step, memory, made, noted, engine=_engine).outcome(_reading)
        finally:
            _reading.leave(step)
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


class _StepResearch:
    """The research of one step, from decision to decision."""

    def __init__(
        self,
        plan_title: str,
        step: PlanStep,
        memory: Memory,
        made: Sequence[Call],
        noted: NotedBefore,
        *,
        engine: Engine,
    ) -> None:
        self._plan_title = plan_title
        self._step = step
        self._memory = memory
        self._made = made
        self._noted = noted
        self._engine = engine
        self._calls: list[Call] = []
        self._notes: list[Note] = []
        self._reused: list[str] = []  # files of notes of other steps
        self._shared: dict[str, Note] = {}  # notes of the steps beside it, by file
        self._before = NotedBefore()  # by the earlier run
        self._reads_for_nothing = engine.model_for(COMPRESSOR).model == EXTRACTIVE
        self._deciding = self._compressing = Usage()

    async def outcome(self, reading: Reading) -> StepOutcome:
        """Decide, call tools and compress until no call is left."""
        engine, step = self._engine, self._step
        cut, saving, stopped, brief = False, False, None, None
        if engine.earlier and not self._reads_for_nothing:
            self._before = await noted_before(_engine=engine)
        before = 1 if engine.earlier else 0  # turns of a follow-up that only search the earlier run's texts
        turns = before + engine.settings.turns
        for turn in range(turns + QUERIES):
            if turn >= turns and not await self._may_compute():
                break
            checked = await check_budget(step, turn, bool(self._memory.notes or self._notes), _engine=engine)
            allowance, stopped = checked.allowance, checked.stopped
            if stopped:
                break
            least = turn > before or step.priority is Priority.low
            if cut := allowance is Allowance.none or (allowance is Allowance.narrow and least):
                break
            down = resting([call.result for call in (*self._made, *self._calls)])
            saving = saving or checked.narrow
            if turn < before:
                searches = _searches(engine.settings.breadth, checked)
                back = [ToolCall(tool=EarlierRunTool.name, input=query) for query in step.queries or [step.title]]
                decided = Decided(calls=back[:searches], usage=Usage())
            else:
                notes = [*self._memory.notes, *self._shared.values(), *self._notes]
                known = Memory(notes=notes, briefs=self._memory.briefs)
                last, beyond = turn + 1 == turns, turn >= turns
                decided = await decide_calls(
                    step, known, self._calls, checked, down=down, last=last, beyond=beyond, _engine=engine
                )
            self._deciding += decided.usage
            brief = decided.brief or brief
            if not decided.calls:
                break
            shared = self._alone(reading) if turn or self._reads_for_nothing else reading
            await self._call(decided.calls, shared, down=down, narrow=checked.narrow)
        return StepOutcome(
            step_id=step.step_id,
            notes=self._notes,
            calls=_mended(self._calls),
            usage={RESEARCHER.name: self._deciding, COMPRESSOR.name: self._compressing},
            brief=brief,
            reused=list(dict.fromkeys(self._reused)),
            cut=cut,
            saving=saving,
            stopped=stopped,
        )

    async def _may_compute(self) -> bool:
        """Whether one more decision is due, about a query of tables.

        It is if the last call was such a query and failed, or if no query was made and one may have the answer.
        """
        last = self._calls[-1].result if self._calls else None
        if queries := _queries(self._calls):
            return last in queries and last.failed
        notes = [*self._memory.notes, *self._shared.values(), *self._notes]
        return await _may_be_computed(self._step, notes, self._engine)

    async def _call(self, chosen: Sequence[ToolCall], reading: Reading, *, down: set[str], narrow: bool) -> None:
        """Make the calls of one decision, then the calls that their results require, and compress what they return.

        In sequential execution each output is compressed before the next call.
        """
        engine, results, unread = self._engine, list[ToolResult](), list[ToolResult]()
        apart = engine.settings.execution is Execution.sequential

        async def make(calls: Sequence[ToolCall]) -> None:
            own = [*(call.result for call in self._calls), *unread]
            made = await _run_calls(self._plan_title, self._step, calls, own, engine, down=down)
            results.extend(made)
            unread.extend(made)
            if apart:
                await self._read(made, self._alone(reading), narrow=narrow)
                unread.clear()

        for calls in [[call] for call in chosen] if apart else [chosen]:
            await make(calls)
        await make(engine.tools.follow_ups(results))
        if unread:
            await self._read(unread, reading, narrow=narrow)

    def _alone(self, reading: Reading) -> Reading:
        """Return the reading of this step by itself. Where reading costs nothing, later steps read for themselves."""
        return Reading([self._step], () if self._reads_for_nothing else reading.later)

    async def _read(self, results: Sequence[ToolResult], reading: Reading, *, narrow: bool) -> None:
        """Compress results, except texts that were read before or that another step reads; take over their notes."""
        step = self._step
        fresh = _fresh(results, self._calls)
        await reading.found(step, itertools.chain.from_iterable(fresh))
        own = [reading.reads(step, texts) for texts in fresh]
        noted = NotedBefore() if self._reads_for_nothing else self._noted
        earlier = [call.result for call in self._calls if not call.narrowed_tokens]
        compressed: list[Compressed] = await asyncio.gather(
            *(
                compress(
                    self._plan_title,
                    step,
                    result,
                    keys,
                    others=reading.others(step, keys),
                    before=EarlierReading(noted, self._before, [*earlier, *results[:number]]),
                    narrow=narrow,
                    _engine=self._engine,
                )
                for number, (result, keys) in enumerate(zip(results, own, strict=True))
            )
        )
        notes: dict[str, Note | None] = {}
        for keys, each in zip(own, compressed, strict=True):
            notes |= {
                key: None if key in each.useless else each.note for key in keys if each.note or key in each.useless
            }
        reading.noted(step, notes)
        others = await reading.others_noted(step)
        useless = {key for key, note in (others | notes).items() if not note}
        served = reading.served(step, others)
        for result, each in zip(results, compressed, strict=True):
            shared = await serving(result, served, step, self._engine)
            self._shared |= {note.artifact_file: note for note in shared}
            reused = [*each.reused, *(note.artifact_file for note in shared)]
            self._reused += reused
            self._compressing += each.usage
            self._calls.append(
                Call(
                    result=result,
                    useful=bool(each.note or reused),
                    narrowed_tokens=each.narrowed_tokens,
                    useless=[source.key for source in result.sources if source.key in useless],
                    read_for=each.read_for,
                )
            )
        self._notes += [each.note for each in compressed if each.note]


def _searches(breadth: int, checked: Checked) -> int:
    """Return how many calls a decision may make: fewer sources are read before steps are given up."""
    if checked.allowance is not Allowance.full:
        return 1
    return (breadth + 1) // 2 if checked.narrow else breadth


def _fresh(results: Sequence[ToolResult], calls: Sequence[Call]) -> list[list[Source]]:
    """Return the texts that each result brings first; of a source with a whole text, only that text.

    `calls` holds the step's earlier calls.
    """
    read = {source.key for call in calls for source in call.result.sources}
    full = {s.source_id for result in (*results, *(call.result for call in calls)) for s in result.sources if s.full}
    full -= {source.source_id for call in calls if call.narrowed_tokens for source in call.result.sources}
    fresh: list[list[Source]] = []
    for result in results:
        fresh.append([s for s in result.sources if s.key not in read and (s.full or s.source_id not in full)])
        read = read.union(source.key for source in fresh[-1])
    return fresh


@recorded_task(name="earlier notes", run_name="read the notes of the earlier run", shown=False, absent=NotedBefore())
async def noted_before(_engine: Engine) -> NotedBefore:
    """Return the earlier run's notes, recorded because that run may be gone when the follow-up is replayed."""
    if not _engine.earlier:
        return NotedBefore()
    return NotedBefore.of(*await _engine.earlier.noted()).by_another_run()


@recorded_task(name="budget", run_name="check the budget", shown=False, asks=False)
async def check_budget(step: PlanStep, turn: int, notes: bool, _engine: Engine) -> Checked:
    """Ask the ledger how much research may still do, and whether a person has stopped it.

    The answer is stored, so that a resumed run decides the same.
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


async def _run_calls(
    plan_title: str,
    step: PlanStep,
    chosen: Sequence[ToolCall],
    made: Sequence[ToolResult],
    engine: Engine,
    *,
    down: set[str],
) -> list[ToolResult]:
    """Make some calls together, and for each search that failed the calls of other tools.

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
    return await _with_stand_ins(results, made, down, make, engine)


async def _with_stand_ins(
    results: Sequence[ToolResult],
    made: Sequence[ToolResult],
    down: set[str],
    make: Callable[[ToolCall], Awaitable[ToolResult]],
    engine: Engine,
) -> list[ToolResult]:
    """Ask, for each search that failed, other tools of its domains one after another, until one has answered.

    A call that the step has made already is not made again. A failure with a stand-in's answer is not a failure of the
    run.
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


async def decide_calls(
    step: PlanStep,
    memory: Memory,
    calls: list[Call],
    checked: Checked,
    *,
    down: set[str],
    last: bool,
    beyond: bool,
    _engine: Engine,
) -> Decided:
    """Decide which calls come next; no calls means that the step is done.

    The first calls are the planner's queries, for which no model is asked. Then the researcher decides, if one of them
    found nothing useful or the notes are long enough for a brief. `down` holds resting tools; after the `last` decision
    the researcher is not asked again, but about a query of tables, `beyond` its turns. When the budget that was
    `checked` runs short, there are fewer calls, and the cheaper model is asked.
    """
    offered = _engine.tools.for_step(step, _engine.start.question, down)
    known = memory.within(_engine.settings.max_context_tokens, f"{step.title} {step.description}")
    own = [note for note in known.shown if str(note.step_id) == str(step.step_id)]
    computing = await _over_tables([*own, *memory.notes], _engine)
    offered = computing if beyond else offered | computing
    request = ResearchRequest(
        query=_engine.question_for(RESEARCHER),
        today=_engine.start.today,
        step=step,
        breadth=_searches(_engine.settings.breadth, checked),
        tools=offered,
        searching=[name for name in offered if name in _engine.tools.searching],
        notes=known.notes,
        briefs=known.briefs,
        tried=[call.result.call for call in calls],
        found_nothing=[call.result.call for call in calls if not call.useful],
        computing=[*computing],
        refused={result.call.input: result.failures[0].message for result in _queries(calls) if result.failed},
        last=last,
        brief_tokens=BRIEF_TOKENS if sum(note.tokens for note in own) > BRIEF_FROM and not beyond else 0,
        wanted=_engine.start.wanted,
    )
    if _is_answered(request, _engine) and (_queries(calls) or not await _may_be_computed(step, memory.notes, _engine)):
        return Decided(calls=[], usage=Usage())
    if _is_planned(request):
        answer, usage = RESEARCHER.normalize(request, decide(request)), Usage()
    else:
        answer, usage = await ask(RESEARCHER, request, _engine, saving=checked.narrow)
    chosen = [ToolCall(tool=call.tool, input=call.input) for call in answer.calls]
    return Decided(calls=chosen, usage=usage, brief=_brief(step, own, answer))


async def _over_tables(notes: Sequence[Note], engine: Engine) -> dict[str, str]:
    """Return the tools that work on the tables of the notes' sources, with their descriptions; only a model has any."""
    if engine.model_for(RESEARCHER).model == EXTRACTIVE:
        return {}
    return await engine.tools.over_tables(list(dict.fromkeys(note.artifact_file for note in notes)))


async def _may_be_computed(step: PlanStep, notes: Sequence[Note], engine: Engine) -> bool:
    """Whether the question asks for what may be computed from tables that the researcher has not yet seen together.

    It was asked about the tables of the steps before, but steps that ran together did not see each other's.
    """
    if not asks_to_compute(engine.start.question):
        return False
    others = [note for note in notes if str(note.step_id) != str(step.step_id)]
    if await _over_tables(notes, engine) != await _over_tables(others, engine):
        return True
    bringing = {str(note.step_id) for note in others if await _over_tables([note], engine)}
    return engine.settings.execution is Execution.parallel and len(bringing) > 1


def _queries(calls: Sequence[Call]) -> list[ToolResult]:
    return [call.result for call in calls if call.result.call.tool == ComputeTool.name]


def _mended(calls: Sequence[Call]) -> list[Call]:
    """Return the calls of a step; a query of tables that failed and was mended is no loss."""
    answered = max((n for n, call in enumerate(calls) if _queries([call]) and not call.result.failed), default=0)
    return [
        call.model_copy(update={"result": call.result.taken_over("A later query")})
        if n < answered and _queries([call]) and call.result.failed
        else call
        for n, call in enumerate(calls)
    ]


def _is_answered(request: ResearchRequest, engine: Engine) -> bool:
    """Whether no model need be asked: each query of the planner brought a useful note, and no brief is due.

    The critic still sees the gaps of the step. In a follow-up, the search of the earlier run's texts came first.
    """
    if engine.earlier or engine.model_for(RESEARCHER).model == EXTRACTIVE:
        return False
    return bool(request.tried) and not request.found_nothing and not request.brief_tokens


def _is_planned(request: ResearchRequest) -> bool:
    """Whether the first calls of a step are its queries; not if tools of another kind would then never have a turn."""
    others = [name for name in request.tools if name.startswith(PREFIX) and name not in request.searching]
    return bool(not request.tried and request.step.queries and request.searching and not (request.last and others))


def _brief(step: PlanStep, notes: Sequence[Note], answer: ResearchAnswer) -> Brief | None:
    """Return the brief that replaces some notes of a step; None if there is none, or it is no shorter than they."""
    if not answer.brief or count_tokens(answer.brief) >= sum(note.tokens for note in notes):
        return None
    return Brief(step_id=step.step_id, text=answer.brief, files=[note.artifact_file for note in notes])

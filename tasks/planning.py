"""The plan: search the local documents, then ask the planner; and the critic's judgement of a finished round."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import JsonValue

from fathom.config.groups import Role
from fathom.models import Catalogue, Clarification, Depth, Plan, PlanCost, Remark, Survey
from fathom.roles import CRITIC, PLANNER, EarlierReport, PlanRequest, ReflectRequest
from fathom.run.checklist import within
from fathom.run.engine import Engine, RunStart
from fathom.run.estimate import Scope, scope_of
from fathom.run.state import ResearchState
from fathom.tasks.durable import recorded_task, run_logger
from fathom.tasks.model_calls import ask, ask_overview
from fathom.tasks.results import Planned, Reflected
from fathom.telemetry.audit_events import AuditType
from fathom.telemetry.progress import Event, phase, publish
from fathom.text.markers import markers
from fathom.text.plain import counted

MOST_SEARCHES = 20  # without a result, that the critic is told, the latest ones


@recorded_task(name="survey", run_name="search the documents", asks=False)
async def survey(query: str, settings: dict[str, JsonValue], _engine: Engine) -> Survey:
    """Return the local documents closest to the query, by name, and the files that are not read."""
    return await _engine.tools.survey(query)


@recorded_task(name="holdings", run_name="look for the words of the question", asks=False)
async def look_for_words(words: list[str], settings: dict[str, JsonValue], _engine: Engine) -> Catalogue:
    """Return the holdings of the search tools, and the words that occur nowhere in them."""
    return await _engine.tools.holdings(words)


async def make_plan(
    query: str,
    _engine: Engine,
    clarifications: Sequence[Clarification] = (),
    draft: Plan | None = None,
    remark: str = "",
) -> Planned:
    """Break the query into steps, or change a drafted plan as a person's remark asks.

    The steps of a follow-up look for parts that the earlier report lacks.
    """
    found = await survey(query, _engine.tools.settings, _engine=_engine)
    template = _engine.start.template
    phase("planning")  # after the documents, since reading them may have had its own phase
    request = PlanRequest(
        query=query,
        today=_engine.start.today,
        max_steps=_engine.start.settings.max_steps,
        tools=_engine.tools.offered,
        documents=found.documents,
        searching=_engine.tools.searching if _engine.tools.specialised else [],
        clarifications=list(clarifications),
        draft=draft,
        remark=remark,
        earlier=_earlier(_engine.start),
        questions=template.questions if template else [],
        marked=markers(query),
    )
    answer, usage = await ask(PLANNER, request, _engine)
    plan = answer.plan().model_copy(update={"clarifications": list(clarifications)})
    # A template's questions, or a person who wants another plan, wants more than the question seems to need.
    whole = remark or (template and template.questions) or plan.preferences.depth is Depth.thorough
    scope = Scope(_engine.start.settings) if whole else scope_of(_engine.start.settings, plan.kind, plan.width)
    _engine.adopt(scope)
    plan = within(plan, _engine.settings.max_steps)
    if plan.left_out:
        most = counted(_engine.settings.max_steps, "step")
        run_logger().warning("The plan keeps %s; left out: %s", most, "; ".join(plan.left_out))
    steps = [step.title for step in plan.steps]
    await _engine.audit.record(
        AuditType.plan_generated,
        Role.planner,
        plan.plan_title,
        steps=steps,
        step_ids=[step.step_id for step in plan.steps],
        without_model=bool(usage.fallbacks),
        left_out=plan.left_out,
        **_scope(plan, _engine),
    )
    return Planned(plan=plan, usage=usage, unread=found.unread)


@recorded_task(name="cost", run_name="estimate the cost of the plan", shown=False, asks=False, absent=None)
async def estimate_cost(steps: int, bounds: dict[str, JsonValue], _engine: Engine) -> PlanCost | None:
    """Return what a run with a plan of some steps usually takes, once, since prices change."""
    return _engine.cost_of(steps)


async def with_cost(plan: Plan, _engine: Engine) -> Plan:
    """Return a plan with its estimated cost."""
    cost = await estimate_cost.quietly(len(plan.steps), _bounds(_engine), _engine=_engine)
    return plan.model_copy(update={"cost": cost})


def _scope(plan: Plan, engine: Engine) -> dict[str, JsonValue]:
    """Return the judgement of the question, and the scope of the run for it."""
    return {"kind": plan.kind, "width": plan.width, "bounds": _bounds(engine)}


def _bounds(engine: Engine) -> dict[str, JsonValue]:
    return engine.settings.model_dump(mode="json", include={"max_steps", "depth", "breadth", "turns", "max_results"})


def _earlier(start: RunStart) -> EarlierReport | None:
    if not (parent := start.parent):
        return None
    return EarlierReport(asked=start.query, question=parent.question, answer=parent.answer, gaps=parent.gaps)


async def reflect(
    run: ResearchState, remarks: list[Remark], round_number: int, max_follow_ups: int, *, _engine: Engine
) -> Reflected:
    """Score the evidence, update the checklist and propose steps for the next round, which also take up `remarks`.

    When the budget runs short, the cheaper model is asked.
    """
    known = run.memory.within(_engine.settings.max_context_tokens, _engine.start.question)
    searches = [call for call in run.all_calls if call.result.call.tool in _engine.tools.searching]
    request = ReflectRequest(
        query=_engine.question_for(CRITIC),
        today=_engine.start.today,
        plan=run.plan,
        round=round_number,
        max_follow_ups=max_follow_ups,
        remarks=remarks,
        notes=known.notes,
        briefs=known.briefs,
        sources=[source for source_id, source in run.sources.items() if source_id in known.cited],
        before=run.reflection,
        found_nothing=[call.result.call.input for call in searches if not call.useful][-MOST_SEARCHES:],
    )
    answer, usage = await ask_overview(CRITIC, request, _engine, saving=run.saving)
    reflection = answer.reflection(round_number)
    advice = reflection.recommendation(_engine.settings.sufficiency)
    gaps = counted(len(reflection.gaps), "gap")
    message = f"the evidence gets {reflection.sufficiency_score} of 10, {gaps} left: {advice}"
    run_logger().info("The critic after round %d: %s. %s", round_number, message, reflection.reasoning)
    publish(Event("reflection", message))
    await _engine.audit.record(
        AuditType.reflection_completed,
        Role.critic,
        message,
        round=round_number,
        score=reflection.sufficiency_score,
        recommendation=advice,
        coverage=reflection.coverage.model_dump(exclude_defaults=True),
        gaps=[gap.description for gap in reflection.gaps],
        follow_ups=[step.title for step in reflection.follow_up_steps],
    )
    return Reflected(reflection=reflection, usage=usage)

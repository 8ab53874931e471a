"""The plan: search the local documents, then ask the planner."""

from __future__ import annotations

from pydantic import JsonValue

from fathom.config.models import Role
from fathom.models import Catalogue, Survey
from fathom.roles import PLANNER, PlanRequest
from fathom.run.engine import Engine
from fathom.telemetry.audit_events import AuditType
from fathom.telemetry.progress import phase
from tasks.durable import recorded_task
from tasks.model_calls import ask
from tasks.results import Planned


@recorded_task(name="survey", run_name="search the documents")
async def survey(query: str, settings: dict[str, JsonValue], _engine: Engine) -> Survey:
    """Return the local documents closest to the query, by name, and the files that are not read."""
    return await _engine.tools.survey(query)


@recorded_task(name="holdings", run_name="look for the words of the question")
async def look_for_words(words: list[str], settings: dict[str, JsonValue], _engine: Engine) -> Catalogue:
    """Return what the search tools can find, and which of the words is nowhere in it."""
    return await _engine.tools.holdings(words)


async def make_plan(query: str, _engine: Engine) -> Planned:
    """Break the query into steps."""
    found = await survey(query, _engine.tools.settings, _engine=_engine)
    phase("planning")  # after the documents, whose reading may have had a phase of its own
    request = PlanRequest(
        query=query,
        today=_engine.start.today,
        max_steps=_engine.settings.max_steps,
        tools=_engine.tools.offered,
        documents=found.documents,
        questions=_engine.start.template.questions if _engine.start.template else [],
    )
    answer, usage = await ask(PLANNER, request, _engine)
    plan = answer.plan()
    steps = [step.title for step in plan.steps]
    await _engine.audit.record(
        AuditType.plan_generated, Role.planner, plan.plan_title, steps=steps, without_model=bool(usage.fallbacks)
    )
    return Planned(plan=plan, usage=usage, unread=found.unread)

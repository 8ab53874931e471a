"""The plan: a look at the local documents, then the planner."""

from __future__ import annotations

from fathom.engine import Engine
from fathom.models import Document
from fathom.roles import PLANNER, PlanRequest
from tasks.asking import ask
from tasks.durable import durable_task
from tasks.results import Planned

__all__ = ["make_plan"]


@durable_task(name="plan", run_name="plan the research")
async def make_plan(query: str, _engine: Engine) -> Planned:
    """Break the query into steps."""
    documents: list[Document] = await _engine.tools.survey(query)
    request = PlanRequest(
        query=query,
        today=_engine.start.today,
        max_steps=_engine.settings.max_steps,
        tools=_engine.tools.offered,
        documents=documents,
    )
    answer, usage = await ask(PLANNER, request, _engine)
    return Planned(plan=answer.plan(), usage=usage)

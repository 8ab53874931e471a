"""Questions to people before the research begins and after the report is written: the start and end of a run.

Every question to a person goes through `fathom.tasks.people.reply_to`, so a resumed or replayed run takes the recorded
reply.
"""

from __future__ import annotations

from functools import partial
from itertools import count

from fathom.config.groups import EXTRACTIVE, Approve
from fathom.flows.runs.asking import ask
from fathom.flows.writing import write_report
from fathom.models import Asked, Clarification, Matter, Report, Usage
from fathom.report.markdown import render_markdown
from fathom.roles import CLARIFIER, PLANNER
from fathom.run.engine import Engine
from fathom.run.estimate import Scope, beyond
from fathom.run.state import ResearchState
from fathom.tasks.durable import run_logger
from fathom.tasks.people import open_questions, reply_to
from fathom.tasks.planning import make_plan, with_cost


async def agree(engine: Engine) -> ResearchState:
    """Clarify the question and make a plan; return the run's state once the plan is accepted, if it must be."""
    query = engine.start.question
    clarifications, usage = await _clarify(engine)
    planned = await make_plan(query, _engine=engine, clarifications=clarifications)
    run = ResearchState(
        planned.plan,
        planned.usage,
        planned.unread,
        sufficiency=engine.settings.sufficiency,
        searched=engine.start.searched,
        scope=engine.start.scope,
    )
    if usage.llm_calls or usage.fallbacks:
        run.spend(CLARIFIER.name, usage)
    await _approve(engine, run)
    engine.plan = run.plan
    return run


async def _approve(engine: Engine, run: ResearchState) -> None:
    """Have the plan accepted, if the settings require that or it takes most of the budget."""
    query, clarifications = engine.start.question, run.plan.clarifications
    rewords = engine.model_for(PLANNER).model != EXTRACTIVE
    optional = engine.settings.people.approve is not Approve.plan
    for number in count(1):
        run.plan = await with_cost(run.plan, _engine=engine)
        if why := beyond(run.plan.cost, engine.settings.budget):
            engine.warnings.warn(run_logger(), why, why)
        elif optional:
            break
        asked = Asked(
            matter=Matter.plan,
            query=query,
            number=number,
            plan=run.plan,
            rewords=rewords,
            why=why,
            optional=optional,
        )
        reply = await reply_to(asked, _ask=partial(ask, engine=engine))
        run.plan = reply.plan or run.plan
        if len(run.plan.steps) > engine.settings.max_steps:  # of a person who wants more
            engine.adopt(Scope(engine.start.settings))
        if not reply.remark:
            break
        planned = await make_plan(
            query, _engine=engine, clarifications=clarifications, draft=run.plan, remark=reply.remark
        )
        run.plan = planned.plan
        run.spend(PLANNER.name, planned.usage)


async def write_accepted(engine: Engine, run: ResearchState) -> Report | None:
    """Write the report, until a person accepts it if the settings require that. None without a usable source."""
    report = await write_report(engine, run)
    if engine.settings.people.approve is not Approve.report:
        return report
    for number in count(1):
        if report is None:
            break
        draft, rewords = render_markdown(report), not report.extractive
        asked = Asked(matter=Matter.report, query=engine.start.question, number=number, report=draft, rewords=rewords)
        reply = await reply_to(asked, _ask=partial(ask, engine=engine))
        if not reply.remark:
            break
        engine.remarks.append(reply.remark)
        report = await write_report(engine, run)
    return report


async def _clarify(engine: Engine) -> tuple[list[Clarification], Usage]:
    """Ask about the ambiguities of the question, if any; return the answers or assumptions.

    Where the asker has said already what the question means, nothing is asked.
    """
    if said := engine.settings.people.clarified:
        at = engine.start.started
        return [Clarification(question=asked, answer=told, by="user", at=at) for asked, told in said.items()], Usage()
    questions, usage = await open_questions(engine.start.question, _engine=engine)
    if not questions:
        return [], usage
    asked = Asked(matter=Matter.question, query=engine.start.question, questions=questions)
    reply = await reply_to(asked, _ask=partial(ask, engine=engine))
    return reply.clarifications(questions), usage

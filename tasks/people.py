"""Questions to people. What somebody replied is recorded as soon as it is known, and nobody is asked it again."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from fathom.config.groups import Clarify
from fathom.models import Asked, OpenQuestion, Reply, Usage
from fathom.roles import CLARIFIER, ClarifyRequest
from fathom.run.engine import Engine
from fathom.tasks.durable import recorded_task
from fathom.tasks.model_calls import ask
from fathom.tasks.planning import survey
from fathom.telemetry.progress import phase


@recorded_task(name="reply", run_name="ask a person", shown=False)
async def reply_to(asked: Asked, _ask: Callable[[Asked], Awaitable[Reply]]) -> Reply:
    """Return what a person replied, whom `_ask` asks unless the reply is recorded."""
    return await _ask(asked)


async def open_questions(query: str, _engine: Engine) -> tuple[list[OpenQuestion], Usage]:
    """Return what to ask the person who asked, as far as the settings allow it, and what finding it out used."""
    wanted = _engine.settings.people.clarify
    if wanted is Clarify.never:
        return [], Usage()
    found = await survey.quietly(query, _engine.tools.settings, _engine=_engine)
    phase("reading the question")
    request = ClarifyRequest(
        query=query, today=_engine.start.today, tools=_engine.tools.offered, documents=found.documents
    )
    answer, usage = await ask(CLARIFIER, request, _engine)
    return answer.open_questions if answer.ambiguous or wanted is Clarify.always else [], usage

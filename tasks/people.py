"""People's replies and remarks to a run, recorded as soon as they are known, so that a resumed run gets the same."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime

from fathom.config.groups import Clarify
from fathom.models import Asked, OpenQuestion, Reply, Usage
from fathom.roles import CLARIFIER, ClarifyRequest
from fathom.run.engine import Engine
from fathom.storage.steering import Steer, SteeringEntry, stop_among, told_among, waiting_among
from fathom.tasks.durable import recorded_task
from fathom.tasks.model_calls import ask
from fathom.tasks.planning import survey
from fathom.tasks.results import Heard
from fathom.telemetry.progress import phase


@recorded_task(name="reply", run_name="ask a person", shown=False)
async def reply_to(asked: Asked, _ask: Callable[[Asked], Awaitable[Reply]]) -> Reply:
    """Return a person's reply; `_ask` asks for it unless it is recorded."""
    return await _ask(asked)


async def open_questions(query: str, _engine: Engine) -> tuple[list[OpenQuestion], Usage]:
    """Return the clarifying questions to the user, as far as the settings allow them, and the clarifier's usage."""
    wanted = _engine.settings.people.clarify
    if wanted is Clarify.never:
        return [], Usage()
    found = await survey.quietly(query, _engine.tools.settings, _engine=_engine)
    phase("reading the question")
    request = ClarifyRequest(
        query=query,
        today=_engine.start.today,
        language=_engine.language,
        tools=_engine.tools.offered,
        documents=found.documents,
    )
    answer, usage = await ask(CLARIFIER, request, _engine)
    return answer.open_questions if answer.ambiguous or wanted is Clarify.always else [], usage


@recorded_task(name="hear", run_name="read what people say", shown=False, asks=False, absent=Heard())
async def hear(round_number: int, known: int, closing: bool, more: bool, _engine: Engine) -> Heard:
    """Return the remarks after the known ones, and whether somebody stopped the research.

    When `closing`, no remark is accepted after this: the research ends or, if there are remarks and `more` is possible,
    has one more round. So each remark is either taken up or refused, and none can be taken back once this returns it.
    """
    while True:
        entries = await _engine.steering.entries()
        remarks = [entry.remark for entry in told_among(entries)][known:]
        stopped = stop_among(entries)
        kind = Steer.heard if more and remarks and not stopped else Steer.ended
        # An earlier attempt may have been killed after it had closed the list.
        done = any(entry.kind in (kind, Steer.ended) for entry in entries)
        if not closing:
            kind, done = Steer.taken, not waiting_among(entries)
        if done:
            return Heard(remarks=remarks, stopped=stopped)
        if await _engine.steering.add(
            SteeringEntry(kind=kind, run_id=_engine.start.run_id, author="fathom", at=datetime.now(UTC).isoformat())
        ):
            return Heard(remarks=remarks, stopped=stopped)

"""The critic's judgement of a finished round."""

from __future__ import annotations

from fathom.config.groups import Role
from fathom.models import Plan, Remark
from fathom.retrieval.narrowing import Memory
from fathom.roles import CRITIC, ReflectRequest
from fathom.run.engine import Engine
from fathom.tasks.durable import run_logger
from fathom.tasks.model_calls import ask_overview
from fathom.tasks.results import Reflected
from fathom.telemetry.audit_events import AuditType
from fathom.telemetry.progress import Event, publish
from fathom.text.plain import counted


async def reflect(
    plan: Plan, memory: Memory, remarks: list[Remark], round_number: int, max_follow_ups: int, _engine: Engine
) -> Reflected:
    """Score the evidence, update the checklist and propose what the next round should find, `remarks` among it."""
    known = memory.within(_engine.settings.max_context_tokens, _engine.start.question)
    request = ReflectRequest(
        query=_engine.question_for(CRITIC),
        today=_engine.start.today,
        plan=plan,
        round=round_number,
        max_follow_ups=max_follow_ups,
        remarks=remarks,
        notes=known.notes,
        briefs=known.briefs,
    )
    answer, usage = await ask_overview(CRITIC, request, _engine)
    reflection = answer.reflection(round_number)
    message = f"sufficiency {reflection.sufficiency_score}/10, {counted(len(reflection.gaps), 'gap')}"
    run_logger().info("The critic after round %d: %s. %s", round_number, message, reflection.reasoning)
    publish(Event("reflection", message))
    await _engine.audit.record(
        AuditType.reflection_completed,
        Role.critic,
        message,
        round=round_number,
        score=reflection.sufficiency_score,
        gaps=[gap.description for gap in reflection.gaps],
        follow_ups=[step.title for step in reflection.follow_up_steps],
    )
    return Reflected(reflection=reflection, usage=usage)

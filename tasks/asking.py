"""One model call is one task run; a role's answer takes one or two of them, or the extractive backend's."""

from __future__ import annotations

from typing import Any

from prefect.logging import get_run_logger

from fathom.engine import Engine
from fathom.errors import ModelError, ModelRejected
from fathom.llm.base import Completion, ModelCall, Rejected
from fathom.llm.parsing import accept
from fathom.models import Usage
from fathom.progress import Event, publish
from fathom.roles import SPECS, Answer, Request, RoleSpec
from fathom.roles.base import AnswerT, RequestT
from fathom.settings import EXTRACTIVE, RoleModel
from tasks.durable import durable_task

__all__ = ["ask"]


@durable_task(name="model call", run_name="{role} · {model.model}")
async def complete(
    role: str, request: Request, model: RoleModel, rejected: Rejected | None, _engine: Engine
) -> Completion:
    """Send one request to the backend of a model."""
    call = ModelCall(spec=SPECS[role], request=request, model=model, rejected=rejected)
    completion = await _engine.backend(model).complete(call)
    usage = completion.usage
    publish(
        Event(
            "model",
            f"{role} answered",
            calls=usage.llm_calls,
            tokens=usage.prompt_tokens + usage.completion_tokens,
            cost_usd=usage.cost_usd,
        )
    )
    return completion


async def ask(spec: RoleSpec[RequestT, AnswerT], request: RequestT, engine: Engine) -> tuple[AnswerT, Usage]:
    """Ask a role and return its answer with what it took.

    An answer that breaks the role's rules is asked for once more, with what was wrong. If that fails too, or the
    provider does, the extractive backend answers, and the usage says so.

    Raises:
        ModelRejected: the provider will never accept the request; the user must mend a name, a key or a quota.
    """
    model = engine.model_for(spec)
    usage = Usage()
    try:
        rejected: Rejected | None = None
        while True:
            answer, rejected, used = await _try(spec, request, model, rejected, engine)
            usage += used
            if answer is not None:
                return answer, usage
    except ModelRejected:
        raise
    except ModelError as error:
        if model.model == EXTRACTIVE:
            raise
        why = f"{spec.name}: answered without the model after {error.code}"
        get_run_logger().warning("%s: %s", why, error.message)
        publish(Event("warning", f"{why} {error.message}"))
        usage += Usage(fallbacks=[why])
    answer, _, used = await _try(spec, request, RoleModel(model=EXTRACTIVE), None, engine)
    assert answer is not None, "the extractive backend keeps the roles' rules"
    return answer, usage + used


async def _try(
    spec: RoleSpec[RequestT, AnswerT], request: RequestT, model: RoleModel, rejected: Rejected | None, engine: Engine
) -> tuple[AnswerT | None, Rejected | None, Usage]:
    """Make one model call and read its answer: either the answer, or what to ask again."""
    completion = await complete(spec.name, request, model, rejected, _engine=engine)
    outcome = accept(ModelCall(spec=spec, request=request, model=model, rejected=rejected), completion)
    if isinstance(outcome, Rejected):
        get_run_logger().info("%s asked again: %s", spec.name, " ".join(outcome.complaints))
        return None, outcome, completion.usage
    return _typed(spec, outcome), None, completion.usage


def _typed(spec: RoleSpec[Any, AnswerT], answer: Answer) -> AnswerT:
    assert isinstance(answer, spec.answer)
    return answer

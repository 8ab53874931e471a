"""One model call is one task run; a role's answer takes one or two of them, or the extractive backend's."""

from __future__ import annotations

from prefect.logging import get_run_logger

from fathom.engine import Engine
from fathom.errors import ModelError, ModelRejected
from fathom.llm.base import Completion, ModelCall, Rejected
from fathom.llm.parsing import accept
from fathom.models import Usage
from fathom.progress import Event, publish
from fathom.roles import SPECS, Request, RoleSpec
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

    An answer that breaks the role's rules is asked for once more, with what was wrong. If that fails too, or none of
    the role's models is available, the extractive backend answers, and the usage says so.

    Raises:
        ModelRejected: the provider will never accept the request; the user must mend a name, a key or a quota.
    """
    model = engine.model_for(spec)
    taken: list[Usage] = []
    try:
        answer = await _answer(spec, request, model, taken, engine)
    except ModelRejected:
        raise
    except ModelError as error:
        if model.model == EXTRACTIVE:
            raise
        why = f"{spec.name}: answered without the model after {error.code}"
        get_run_logger().warning("%s: %s", why, error.message)
        publish(Event("warning", f"{why} {error.message}"))
        taken.append(Usage(fallbacks=[why]))
        answer = await _answer(spec, request, RoleModel(model=EXTRACTIVE), taken, engine)
    return answer, sum(taken, Usage())


async def _answer(
    spec: RoleSpec[RequestT, AnswerT], request: RequestT, model: RoleModel, taken: list[Usage], engine: Engine
) -> AnswerT:
    """Return the model's answer to the first or second time of asking; what each took is appended to `taken`."""
    rejected: Rejected | None = None
    while True:
        completion: Completion = await complete(spec.name, request, model, rejected, _engine=engine)
        taken.append(completion.usage)
        outcome = accept(ModelCall(spec=spec, request=request, model=model, rejected=rejected), completion)
        if not isinstance(outcome, Rejected):
            assert isinstance(outcome, spec.answer)
            return outcome
        get_run_logger().info("%s asked again: %s", spec.name, " ".join(outcome.complaints))
        rejected = outcome

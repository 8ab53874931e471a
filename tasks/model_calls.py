"""One model call is one task run; a role's answer takes one or two of them, or the extractive backend's."""

from __future__ import annotations

from fathom.config.models import EXTRACTIVE, RoleModel
from fathom.errors import AnswerInvalid, ModelError, ModelRejected
from fathom.llm.base import Completion, Failure, InvalidAnswer, ModelCall
from fathom.llm.parsing import accept
from fathom.models import Usage
from fathom.roles import SPECS, Request, RoleSpec
from fathom.roles.base import AnswerT, RequestT
from fathom.run.engine import Engine
from fathom.telemetry.audit_events import AuditType
from fathom.telemetry.progress import Event, publish
from tasks.durable import durable_task, run_logger


@durable_task(name="model call", run_name="{role} · {model.model}", recorded=True)
async def complete(
    role: str, request: Request, model: RoleModel, invalid: InvalidAnswer | None, _engine: Engine
) -> Completion | Failure:
    """Send one request to the backend of a model.

    A failure that the run survives is a result like any other: it is neither waited for again nor lost to a replay.

    Raises:
        ModelRejected: the user must mend something; the call is made again when the run is resumed.
    """
    spec = SPECS[role]
    call = ModelCall(spec=spec, request=request, model=model, invalid=invalid)

    async def record(model: str, **details: object) -> None:
        await _engine.audit.record(AuditType.llm_called, spec.role, f"{role}: {model}", model=model, **details)

    try:
        completion = await _engine.backend(model).complete(call)
    except ModelError as error:
        await record(model.model, success=False, code=error.code, error=error.message)
        if isinstance(error, ModelRejected):
            raise
        return Failure(code=error.code, message=error.message)
    usage = completion.usage
    await record(completion.model, success=True, **usage.model_dump(exclude={"llm_calls", "fallbacks"}))
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
    answer = await _answer(spec, request, model, taken, engine)
    if isinstance(answer, Failure):
        answer, usage = await answer_without_model(spec, request, answer, engine)
        taken.append(usage)
    return answer, sum(taken, Usage())


async def answer_without_model(
    spec: RoleSpec[RequestT, AnswerT], request: RequestT, failure: Failure, engine: Engine
) -> tuple[AnswerT, Usage]:
    """Let the extractive backend answer for a role whose model failed; the usage says so, and why.

    Raises:
        AnswerInvalid: it cannot.
    """
    why = f"{spec.name}: answered without the model after {failure.code}"
    run_logger().warning("%s: %s", why, failure.message)
    publish(Event("warning", f"{why} {failure.message}"))
    taken = [Usage(fallbacks=[why])]
    answer = await _answer(spec, request, RoleModel(model=EXTRACTIVE), taken, engine)
    if isinstance(answer, Failure):
        raise AnswerInvalid(f"The {spec.name} cannot answer without a model either: {answer.message}")
    return answer, sum(taken, Usage())


async def _answer(
    spec: RoleSpec[RequestT, AnswerT], request: RequestT, model: RoleModel, taken: list[Usage], engine: Engine
) -> AnswerT | Failure:
    """Return the model's answer to the first or second time of asking; what each took is appended to `taken`."""
    invalid: InvalidAnswer | None = None
    while True:
        completion = await complete(spec.name, request, model, invalid, _engine=engine)
        if isinstance(completion, Failure):
            return completion
        taken.append(completion.usage)
        try:
            outcome = accept(ModelCall(spec=spec, request=request, model=model, invalid=invalid), completion)
        except AnswerInvalid as error:
            return Failure(code=error.code, message=error.message)
        if not isinstance(outcome, InvalidAnswer):
            assert isinstance(outcome, spec.answer)
            return outcome
        run_logger().info("%s asked again: %s", spec.name, " ".join(outcome.complaints))
        invalid = outcome

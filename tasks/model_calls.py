"""Asking a role: each model call is one task run, and an answer takes one or two of them."""

from __future__ import annotations

from contextlib import nullcontext
from typing import TypeVar

from fathom.config.groups import EXTRACTIVE, RoleModel
from fathom.errors import AnswerInvalid, ModelError, ModelRejected, ModelUnreachable
from fathom.extractive.backend import reader_of
from fathom.llm.base import Completion, ExchangeRecord, Failure, InvalidAnswer, ModelCall
from fathom.llm.dialects import Dialect
from fathom.llm.parsing import accept, without_thoughts
from fathom.llm.prompts import prompt_hashes, sent_messages
from fathom.models import Usage, told_by
from fathom.roles import ANSWER, CRITIC, OUTLINE, SECTION, SPECS, Request, RoleSpec, Text
from fathom.roles.base import WITHOUT_MODEL, AnswerT, Guided, OverviewAnswer, Remembering, RequestT
from fathom.run.engine import Engine
from fathom.tasks.durable import recorded_task, run_logger
from fathom.telemetry.audit_events import AuditType
from fathom.telemetry.progress import Event, doing, publish
from fathom.telemetry.tracing import role_span

MILESTONES = frozenset({CRITIC.name, OUTLINE.name, SECTION.name, ANSWER.name})
"""The roles by whose answers a reader of a run's time line follows it."""
RememberingT = TypeVar("RememberingT", bound=Remembering)
OverviewT = TypeVar("OverviewT", bound=OverviewAnswer)


@recorded_task(name="model call", run_name="{role} · {model.model}")
async def complete(
    role: str, request: Request, model: RoleModel, prompt: str, invalid: InvalidAnswer | None, _engine: Engine
) -> Completion | Failure:
    """Send one request to the backend of a model. `prompt` is the hash of the role's prompt, if the model is shown it.

    Without a model, it is the one that ranks by meaning what the role quotes, if there is one.

    A failure that the run survives is a result like any other: a resumed run does not wait for it again.

    Raises:
        ModelRejected, ModelUnreachable: the user must correct something; a resumed run makes the call again.
    """
    spec = SPECS[role]
    call = ModelCall(spec=spec, request=request, model=model, invalid=invalid)

    with role_span(role) as span:

        async def record(model: str, **details: object) -> None:
            by = "without a model" if model == EXTRACTIVE else model
            await _engine.audit.record(
                AuditType.llm_called, spec.role, f"{role}: {by}", span.id, model=model, **details
            )

        try:
            with doing(f"asking {model.model} ({role})") if model.model != EXTRACTIVE else nullcontext():
                completion = await _engine.backend(model).complete(call)
        except ModelError as error:
            await record(model.model, success=False, code=error.code, error=error.message)
            gone = isinstance(error, ModelUnreachable) and EXTRACTIVE not in model.fallbacks
            if gone or isinstance(error, ModelRejected):
                raise
            span.failed(type(error).__name__, error.code)
            return Failure(code=error.code, message=error.message)
        usage = completion.usage
        await record(completion.model, success=True, **usage.model_dump(exclude={"llm_calls", "fallbacks"}))
    ledger = _engine.ledger
    publish(Event("spent", spent=ledger.account, caps=ledger.budget, priced=usage.cost_usd is not None))
    _engine.speed.heard(completion)
    return completion


@recorded_task(name="window", run_name="window of {model.model}", shown=False, absent=None)
async def _window(role: str, model: RoleModel, _engine: Engine) -> int | None:
    return await _engine.window(model)


async def find_window(spec: RoleSpec[RequestT, AnswerT], engine: Engine, *, saving: bool = False) -> int | None:
    """Return how many tokens prompt and answer of a role may have together; None: not known, or without a model.

    The result is recorded when the run first asks, so a resumed run and a replay make the same requests.
    """
    return await _window(spec.name, engine.model_for(spec, saving=saving), _engine=engine)


async def ask(
    spec: RoleSpec[RequestT, AnswerT], request: RequestT, engine: Engine, *, saving: bool = False
) -> tuple[AnswerT, Usage]:
    """Ask a role, or the cheaper model if money must be saved, and return its answer and its usage.

    If an answer breaks the role's rules, the model is asked once more and told why. If that fails too, or none of the
    role's models is available, the extractive backend answers, and the usage says so. A model that never gave the role
    a valid answer in this run is not asked after its second failure.

    Raises:
        ModelRejected: the provider will never accept the request; the user must correct a name, a key or a quota.
        ModelUnreachable: the model has no server, and no fallback; `extractive` is one.
    """
    model = engine.model_for(spec, saving=saving)
    if isinstance(request, Guided):
        used = engine.start.template
        guided = {"guidance": used.guidance, "terminology": used.terminology} if used else {}
        request = request.model_copy(update={"language": engine.language, **guided})
    if engine.reliability.able(spec.name, model.model):
        answer, usage = await _answer(spec, request, model, engine)
    else:
        said = f"{model.model} has given the {spec.name} no valid answer; it is not asked any more."
        answer, usage = Failure(code=AnswerInvalid.code, message=said), Usage()
    if isinstance(answer, Failure):
        answer, more = await answer_without_model(spec, request, answer, engine)
        usage += more
    return answer, usage


async def ask_overview(
    spec: RoleSpec[RememberingT, OverviewT], request: RememberingT, engine: Engine, *, saving: bool = False
) -> tuple[OverviewT, Usage]:
    """Ask a role about the research as a whole; it may first request some notes whole, and is then asked once more.

    Raises:
        ModelRejected, ModelUnreachable: as in `ask`.
    """
    answer, usage = await ask(spec, request, engine, saving=saving)
    told = told_by(request.briefs)
    if not (wanted := [file for file in dict.fromkeys(answer.read_whole) if file in told]):
        return answer, usage
    answer, more = await ask(spec, request.model_copy(update={"whole": wanted}), engine, saving=saving)
    return answer, usage + more


async def answer_without_model(
    spec: RoleSpec[RequestT, AnswerT], request: RequestT, failure: Failure, engine: Engine
) -> tuple[AnswerT, Usage]:
    """Let the extractive backend answer for a role whose model failed; the usage says so, and why.

    Raises:
        AnswerInvalid: the backend cannot answer.
    """
    why = f"{spec.name}: {WITHOUT_MODEL} {failure.code}"
    engine.warnings.warn(run_logger(), f"{why}: {failure.message}", why)
    answer, usage = await _answer(spec, request, RoleModel(model=EXTRACTIVE), engine)
    if isinstance(answer, Failure):
        raise AnswerInvalid(f"The {spec.name} cannot answer without a model either: {answer.message}")
    return answer, Usage(fallbacks=[why]) + usage


async def _answer(
    spec: RoleSpec[RequestT, AnswerT], request: RequestT, model: RoleModel, engine: Engine
) -> tuple[AnswerT | Failure, Usage]:
    """Return the model's first or second answer, or why there is none, and its usage."""
    reader = reader_of(spec.name, engine.settings.embed_model) or ""
    prompt = reader if model.model == EXTRACTIVE else prompt_hashes()[spec.name]
    invalid: InvalidAnswer | None = None
    usage = Usage()
    while True:
        # A call without a model is not a request: its task run would only cost time, but for the few milestones.
        call = complete.quietly if model.model == EXTRACTIVE and spec.name not in MILESTONES else complete
        completion = await call(spec.name, request, model, prompt, invalid, _engine=engine)
        if isinstance(completion, Failure):
            return completion, usage
        asked = ModelCall(spec=spec, request=request, model=model, invalid=invalid)
        if not completion.at or _is_new(asked, completion, engine):
            usage += completion.usage
        try:
            outcome = accept(asked, completion)
        except AnswerInvalid as error:
            engine.reliability.count(spec.name, completion.model, valid=False)
            return Failure(code=error.code, message=error.message), usage
        if not isinstance(outcome, InvalidAnswer):
            assert isinstance(outcome, spec.answer)
            engine.reliability.count(spec.name, completion.model, valid=True)
            return outcome, usage
        run_logger().info("The %s is asked again: %s", spec.name, " ".join(outcome.complaints))
        invalid = outcome


def _is_new(asked: ModelCall, completion: Completion, engine: Engine) -> bool:
    """Whether the run has not yet used this answer, which is then kept: equal requests have one answer, paid once."""
    sent = completion.prompt or sent_messages(asked, Dialect())
    said = without_thoughts(completion.text, is_json=asked.spec.answer is not Text)
    exchange = ExchangeRecord(
        role=asked.spec.name, model=completion.model, at=completion.at, prompt=sent, response=said
    )
    if exchange in engine.exchanges:
        return False
    engine.exchanges.append(exchange)
    return True

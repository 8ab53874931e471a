"""Asking a role outside a run: what a benchmark or a command asks, and nothing has to survive."""

from __future__ import annotations

from fathom.config.models import RoleModel
from fathom.llm.base import Backend, InvalidAnswer, ModelCall
from fathom.llm.parsing import accept
from fathom.models import Usage
from fathom.roles.base import AnswerT, RequestT, RoleSpec


async def answer_of(
    spec: RoleSpec[RequestT, AnswerT], request: RequestT, model: RoleModel, backend: Backend
) -> tuple[AnswerT, Usage, str]:
    """Ask a role, once more if its answer breaks a rule; return the answer, what it used and the model that gave it.

    Raises:
        ModelError: the model does not answer.
        AnswerInvalid: it gave two answers that cannot be used.
    """
    invalid: InvalidAnswer | None = None
    usage = Usage()
    while True:
        call = ModelCall(spec=spec, request=request, model=model, invalid=invalid)
        completion = await backend.complete(call)
        usage += completion.usage
        outcome = accept(call, completion)
        if not isinstance(outcome, InvalidAnswer):
            assert isinstance(outcome, spec.answer)
            return outcome, usage, completion.model
        invalid = outcome

"""One small request that shows what a model can do, before a run depends on it."""

from __future__ import annotations

from contextlib import aclosing

from pydantic import Field, ValidationError

from fathom.budget.ledger import Ledger
from fathom.config.caps import Budget
from fathom.config.environment import Environment
from fathom.config.models import ModelCallSettings, Role, RoleModel, StructuredOutput
from fathom.llm.base import Completion, CutOff, ModelCall
from fathom.llm.client import ModelBackend
from fathom.llm.debris import without_debris
from fathom.models import Model
from fathom.roles import Answer, Request, RoleSpec
from fathom.storage.store import ArtifactStore

FIRST, SECOND = 17, 25


class ProbeRequest(Request):
    """Two numbers to add."""

    first: int = FIRST
    second: int = SECOND


class ProbeAnswer(Answer):
    """A capital, a sum, and two sentences."""

    capital: str = Field(description="The capital of France.")
    sum: int = Field(description="The sum of the two numbers.")
    bicycle: str = Field(description="What a bicycle is for, in two sentences.")


PROBE = RoleSpec("probe", Role.planner, ProbeRequest, ProbeAnswer)


class Probe(Model):
    """What a model showed.

    Attributes:
        wait: seconds until its first token; None where the answer came in one piece.
        tokens_per_second: from then on.
        structured: the form in which it was asked for JSON.
        fits: its answer is JSON of the schema.
        right: it knows the capital and the sum.
        debris: its answer has marks around it: thoughts, a fence, or what belongs to a chat template.
        thinks: it reasons before it answers.
        window: tokens of prompt and answer together; None: unknown.
        cut_off: why its answer is not whole.
    """

    wait: float | None
    tokens_per_second: float | None
    structured: StructuredOutput
    fits: bool
    right: bool
    debris: bool
    thinks: bool
    window: int | None
    cut_off: CutOff | None


async def probe(model: str, environment: Environment, calls: ModelCallSettings) -> Probe:
    """Ask a model once, as a run would.

    Raises:
        ModelError: it does not answer.
    """
    role_model = RoleModel(model=model, temperature=0, max_tokens=1_024)
    ledger = Ledger(Budget(), ArtifactStore("memory://probe"), "ledger")
    async with aclosing(ModelBackend(environment, ledger, calls)) as models:
        done = await models.complete(ModelCall(PROBE, ProbeRequest(), role_model))
        learnt = await models.learnt(role_model)
    answer = _read(done)
    return Probe(
        wait=done.pace and done.pace.wait,
        tokens_per_second=done.pace and done.pace.tokens_per_second,
        structured=learnt.dialect.structured,
        fits=answer is not None,
        right=answer is not None and "paris" in answer.capital.lower() and answer.sum == FIRST + SECOND,
        debris=without_debris(done.text, is_json=True) != done.text.strip(),
        thinks=learnt.dialect.thinks,
        window=learnt.window,
        cut_off=done.cut_off,
    )


def _read(done: Completion) -> ProbeAnswer | None:
    try:
        return ProbeAnswer.model_validate_json(without_debris(done.text, is_json=True))
    except ValidationError:
        return None

"""Checks of a model before a run depends on it: by litellm's table, and by one small request."""

from __future__ import annotations

from contextlib import aclosing

from pydantic import Field, ValidationError

from fathom.budget.caps import CAPS
from fathom.budget.ledger import Ledger
from fathom.budget.prices import Pricing
from fathom.config.environment import Environment
from fathom.config.groups import (
    DEFAULT_USD,
    EXTRACTIVE,
    AccessScope,
    Budget,
    ModelCallSettings,
    Role,
    RoleModel,
    StructuredOutput,
)
from fathom.config.secrets import Scrubber
from fathom.config.settings import ResolvedSettings
from fathom.errors import InvalidInput, MissingCredential
from fathom.llm.base import Completion, CutOff, ModelCall
from fathom.llm.client import ModelBackend, check_local
from fathom.llm.openai_chat import OpenAIChat, speaks_openai_chat
from fathom.llm.over_litellm import LiteLLM, load_litellm
from fathom.llm.parsing import without_debris
from fathom.models import Model
from fathom.roles import Answer, Request, RoleSpec
from fathom.storage.store import ArtifactStore

OPENAI_KEY = "OPENAI_API_KEY"  # a server of the user's own takes any value
# Providers that need no variable: a local server, or credentials from a profile or an instance's role.
KEYLESS = frozenset({"ollama", "ollama_chat", "bedrock", "sagemaker", "sagemaker_chat", "vertex_ai", "vertex_ai_beta"})


def check_models(settings: ResolvedSettings, environment: Environment) -> None:
    """Check that every chosen model exists for litellm and has its key.

    Raises:
        InvalidInput: litellm knows no provider for the name, its server is beyond the scope, or there is a dollar cap
            and a price is unknown.
        MissingCredential: a key is missing; the message names the variable.
    """
    if not (models := models_of(settings)):
        return
    for model in models:
        if settings.scope is AccessScope.private:
            speaker = OpenAIChat if speaks_openai_chat(model) else LiteLLM
            check_local(model, speaker(environment, Scrubber(environment.secrets)).address(model))
        _check_key(model, environment)
    unpriced = _unpriced(models, Pricing(settings.prices))
    capped = settings.budget.max_usd is not None or any(environment.cap(name) is not None for name in CAPS)
    if unpriced and capped:
        raise InvalidInput(
            f"The price of {unpriced[0]!r} is unknown, so a cap in dollars cannot be kept.",
            next_step=f"give its price in dollars per million tokens with --price {unpriced[0]}=INPUT,OUTPUT, "
            "or cap tokens instead: --max-tokens",
        )


def _check_key(model: str, environment: Environment) -> None:
    if speaks_openai_chat(model):
        missing, between = [name for name in (OPENAI_KEY,) if not environment.variables.get(name)], ""
    else:
        missing, between = _missing_for_litellm(model, environment)
    if missing:
        message = f"The model {model!r} needs {between.join(missing)}, which is not set."
        raise MissingCredential(message, next_step=f"export {missing[-1]}=...")


def _missing_for_litellm(model: str, environment: Environment) -> tuple[list[str], str]:
    """Return the variables that a model's provider needs and that are not set, and the word between them."""
    litellm = load_litellm(environment)
    from openai import OpenAIError

    try:
        _name, provider, *_rest = litellm.get_llm_provider(model)
    except OpenAIError:
        raise InvalidInput(
            f"There is no model {model!r}.",
            next_step="use a litellm name, provider first: openai/gpt-5-mini, anthropic/claude-sonnet-4-5, "
            "ollama/qwen3; or use extractive",
        ) from None
    missing = [] if provider in KEYLESS else litellm.validate_environment(model)["missing_keys"]
    return missing, " or " if provider == "gemini" else " and "


def settled_budget(settings: ResolvedSettings) -> Budget:
    """Return the budget with its dollar cap: the chosen one, else the default if every price is known."""
    models = models_of(settings)
    if settings.budget.max_usd is not None or not models:
        return settings.budget
    if _unpriced(models, Pricing(settings.prices)):
        return settings.budget
    return settings.budget.model_copy(update={"max_usd": DEFAULT_USD})


def models_of(settings: ResolvedSettings) -> list[str]:
    """Return the models that a run may ask, without the extractive backend."""
    names = {name for chosen in settings.role_models.values() for name in (chosen.model, *chosen.fallbacks)}
    if names != {EXTRACTIVE} and settings.cheaper_model:
        names.add(settings.cheaper_model)
    return sorted(names - {EXTRACTIVE})


def _unpriced(models: list[str], pricing: Pricing) -> list[str]:
    return [model for model in models if pricing.highest(model) is None]


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
    """The findings about a model.

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

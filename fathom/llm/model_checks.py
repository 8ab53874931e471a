"""What litellm knows of a model before it is called: whether the name exists, the key is set, the price is known."""

from __future__ import annotations

from fathom.budget.prices import Pricing
from fathom.budget.purse import CAPS
from fathom.config.caps import DEFAULT_USD, Budget
from fathom.config.environment import Environment
from fathom.config.models import EXTRACTIVE
from fathom.config.settings import ResolvedSettings
from fathom.errors import InvalidInput, MissingCredential
from fathom.llm.openai_chat import speaks_openai_chat
from fathom.llm.over_litellm import load_litellm

OPENAI_KEY = "OPENAI_API_KEY"  # a server of the user's own takes any value
# Providers that need no variable: a local server, or credentials from a profile or an instance's role.
KEYLESS = frozenset({"ollama", "ollama_chat", "bedrock", "sagemaker", "sagemaker_chat", "vertex_ai", "vertex_ai_beta"})


def check_models(settings: ResolvedSettings, environment: Environment) -> None:
    """Check that every chosen model exists for litellm and has its key.

    Raises:
        InvalidInput: litellm knows no provider for the name, or there is a dollar cap and a price is unknown.
        MissingCredential: a key is missing; the message names the variable.
    """
    if not (models := models_of(settings)):
        return
    for model in models:
        _check_key(model, environment)
    unpriced = _unpriced(models, Pricing(settings.prices))
    capped = settings.budget.max_usd is not None or any(environment.cap(name) is not None for name in CAPS)
    if unpriced and capped:
        raise InvalidInput(
            f"The price of {unpriced[0]!r} is unknown, so a cap in dollars cannot be kept.",
            next_step=f"give it in dollars per million tokens, --price {unpriced[0]}=INPUT,OUTPUT (setting prices), "
            "or use --max-tokens instead of --max-usd",
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
    return sorted(names - {EXTRACTIVE})


def _unpriced(models: list[str], pricing: Pricing) -> list[str]:
    return [model for model in models if pricing.highest(model) is None]

"""What litellm knows of a model before it is called: whether the name exists, the key is set, the price is known."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

from fathom.budget.prices import Pricing
from fathom.config.caps import DEFAULT_USD, Budget
from fathom.config.environment import Environment
from fathom.config.models import EXTRACTIVE
from fathom.config.settings import ResolvedSettings
from fathom.errors import InvalidInput, MissingCredential

if TYPE_CHECKING:
    from types import ModuleType

# Providers that need no variable: a local server, or credentials from a profile or an instance's role.
KEYLESS = frozenset({"ollama", "ollama_chat", "bedrock", "sagemaker", "sagemaker_chat", "vertex_ai", "vertex_ai_beta"})


def load_litellm(environment: Environment) -> ModuleType:
    """Import litellm, which takes seconds and 100 MB, on the first call that needs it."""
    environment.quieten_litellm()
    # litellm's types make pydantic warn about itself, at import and again at the first call.
    warnings.filterwarnings(
        "ignore", message=r"Item .* on TypedDict class .* is using the `ReadOnly`", category=UserWarning
    )
    import litellm

    litellm.suppress_debug_info = True
    litellm.disable_hf_tokenizer_download = True
    litellm.telemetry = False
    return litellm


def check_models(settings: ResolvedSettings, environment: Environment) -> None:
    """Check that every chosen model exists for litellm and has its key.

    Raises:
        InvalidInput: litellm knows no provider for the name, or there is a dollar cap and a price is unknown.
        MissingCredential: a key is missing; the message names the variable.
    """
    if not (models := _models(settings)):
        return
    litellm = load_litellm(environment)
    from openai import OpenAIError

    for model in models:
        try:
            _name, provider, *_rest = litellm.get_llm_provider(model)
        except OpenAIError:
            raise InvalidInput(
                f"There is no model {model!r}.",
                next_step="use a litellm name, provider first: openai/gpt-5-mini, anthropic/claude-sonnet-4-5, "
                "ollama/qwen3; or use extractive",
            ) from None
        missing = litellm.validate_environment(model)["missing_keys"]
        if missing and provider not in KEYLESS:
            names = (" or " if provider == "gemini" else " and ").join(missing)
            raise MissingCredential(
                f"The model {model!r} needs {names}, which is not set.", next_step=f"export {missing[-1]}=..."
            )
    unpriced = _unpriced(models, Pricing(litellm, settings.prices))
    if unpriced and settings.budget.max_usd is not None:
        raise InvalidInput(
            f"The price of {unpriced[0]!r} is unknown, so a cap in dollars cannot be kept.",
            next_step=f"give it in dollars per million tokens, --price {unpriced[0]}=INPUT,OUTPUT (setting prices), "
            "or use --max-tokens instead of --max-usd",
        )


def settled_budget(settings: ResolvedSettings, environment: Environment) -> Budget:
    """Return the budget with its dollar cap: the chosen one, else the default if every price is known."""
    models = _models(settings)
    if settings.budget.max_usd is not None or not models:
        return settings.budget
    if _unpriced(models, Pricing(load_litellm(environment), settings.prices)):
        return settings.budget
    return settings.budget.model_copy(update={"max_usd": DEFAULT_USD})


def _models(settings: ResolvedSettings) -> list[str]:
    names = {name for chosen in settings.role_models.values() for name in (chosen.model, *chosen.fallbacks)}
    return sorted(names - {EXTRACTIVE})


def _unpriced(models: list[str], pricing: Pricing) -> list[str]:
    return [model for model in models if pricing.highest(model) is None]

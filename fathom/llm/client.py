"""Models over litellm: the `litellm` backend.

litellm speaks every provider's dialect; what it is not asked to do is retry, time out, cache or count: those are
decided here, in one place, because its own defaults multiply.
"""

from __future__ import annotations

import asyncio
import logging
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from fathom.errors import (
    ContextOverflow,
    InvalidInput,
    MissingCredential,
    ModelError,
    ModelRejected,
    ProviderFailed,
    RateLimited,
    Refused,
)
from fathom.llm.base import Completion, ModelCall
from fathom.llm.parsing import strict_schema
from fathom.llm.pricing import cost_usd
from fathom.llm.prompts import Message, messages
from fathom.models import Usage
from fathom.roles import Text
from fathom.settings import EXTRACTIVE, Environment, ResolvedSettings, StructuredOutput

if TYPE_CHECKING:
    from types import ModuleType

__all__ = ["LiteLLMBackend", "check_models"]

log = logging.getLogger(__name__)

CALL_SECONDS = 120.0
BACKOFF_SECONDS = (2.0, 4.0, 8.0, 16.0)
MAX_RETRY_AFTER = 60.0
# Providers that work without a variable: a server of this machine, or credentials from a profile or an instance's role.
KEYLESS = frozenset({"ollama", "ollama_chat", "bedrock", "sagemaker", "sagemaker_chat", "vertex_ai", "vertex_ai_beta"})


def _litellm(environment: Environment) -> ModuleType:
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
        InvalidInput: litellm knows no provider for the name.
        MissingCredential: a key is missing; the message names the variable.
    """
    models = {role_model.model for role_model in settings.models.values()} - {EXTRACTIVE}
    if not models:
        return
    litellm = _litellm(environment)
    from openai import OpenAIError

    for model in sorted(models):
        try:
            _name, provider, *_rest = litellm.get_llm_provider(model)
        except OpenAIError:
            raise InvalidInput(
                f"There is no model {model!r}.",
                next_step="name it as litellm does, provider first: openai/gpt-5-mini, anthropic/claude-sonnet-4-5, "
                "ollama/qwen3; or use extractive",
            ) from None
        missing = litellm.validate_environment(model)["missing_keys"]
        if missing and provider not in KEYLESS:
            names = (" or " if provider == "gemini" else " and ").join(missing)
            raise MissingCredential(
                f"The model {model!r} needs {names}, which is not set.", next_step=f"export {missing[-1]}=..."
            )


class LiteLLMBackend:
    """Asks models over HTTP.

    Args:
        environment: what the process was started with.
        backoff: seconds before each further attempt at a request whose failure may pass; a provider's `Retry-After`
            takes precedence.
    """

    def __init__(self, environment: Environment, backoff: Sequence[float] = BACKOFF_SECONDS) -> None:
        self._environment = environment
        self._backoff = tuple(backoff)

    async def complete(self, call: ModelCall) -> Completion:
        """Answer one request, trying again where the failure may pass.

        Raises:
            ModelError: the last failure; see `fathom.errors` for who must react.
        """
        prompt = messages(call)
        for wait in (*self._backoff, None):
            try:
                return await self._once(call, prompt)
            except ModelError as error:
                if wait is None or not error.retryable:
                    raise
                seconds = wait if error.retry_after is None else min(error.retry_after, MAX_RETRY_AFTER)
                log.warning("%s; the %s tries again in %.0f s", error, call.spec.name, seconds)
                await asyncio.sleep(seconds)
        raise AssertionError("the last attempt returns or raises")

    async def _once(self, call: ModelCall, prompt: list[Message]) -> Completion:
        litellm = _litellm(self._environment)
        from openai import OpenAIError

        options = _structured(call, prompt)
        if call.model.temperature is not None:
            options["temperature"] = call.model.temperature
        try:
            async with asyncio.timeout(CALL_SECONDS):
                response = await litellm.acompletion(
                    model=call.model.model,
                    max_tokens=call.model.max_tokens,
                    timeout=CALL_SECONDS,
                    max_retries=0,
                    num_retries=0,
                    drop_params=True,
                    **options,
                )
        except TimeoutError:
            raise ProviderFailed(f"{call.model.model} gave no answer in {CALL_SECONDS:.0f} s.") from None
        except OpenAIError as error:
            raise _classify(litellm, error, call.model.model) from error
        return _completion(litellm, response, call)


def _structured(call: ModelCall, prompt: list[Message]) -> dict[str, Any]:
    """Return the request's messages and, for a typed answer, how its schema is asked for."""
    if call.spec.answer is Text:
        return {"messages": prompt}
    schema = strict_schema(call.spec.schema(call.request) if call.spec.schema else call.spec.answer.model_json_schema())
    if call.model.structured_output is StructuredOutput.json_schema:
        wrapped = {"name": f"{call.spec.name}_answer", "schema": schema, "strict": True}
        return {"messages": prompt, "response_format": {"type": "json_schema", "json_schema": wrapped}}
    import json

    system, *rest = prompt
    asked: Message = {
        "role": "system",
        "content": f"{system['content']}\n\nAnswer with one JSON object of this schema and nothing else:\n"
        + json.dumps(schema, ensure_ascii=False),
    }
    options: dict[str, Any] = {"messages": [asked, *rest]}
    if call.model.structured_output is StructuredOutput.json_object:
        options["response_format"] = {"type": "json_object"}
    return options


def _completion(litellm: ModuleType, response: Any, call: ModelCall) -> Completion:
    """Check what came back as a success; empty choices and refusals are failures."""
    if not response.choices:
        raise ProviderFailed(f"{call.model.model} answered without a choice.")
    choice = response.choices[0]
    if choice.finish_reason == "content_filter" or getattr(choice.message, "refusal", None):
        raise Refused(f"{call.model.model} declined to answer the {call.spec.name}.")
    usage = response.usage
    prompt_tokens, completion_tokens = usage.prompt_tokens or 0, usage.completion_tokens or 0
    return Completion(
        text=choice.message.content or "",
        truncated=choice.finish_reason == "length",
        usage=Usage(
            llm_calls=1,
            prompt_tokens=prompt_tokens,
            completion_tokens=completion_tokens,
            cost_usd=cost_usd(litellm.model_cost, call.model.model, prompt_tokens, completion_tokens),
        ),
    )


def _classify(litellm: ModuleType, error: Any, model: str) -> ModelError:
    """Name a provider's failure by who must react. Order matters: the special cases are bad requests too."""
    said = f"{model}: {getattr(error, 'message', error)}"[:500]
    exceptions = litellm.exceptions
    if isinstance(error, exceptions.ContextWindowExceededError):
        return ContextOverflow(said)
    if isinstance(error, exceptions.ContentPolicyViolationError):
        return Refused(said)
    if isinstance(error, exceptions.RateLimitError) and "insufficient_quota" not in said:
        return RateLimited(said, retry_after=_retry_after(error))
    terminal = (
        exceptions.AuthenticationError,
        exceptions.PermissionDeniedError,
        exceptions.NotFoundError,
        exceptions.RateLimitError,
        exceptions.BadRequestError,
        exceptions.UnprocessableEntityError,
    )
    if isinstance(error, terminal):
        return ModelRejected(said, next_step="check the model's name, its key and the account's quota: fathom doctor")
    return ProviderFailed(said, retry_after=_retry_after(error))


def _retry_after(error: Any) -> float | None:
    headers = getattr(error, "litellm_response_headers", None) or getattr(
        getattr(error, "response", None), "headers", {}
    )
    value = headers.get("retry-after", "") if headers else ""
    return float(value) if value.replace(".", "", 1).isdigit() else None

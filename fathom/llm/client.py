"""Models over litellm: the `litellm` backend.

litellm speaks every provider's dialect; what it is not asked to do is retry, time out, cache or count: those are
decided here, in one place, because its own defaults multiply.

    complete   the role's model, then its fallbacks, each while the one before is not available
      fitted     half of the request, up to four times, while it does not fit the model's window
        patient    up to five attempts, 2, 4, 8 and 16 seconds or the provider's Retry-After apart
          once       a free slot, a service that does not rest, a deadline
"""

from __future__ import annotations

import asyncio
import json
import logging
import warnings
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from fathom.environment import Environment
from fathom.errors import (
    ContextOverflow,
    InvalidInput,
    MissingCredential,
    ModelTimeout,
    ModelUnavailable,
    ProviderFailed,
    Refused,
)
from fathom.llm.base import Completion, ModelCall
from fathom.llm.failures import classify
from fathom.llm.parsing import strict_schema
from fathom.llm.pricing import cost_usd
from fathom.llm.prompts import Message, messages
from fathom.llm.services import MAX_RETRY_AFTER, circuit_of, slots
from fathom.llm.shrinking import shrunk
from fathom.models import Usage
from fathom.progress import Event, publish
from fathom.roles import Text
from fathom.settings import EXTRACTIVE, ModelCallSettings, ResolvedSettings, StructuredOutput

if TYPE_CHECKING:
    from types import ModuleType

__all__ = ["LiteLLMBackend", "check_models"]

log = logging.getLogger(__name__)

RETRIES = 4
HALVINGS = 4
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
    models = {name for chosen in settings.models.values() for name in (chosen.model, *chosen.fallbacks)} - {EXTRACTIVE}
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
        calls: how patient it is.
    """

    def __init__(self, environment: Environment, calls: ModelCallSettings | None = None) -> None:
        self._environment = environment
        self._calls = calls or ModelCallSettings()

    async def complete(self, call: ModelCall) -> Completion:
        """Answer one request, by a fallback model where the role's own is not available.

        Raises:
            ModelError: the last failure; see `fathom.errors` for who must react.
        """
        # The extractive backend answers in the end anyway.
        fallbacks = [name for name in call.model.fallbacks if name != EXTRACTIVE]
        for model, following in zip([call.model.model, *fallbacks], [*fallbacks, None], strict=True):
            asked = replace(call, model=call.model.model_copy(update={"model": model, "fallbacks": []}))
            try:
                return await self._fitted(asked)
            except ModelUnavailable as error:
                if following is None:
                    raise
                _warn(f"{error}; the {call.spec.name} asks {following} instead")
        raise AssertionError("the last model answers or raises")

    async def _fitted(self, call: ModelCall) -> Completion:
        """Answer a request, halving it while it does not fit: the same prompt is never sent again."""
        for _ in range(HALVINGS):
            try:
                return await self._patient(call)
            except ContextOverflow as error:
                smaller = shrunk(call.request)
                if smaller is None:
                    raise
                _warn(f"{error}; the {call.spec.name} is shown half")
                call = replace(call, request=smaller)
        return await self._patient(call)

    async def _patient(self, call: ModelCall) -> Completion:
        """Answer a request, trying again where the failure may pass."""
        prompt = messages(call)
        waits = [self._calls.backoff_seconds * 2**n for n in range(RETRIES)]
        while True:
            try:
                return await self._once(call, prompt)
            except ModelUnavailable as error:
                if isinstance(error, ModelTimeout):  # what takes this long is tried once more only
                    del waits[1:]
                wait = max(waits.pop(0), error.retry_after or 0.0) if waits else None
                if wait is None or not error.retryable or wait > MAX_RETRY_AFTER:
                    raise
                _warn(f"{error}; the {call.spec.name} tries again in {wait:.0f} s")
                await asyncio.sleep(wait)

    async def _once(self, call: ModelCall, prompt: list[Message]) -> Completion:
        litellm = _litellm(self._environment)
        async with slots(self._calls.at_once), circuit_of(self._service(litellm, call.model.model)).attempt():
            response = await self._send(litellm, call, prompt)
            return _completion(litellm, response, call)

    def _service(self, litellm: ModuleType, model: str) -> str:
        """Return what fails together: a model at an address."""
        _name, provider, *_rest = litellm.get_llm_provider(model)
        variables = self._environment.variables
        address = variables.get(f"{provider.upper()}_BASE_URL") or variables.get(f"{provider.upper()}_API_BASE")
        return f"{model} at {address}" if address else model

    async def _send(self, litellm: ModuleType, call: ModelCall, prompt: list[Message]) -> Any:
        from openai import OpenAIError

        options = _structured(call, prompt)
        if call.model.temperature is not None:
            options["temperature"] = call.model.temperature
        seconds = self._calls.seconds
        try:
            async with asyncio.timeout(seconds):
                return await litellm.acompletion(
                    model=call.model.model,
                    max_tokens=call.model.max_tokens,
                    timeout=seconds,
                    max_retries=0,
                    num_retries=0,
                    drop_params=True,
                    **options,
                )
        except TimeoutError:
            raise ModelTimeout(f"{call.model.model} gave no answer in {seconds:g} s.") from None
        except OpenAIError as error:
            raise classify(litellm, error, call) from error


def _warn(message: str) -> None:
    log.warning(message)
    publish(Event("warning", message))


def _structured(call: ModelCall, prompt: list[Message]) -> dict[str, Any]:
    """Return the request's messages and, for a typed answer, how its schema is asked for."""
    if call.spec.answer is Text:
        return {"messages": prompt}
    schema = strict_schema(call.spec.schema(call.request) if call.spec.schema else call.spec.answer.model_json_schema())
    if call.model.structured_output is StructuredOutput.json_schema:
        wrapped = {"name": f"{call.spec.name}_answer", "schema": schema, "strict": True}
        return {"messages": prompt, "response_format": {"type": "json_schema", "json_schema": wrapped}}
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
    # litellm keeps OpenAI's `refusal` among what it does not know (1.105).
    refusal = (getattr(choice.message, "provider_specific_fields", None) or {}).get("refusal")
    if choice.finish_reason == "content_filter" or refusal:
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

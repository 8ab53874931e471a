"""Models of all other providers, over litellm, which speaks their dialects.

It is not asked to retry, time out, cache or count: its defaults for these multiply each other.
"""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from fathom.config.environment import Environment
from fathom.config.secrets import Scrubber
from fathom.errors import ContextOverflow, ModelError, ModelTimeout, Refused
from fathom.llm.base import ModelCall, Reply
from fathom.llm.failures import MAX_SAID, failure
from fathom.llm.limits import limited
from fathom.text.retry_after import retry_after

if TYPE_CHECKING:
    from types import ModuleType


def load_litellm(environment: Environment) -> ModuleType:
    """Import litellm, which takes seconds and 150 MB, on the first call that needs it."""
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


class LiteLLM:
    """Sends requests through litellm."""

    def __init__(self, environment: Environment, scrubber: Scrubber) -> None:
        self._environment = environment
        self._scrubber = scrubber

    def service(self, model: str) -> str:
        """Return what answers for a model, as a message names it."""
        provider, variables = model.partition("/")[0].upper(), self._environment.variables
        address = variables.get(f"{provider}_BASE_URL") or variables.get(f"{provider}_API_BASE")
        return f"{model} at {address}" if address else model

    async def send(self, call: ModelCall, options: Mapping[str, Any], seconds: float) -> Reply:
        """Send one request; see `fathom.llm.base.Transport`."""
        litellm = await asyncio.to_thread(load_litellm, self._environment)
        from openai import OpenAIError

        sampling = {} if call.model.temperature is None else {"temperature": call.model.temperature}
        try:
            with limited(litellm, call.model.model, options["max_tokens"]):
                response = await litellm.acompletion(
                    model=call.model.model,
                    timeout=seconds,
                    max_retries=0,
                    num_retries=0,
                    drop_params=True,
                    **options,
                    **sampling,
                )
        except OpenAIError as error:
            raise self._failure(litellm, error, call) from error
        return _reply(response)

    async def aclose(self) -> None:
        """Leave litellm's connections to litellm."""

    def _failure(self, litellm: ModuleType, error: Any, call: ModelCall) -> ModelError:
        """Return one of litellm's errors as one of ours. Order matters: the special cases are bad requests too."""
        said = self._scrubber.message(f"{call.model.model}: {getattr(error, 'message', error)}")[:MAX_SAID]
        exceptions = litellm.exceptions
        for kind, ours in (
            (exceptions.ContextWindowExceededError, ContextOverflow),
            (exceptions.ContentPolicyViolationError, Refused),
            (exceptions.Timeout, ModelTimeout),
        ):
            if isinstance(error, kind):
                return ours(said)
        # litellm takes missing credentials for an error of the server.
        status = 401 if "Missing credentials" in said else getattr(error, "status_code", 500)
        provider = litellm.get_llm_provider(call.model.model)[1]
        wait = retry_after(_headers(error), datetime.now(UTC))
        return failure(status, said, wait=wait, provider=provider, call=call)


def _headers(error: Any) -> Mapping[str, str]:
    response = getattr(error, "response", None)
    return getattr(error, "litellm_response_headers", None) or getattr(response, "headers", None) or {}


def _reply(response: Any) -> Reply:
    usage, first = getattr(response, "usage", None), response.choices[0] if response.choices else None
    # litellm keeps OpenAI's `refusal` among the fields that it does not know (1.105).
    refusal = first and (getattr(first.message, "provider_specific_fields", None) or {}).get("refusal")
    return Reply(
        text=None if first is None else first.message.content or "",
        refused=bool(refusal or (first and first.finish_reason == "content_filter")),
        truncated=bool(first and first.finish_reason == "length"),
        prompt_tokens=getattr(usage, "prompt_tokens", 0) or 0,
        completion_tokens=getattr(usage, "completion_tokens", 0) or 0,
    )

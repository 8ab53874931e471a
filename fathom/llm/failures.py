"""From what litellm raises to who must react, and what they can do."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from types import ModuleType
from typing import Any

from fathom.config.secrets import Scrubber
from fathom.errors import (
    ContextOverflow,
    ModelError,
    ModelRejected,
    ModelTimeout,
    ProviderFailed,
    RateLimited,
    Refused,
)
from fathom.llm.base import ModelCall
from fathom.text.retry_after import retry_after

MAX_SAID = 500  # characters of a provider's message that are kept


def classify(litellm: ModuleType, error: Any, call: ModelCall, scrubber: Scrubber) -> ModelError:
    """Name a provider's failure. Order matters: the special cases are bad requests too."""
    said = scrubber.message(f"{call.model.model}: {getattr(error, 'message', error)}")[:MAX_SAID]
    exceptions = litellm.exceptions
    if isinstance(error, exceptions.ContextWindowExceededError):
        return ContextOverflow(said)
    if isinstance(error, exceptions.ContentPolicyViolationError):
        return Refused(said)
    if isinstance(error, exceptions.Timeout):
        return ModelTimeout(said)
    wait = retry_after(_headers(error), datetime.now(UTC))
    if isinstance(error, exceptions.RateLimitError) and "insufficient_quota" not in said:
        return RateLimited(said, retry_after=wait)
    terminal = (
        exceptions.AuthenticationError,
        exceptions.PermissionDeniedError,
        exceptions.NotFoundError,
        exceptions.RateLimitError,
        exceptions.BadRequestError,
        exceptions.UnprocessableEntityError,
    )
    if isinstance(error, terminal) or "Missing credentials" in said:  # which litellm takes for a server's error
        return ModelRejected(said, next_step=_remedy(litellm, error, call))
    return ProviderFailed(said, retry_after=wait)


def _remedy(litellm: ModuleType, error: Any, call: ModelCall) -> str:
    """Name the setting that the user must mend."""
    exceptions = litellm.exceptions
    another = f"choose another model: --model, --role-model {call.spec.role.value}=MODEL or FATHOM_MODEL"
    if isinstance(error, exceptions.AuthenticationError | exceptions.PermissionDeniedError):
        provider = litellm.get_llm_provider(call.model.model)[1]
        return f"check {provider.upper()}_API_KEY, or how else {provider} knows you"
    if isinstance(error, exceptions.NotFoundError):
        return another
    if isinstance(error, exceptions.RateLimitError):
        return f"raise the account's quota, or {another}"
    return f"set the role's structured_output to json_object or prompt, or {another}"


def _headers(error: Any) -> Mapping[str, str]:
    response = getattr(error, "response", None)
    return getattr(error, "litellm_response_headers", None) or getattr(response, "headers", None) or {}

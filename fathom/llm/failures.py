"""What litellm raises, as the error that says who must react and how."""

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
    """Return a provider's failure as one of ours. Order matters: the special cases are bad requests too."""
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
    provider = litellm.get_llm_provider(call.model.model)[1]
    credentials = f"check {provider.upper()}_API_KEY, or the other credentials of {provider}"
    another = f"choose another model: --model, --role-model {call.spec.role.value}=MODEL or FATHOM_MODEL"
    remedies = (
        ((exceptions.AuthenticationError, exceptions.PermissionDeniedError), credentials),
        (exceptions.NotFoundError, another),
        (exceptions.RateLimitError, f"raise the account's quota, or {another}"),
        (
            (exceptions.BadRequestError, exceptions.UnprocessableEntityError),
            f"set the role's structured_output to json_object or prompt, or {another}",
        ),
    )
    # litellm takes missing credentials for an error of the server.
    otherwise = credentials if "Missing credentials" in said else ""
    remedy = next((remedy for kinds, remedy in remedies if isinstance(error, kinds)), otherwise)
    return ModelRejected(said, next_step=remedy) if remedy else ProviderFailed(said, retry_after=wait)


def _headers(error: Any) -> Mapping[str, str]:
    response = getattr(error, "response", None)
    return getattr(error, "litellm_response_headers", None) or getattr(response, "headers", None) or {}

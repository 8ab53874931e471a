"""What litellm raises, as the error that says who must react and how."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
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
    """Return which setting the user must correct."""
    exceptions = litellm.exceptions
    another = f"choose another model: --model, --role-model {call.spec.role.value}=MODEL or FATHOM_MODEL"
    if isinstance(error, exceptions.AuthenticationError | exceptions.PermissionDeniedError):
        provider = litellm.get_llm_provider(call.model.model)[1]
        return f"check {provider.upper()}_API_KEY, or the other credentials of {provider}"
    if isinstance(error, exceptions.NotFoundError):
        return another
    if isinstance(error, exceptions.RateLimitError):
        return f"raise the account's quota, or {another}"
    return f"set the role's structured_output to json_object or prompt, or {another}"


def _headers(error: Any) -> Mapping[str, str]:
    response = getattr(error, "response", None)
    return getattr(error, "litellm_response_headers", None) or getattr(response, "headers", None) or {}


def retry_after(headers: Mapping[str, str], now: datetime) -> float | None:
    """Return the seconds that a provider asks to wait: a number or an HTTP date (RFC 9110, 10.2.3); None: it does not.

    OpenAI and Azure give milliseconds too, in a header of their own, which is more exact.
    """
    milliseconds, value = headers.get("retry-after-ms", ""), headers.get("retry-after", "")
    try:
        return max(0.0, float(milliseconds) / 1_000 if milliseconds else float(value))
    except ValueError:
        pass
    try:
        until = parsedate_to_datetime(value)
    except ValueError:
        return None
    return max(0.0, (until.replace(tzinfo=until.tzinfo or UTC) - now).total_seconds())

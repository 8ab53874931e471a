"""What a provider refuses or fails to do, as the error that says who must react and how."""

from __future__ import annotations

from fathom.errors import ModelError, ModelRejected, ProviderFailed, RateLimited
from fathom.llm.base import ModelCall

MAX_SAID = 500  # characters of a provider's message that are kept


def failure(status: int, said: str, *, wait: float | None, provider: str, call: ModelCall) -> ModelError:
    """Return the error for an HTTP status; `said` is the provider's message, `wait` the seconds of its Retry-After."""
    said = said[:MAX_SAID]
    credentials = f"check {provider.upper()}_API_KEY, or the other credentials of {provider}"
    another = f"choose another model: --model, --role-model {call.spec.role.value}=MODEL or FATHOM_MODEL"
    if status == 429 and "insufficient_quota" not in said:
        return RateLimited(said, retry_after=wait)
    remedy = {
        400: f"set the role's structured_output to json_object or prompt, or {another}",
        401: credentials,
        403: credentials,
        404: another,
        422: f"set the role's structured_output to json_object or prompt, or {another}",
        429: f"raise the account's quota, or {another}",
    }.get(status)
    return ModelRejected(said, next_step=remedy) if remedy else ProviderFailed(said, retry_after=wait)

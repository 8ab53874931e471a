"""Calls to models that fail."""

from __future__ import annotations

from typing import ClassVar

from fathom.errors.base import FathomError


class ModelError(FathomError):
    """A model call failed. `unbilled`: the provider turned the request down before it cost anything."""

    unbilled: ClassVar[bool] = False

    code = "E2000"
    reaction = "the role answers without the model, and the run is degraded"


class BudgetExceeded(ModelError):
    """A request's worst case does not fit into what is left of the budget; it is not sent."""

    code = "E1001"
    reaction = (
        "the role answers without the model, research ends, and the report is written with what is there: degraded"
    )
    remedy = "raise `--max-usd`, `--max-tokens`, `--max-calls` or `--max-seconds`, and leave out `--run-key`"


class ModelUnavailable(ModelError):
    """The model cannot be asked now; another one could."""

    reaction = (
        "tried again 2, 4, 8 and 16 seconds later; then the role's fallback models, then without a model: degraded"
    )
    remedy = "set `fallback_models`, or research again later"


class ModelTimeout(ModelUnavailable):
    """The model gave no answer in time."""

    code = "E1003"
    retryable = True
    reaction = "tried again once; then the role's fallback models, then without a model: degraded"
    remedy = "raise `model_calls.seconds`, or set `fallback_models`"


class RateLimited(ModelUnavailable):
    """The provider asks for fewer requests (HTTP 429)."""

    unbilled = True
    code = "E2001"
    retryable = True
    reaction = (
        "all calls to the service wait as long as it asks for, up to a minute, five attempts in all; then the role's "
        "fallback models, then without a model: degraded"
    )
    remedy = "lower `model_calls.at_once`, or set `fallback_models`"


class ProviderFailed(ModelUnavailable):
    """The provider or the way to it failed: 5xx, connection, an answer that is none."""

    code = "E2004"
    retryable = True


class CircuitOpen(ModelUnavailable):
    """The service failed five times in a row and rests for 30 seconds, or asked for a longer pause."""

    unbilled = True
    code = "E2006"
    reaction = "no request is made; the role's fallback models, then without a model: degraded"


class ContextOverflow(ModelError):
    """The prompt is larger than the model's window."""

    unbilled = True
    code = "E2002"
    reaction = "the least relevant half of the material is left out, up to four times; then without the model: degraded"
    remedy = "lower `max_context_tokens` or `compression.max_input_tokens`, or choose a model with a larger window"


class Refused(ModelError):
    """The provider's safety filter blocked the request or the answer."""

    unbilled = True
    code = "E2003"
    remedy = "word the question differently, or choose another model for the role"


class ModelRejected(ModelError):
    """The provider will never accept this: wrong key, unknown model, no quota."""

    unbilled = True
    code = "E2005"
    reaction = "the run stops at once; it can be resumed, and repeats nothing that had finished"
    remedy = "mend the key, name or quota that the message names, then `fathom resume RUN`"


class AnswerInvalid(ModelError):
    """The model's answer is not what was asked for, also after the one re-ask."""

    code = "E4004"
    reaction = "asked again once, with what was wrong; then the role answers without the model: degraded"
    remedy = "choose another model for the role, or another `structured_output`"

"""Models over litellm: the `litellm` backend.

litellm speaks every provider's dialect. It is not asked to retry, time out, cache or count: its defaults for these
multiply each other, so they are decided here, in one place.

    complete   the role's model, then each of its fallbacks while the one before is unavailable
      fitted     half of the request, up to four times, while it does not fit the model's window
        patient    up to five attempts, 2, 4, 8 and 16 seconds or the provider's Retry-After apart
          once       a service that does not rest, a free slot, a reservation in the ledger, a deadline
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from decimal import Decimal
from functools import partial
from typing import TYPE_CHECKING, Any

from fathom.budget.ledger import LEAST_SECONDS, Cost, Ledger
from fathom.budget.prices import Pricing, Rates
from fathom.config.caps import Price
from fathom.config.environment import Environment
from fathom.config.models import EXTRACTIVE, ModelCallSettings, Role, RoleModel
from fathom.config.secrets import Scrubber
from fathom.errors import (
    AnswerTooLarge,
    BudgetExceeded,
    CircuitOpen,
    ContextOverflow,
    ModelError,
    ModelTimeout,
    ModelUnavailable,
    ProviderFailed,
    Refused,
)
from fathom.llm.base import Completion, ModelCall
from fathom.llm.failures import classify
from fathom.llm.limits import limited
from fathom.llm.model_checks import load_litellm
from fathom.llm.prompts import Message, messages, request_options
from fathom.llm.services import MAX_WAIT, circuit_of, pace_of, slots
from fathom.llm.shrinking import shrunk
from fathom.models import Usage
from fathom.telemetry.progress import Event, publish

if TYPE_CHECKING:
    from types import ModuleType

log = logging.getLogger(__name__)

RETRIES = 4
HALVINGS = 4
OVERHEAD_TOKENS = 1_024  # that providers put around messages and schema, which have at most one token per byte
LEAST_ANSWER_TOKENS = 1_024  # with less room an answer would be cut off, and paid for in vain


class LiteLLMBackend:
    """Asks models over HTTP, each request reserved in the run's ledger."""

    def __init__(
        self,
        environment: Environment,
        ledger: Ledger,
        calls: ModelCallSettings | None = None,
        prices: Mapping[str, Price] | None = None,
    ) -> None:
        self._environment = environment
        self._scrubber = Scrubber(environment.secrets)
        self._ledger = ledger
        self._calls = calls or ModelCallSettings()
        self._prices = prices or {}

    async def complete(self, call: ModelCall) -> Completion:
        """Answer one request, by a fallback model where the role's own is unavailable.

        Raises:
            ModelError: the last failure; see `fathom.errors` for who must react.
        """
        # The extractive backend answers in the end anyway.
        models = [call.model.model, *(name for name in call.model.fallbacks if name != EXTRACTIVE)]
        for n, model in enumerate(models, 1):
            asked = replace(call, model=call.model.model_copy(update={"model": model, "fallbacks": models[n:]}))
            try:
                return await self._fitted(asked)
            except BudgetExceeded:
                self._ledger.exhausted |= _is_research(call)
                raise
            except ModelUnavailable as error:
                if not asked.model.fallbacks:
                    raise
                _warn(f"{error}; the {call.spec.name} tries {models[n]} instead")
        raise AssertionError("the last model answers or raises")

    async def _fitted(self, call: ModelCall) -> Completion:
        """Answer a request, halving it while it does not fit the model's window or the budget."""
        for _ in range(HALVINGS):
            try:
                return await self._patient(call)
            except (ContextOverflow, BudgetExceeded) as error:
                smaller = shrunk(call.request)
                if smaller is None:
                    raise
                if isinstance(error, ContextOverflow):
                    _warn(f"{error}; the {call.spec.name} gets half of the material")
                call = replace(call, request=smaller)
        return await self._patient(call)

    async def _patient(self, call: ModelCall) -> Completion:
        """Answer a request, trying again where the failure may pass."""
        prompt = messages(call)
        waits = [self._calls.backoff_seconds * 2**n for n in range(RETRIES)]
        while True:
            try:
                return self._scrubber.model(await self._once(call, prompt))
            except ModelUnavailable as error:
                if isinstance(error, ModelTimeout | AnswerTooLarge):  # what takes this much is tried once more only
                    del waits[1:]
                wait = max(waits.pop(0), error.retry_after or 0.0) if waits else None
                if wait is None or not error.retryable or wait > min(MAX_WAIT, self._seconds_left(call)):
                    raise
                _warn(f"{error}; the {call.spec.name} tries again in {wait:.0f} s")
                await asyncio.sleep(wait)

    async def _once(self, call: ModelCall, prompt: list[Message]) -> Completion:
        litellm = load_litellm(self._environment)
        service, options = self._service(litellm, call.model.model), request_options(call, prompt)
        request, circuit = json.dumps(options, ensure_ascii=False), circuit_of(service)
        rests = 0 if call.model.fallbacks else max(circuit.rests, 1)  # another model is better than a wait
        while True:
            await circuit.ready(hash(request), rests, self._seconds_left(call) - LEAST_SECONDS)
            with suppress(CircuitOpen):  # the service began to rest while the request waited for a slot
                return await self._in_slot(litellm, call, service, options, request)

    async def _in_slot(
        self, litellm: ModuleType, call: ModelCall, service: str, options: dict[str, Any], request: str
    ) -> Completion:
        pricing = Pricing(litellm, self._prices)
        most_sent = len(request.encode()) + OVERHEAD_TOKENS
        worst = partial(_worst_case, call.model, most_sent, pricing.highest(call.model.model) or Rates())
        async with slots(self._calls.at_once), self._ledger.attempt(worst, research=_is_research(call)) as attempt:
            with circuit_of(service).attempt(hash(request)):
                await pace_of(service).turn(self._calls.per_minute)
                options["max_tokens"] = attempt.cost.tokens - most_sent
                seconds = min(self._calls.seconds, self._seconds_left(call))
                if seconds < LEAST_SECONDS:  # it waited for its turn too long
                    raise BudgetExceeded("The time of the budget is up.", next_step="raise --max-seconds")
                began = time.monotonic()
                try:
                    response = await self._send(litellm, call, options, seconds)
                except ModelError as error:
                    if error.unbilled:
                        attempt.took(Cost(calls=1))
                    raise
                usage = _usage(response, call.model.model, pricing, time.monotonic() - began)
                if usage.prompt_tokens and (usage.completion_tokens or not _text(response)):  # else all of it counts
                    tokens = usage.prompt_tokens + usage.completion_tokens
                    attempt.took(Cost(Decimal(str(usage.cost_usd or 0)), tokens, 1))
                return _completion(response, call, usage)

    def _seconds_left(self, call: ModelCall) -> float:
        return self._ledger.seconds_left(research=_is_research(call))

    def _service(self, litellm: ModuleType, model: str) -> str:
        _name, provider, *_rest = litellm.get_llm_provider(model)
        variables = self._environment.variables
        address = variables.get(f"{provider.upper()}_BASE_URL") or variables.get(f"{provider.upper()}_API_BASE")
        return f"{model} at {address}" if address else model

    async def _send(self, litellm: ModuleType, call: ModelCall, options: dict[str, Any], seconds: float) -> Any:
        from openai import OpenAIError

        if call.model.temperature is not None:
            options["temperature"] = call.model.temperature
        try:
            async with asyncio.timeout(seconds):
                with limited(litellm, call.model.model, options["max_tokens"]):
                    return await litellm.acompletion(
                        model=call.model.model,
                        timeout=seconds,
                        max_retries=0,
                        num_retries=0,
                        drop_params=True,
                        **options,
                    )
        except TimeoutError:
            raise ModelTimeout(f"{call.model.model} did not answer within {seconds:g} s.") from None
        except OpenAIError as error:
            raise classify(litellm, error, call, self._scrubber) from error


def _is_research(call: ModelCall) -> bool:
    return call.spec.role is not Role.reporter


def _worst_case(model: RoleModel, sent: int, rates: Rates, left: Cost) -> Cost | None:
    """Return the most a request can cost, with its answer limited to what is left; None when too little is left."""
    affordable = (left.usd - rates.of(sent, 0)) / rates.received if rates.received else Decimal(model.max_tokens)
    received = int(min(Decimal(model.max_tokens), Decimal(left.tokens - sent), affordable))
    if received < min(LEAST_ANSWER_TOKENS, model.max_tokens):
        return None
    return Cost(rates.of(sent, received), sent + received, 1)


def _warn(message: str) -> None:
    log.warning(message)
    publish(Event("warning", message))


def _text(response: Any) -> str:
    """Return the text of an answer; empty for a refusal."""
    return "".join(choice.message.content or "" for choice in response.choices or [])


def _usage(response: Any, model: str, pricing: Pricing, seconds: float) -> Usage:
    """Return what an answer cost; zero tokens where the provider does not say."""
    reported = getattr(response, "usage", None)
    sent, received = getattr(reported, "prompt_tokens", 0) or 0, getattr(reported, "completion_tokens", 0) or 0
    cost = pricing.cost(model, sent, received)
    return Usage(
        llm_calls=1,
        prompt_tokens=sent,
        completion_tokens=received,
        cost_usd=None if cost is None else float(cost),
        seconds=round(seconds, 3),
    )


def _completion(response: Any, call: ModelCall, usage: Usage) -> Completion:
    """Return the answer of a successful response; no choices and refusals are failures."""
    if not response.choices:
        raise ProviderFailed(f"{call.model.model} sent an answer without choices.")
    choice = response.choices[0]
    # litellm keeps OpenAI's `refusal` among the fields that it does not know (1.105).
    refusal = (getattr(choice.message, "provider_specific_fields", None) or {}).get("refusal")
    if choice.finish_reason == "content_filter" or refusal:
        raise Refused(f"{call.model.model} declined to answer the {call.spec.name}.")
    truncated = choice.finish_reason == "length"
    return Completion(text=choice.message.content or "", model=call.model.model, truncated=truncated, usage=usage)

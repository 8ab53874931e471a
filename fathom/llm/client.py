"""Models over HTTP: what is tried again, how long, by which model, and at what cost is decided here, in one place.

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
from typing import Any

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
from fathom.llm.base import Completion, ModelCall, Reply, Transport
from fathom.llm.openai_chat import OpenAIChat, speaks_openai_chat
from fathom.llm.over_litellm import LiteLLM
from fathom.llm.prompts import Message, messages, request_options
from fathom.llm.services import MAX_WAIT, circuit_of, pace_of, slots
from fathom.llm.shrinking import shrunk
from fathom.models import Usage
from fathom.telemetry.progress import Event, publish

log = logging.getLogger(__name__)

RETRIES = 4
HALVINGS = 4
OVERHEAD_TOKENS = 1_024  # that providers put around messages and schema, which have at most one token per byte
LEAST_ANSWER_TOKENS = 1_024  # with less room an answer would be cut off, and paid for in vain


class ModelBackend:
    """Asks models over HTTP, each request reserved in the run's ledger."""

    def __init__(
        self,
        environment: Environment,
        ledger: Ledger,
        calls: ModelCallSettings | None = None,
        prices: Mapping[str, Price] | None = None,
    ) -> None:
        self._scrubber = Scrubber(environment.secrets)
        self._openai_chat: Transport = OpenAIChat(environment, self._scrubber)
        self._litellm: Transport = LiteLLM(environment, self._scrubber)
        self._ledger = ledger
        self._calls = calls or ModelCallSettings()
        self._pricing = Pricing(prices or {})

    async def aclose(self) -> None:
        """Close the connections to providers."""
        await self._openai_chat.aclose()
        await self._litellm.aclose()

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
        transport, options = self._transport(call.model.model), request_options(call, prompt)
        circuit = circuit_of(transport.service(call.model.model))
        request = json.dumps(options, ensure_ascii=False)
        rests = 0 if call.model.fallbacks else max(circuit.rests, 1)  # another model is better than a wait
        while True:
            await circuit.ready(hash(request), rests, self._seconds_left(call) - LEAST_SECONDS)
            with suppress(CircuitOpen):  # the service began to rest while the request waited for a slot
                return await self._in_slot(transport, call, options, request)

    async def _in_slot(
        self, transport: Transport, call: ModelCall, options: dict[str, Any], request: str
    ) -> Completion:
        model, service = call.model.model, transport.service(call.model.model)
        most_sent = len(request.encode()) + OVERHEAD_TOKENS
        worst = partial(_worst_case, call.model, most_sent, self._pricing.highest(model) or Rates())
        async with slots(self._calls.at_once), self._ledger.attempt(worst, research=_is_research(call)) as attempt:
            with circuit_of(service).attempt(hash(request)):
                await pace_of(service).turn(self._calls.per_minute)
                seconds = min(self._calls.seconds, self._seconds_left(call))
                if seconds < LEAST_SECONDS:  # it waited for its turn too long
                    raise BudgetExceeded("The time of the budget is up.", next_step="raise --max-seconds")
                began = time.monotonic()
                try:
                    async with asyncio.timeout(seconds):
                        reply = await transport.send(
                            call, {**options, "max_tokens": attempt.cost.tokens - most_sent}, seconds
                        )
                except TimeoutError:
                    raise ModelTimeout(f"{model} did not answer within {seconds:g} s.") from None
                except ModelError as error:
                    if error.unbilled:
                        attempt.took(Cost(calls=1))
                    raise
                usage = self._usage(model, reply, time.monotonic() - began)
                if reply.prompt_tokens and (reply.completion_tokens or not reply.text):  # else all of it counts
                    tokens = reply.prompt_tokens + reply.completion_tokens
                    attempt.took(Cost(Decimal(str(usage.cost_usd or 0)), tokens, 1))
                return _completion(reply, call, usage)

    def _transport(self, model: str) -> Transport:
        return self._openai_chat if speaks_openai_chat(model) else self._litellm

    def _usage(self, model: str, reply: Reply, seconds: float) -> Usage:
        """Return what an answer cost; zero tokens where the provider does not say."""
        cost = self._pricing.cost(model, reply.prompt_tokens, reply.completion_tokens)
        return Usage(
            llm_calls=1,
            prompt_tokens=reply.prompt_tokens,
            completion_tokens=reply.completion_tokens,
            cost_usd=None if cost is None else float(cost),
            seconds=round(seconds, 3),
        )

    def _seconds_left(self, call: ModelCall) -> float:
        return self._ledger.seconds_left(research=_is_research(call))


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


def _completion(reply: Reply, call: ModelCall, usage: Usage) -> Completion:
    """Return the answer of a successful request; one without content and a refusal are failures."""
    if reply.text is None:
        raise ProviderFailed(f"{call.model.model} sent an answer without choices.")
    if reply.refused:
        raise Refused(f"{call.model.model} declined to answer the {call.spec.name}.")
    return Completion(text=reply.text, model=call.model.model, truncated=reply.truncated, usage=usage)

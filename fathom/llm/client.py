"""Models over HTTP: retries, time limits, the choice of the model and the cost are decided here, in one place.

complete   the role's model, then each of its fallbacks while the one before is unavailable
  fitted     as much of the material as the window holds; half of it, up to four times, while the model refuses more
    patient    up to five attempts, 2, 4, 8 and 16 seconds or the provider's Retry-After apart; two where no server
               answers and none has in this run; one in another form each time that the provider refuses the form
      once       a service that does not rest, a free slot, a reservation in the ledger, an end to silence
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import Mapping
from contextlib import AsyncExitStack, suppress
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from functools import partial
from math import isinf
from typing import Any

from fathom.budget.ledger import LEAST_SECONDS, Cost, Ledger
from fathom.budget.prices import Pricing, Rates, provider_and_name
from fathom.config.environment import Environment
from fathom.config.groups import EXTRACTIVE, AccessScope, ModelCallSettings, Price, Role, RoleModel
from fathom.config.secrets import Scrubber
from fathom.errors import (
    AnswerTooLarge,
    BudgetExceeded,
    CircuitOpen,
    ContextOverflow,
    InvalidInput,
    ModelError,
    ModelTimeout,
    ModelUnavailable,
    ModelUnreachable,
    ProviderFailed,
    Refused,
    RequestRejected,
)
from fathom.llm.base import Completion, CutOff, ModelCall, ModelReply, Transport
from fathom.llm.dialects import Dialect, dialect_of
from fathom.llm.listening import listen, telling
from fathom.llm.openai_chat import OpenAIChat, speaks_openai_chat
from fathom.llm.over_litellm import LiteLLM
from fathom.llm.prompts import REPETITIONS, request_options, sent_messages, varies
from fathom.llm.services import MAX_WAIT, circuit_of, pulse_of, slots, spacing_of
from fathom.llm.windows import Learnt, shrunk, table_answer
from fathom.models import Usage
from fathom.network import check_sending, is_local, through, turn
from fathom.telemetry.logs import Warnings
from fathom.telemetry.tracing import describe_reply, request_span

log = logging.getLogger(__name__)

REFUSALS = (400, 422, 500)  # statuses with which servers refuse the form of a request
HALVINGS = 4
OVERHEAD_TOKENS = 1_024  # that providers put around messages and schema, which have at most one token per byte
LEAST_ANSWER_TOKENS = 1_024  # with less room an answer would be cut off, and paid for in vain


def check_local(model: str, address: str) -> None:
    """Check that a model is asked at an address on this machine or its private network.

    Raises:
        InvalidInput: it is not.
    """
    if not is_local(address):
        where = f"{address}{through(address)}" if address else "an address of its provider"
        message = f"The scope private keeps everything on this machine, and the model {model} is asked at {where}."
        local = "a local one (ollama/..., openai/... with OPENAI_BASE_URL; its host in NO_PROXY if there is a proxy)"
        how = f"choose {local} or none, or another --scope"
        raise InvalidInput(message, next_step=how)


class ModelBackend:
    """Asks models over HTTP, each request reserved in the run's ledger."""

    def __init__(
        self,
        environment: Environment,
        ledger: Ledger,
        calls: ModelCallSettings | None = None,
        prices: Mapping[str, Price] | None = None,
        warnings: Warnings | None = None,
        *,
        scope: AccessScope | None = None,
    ) -> None:
        self._scope = scope
        self._scrubber = Scrubber(environment.secrets)
        self._openai_chat: Transport = OpenAIChat(environment, self._scrubber)
        self._litellm: Transport = LiteLLM(environment, self._scrubber)
        self._ledger = ledger
        self._calls = calls or ModelCallSettings()
        self._pricing = Pricing(prices or {})
        self._warnings = warnings or Warnings()
        self._models: dict[tuple[object, ...], Learnt] = {}
        self._learning = asyncio.Lock()
        self._reached = set[str]()  # providers that have answered a request

    async def aclose(self) -> None:
        """Close the connections to providers."""
        await self._openai_chat.aclose()
        await self._litellm.aclose()

    async def complete(self, call: ModelCall) -> Completion:
        """Answer one request, by a fallback model if the role's own is unavailable.

        Raises:
            ModelError: the last failure; see `fathom.errors` for who must react.
        """
        # The extractive backend answers in the end anyway.
        models = [call.model.model, *(name for name in call.model.fallbacks if name != EXTRACTIVE)]
        failure: ModelUnavailable | None = None
        for n, model in enumerate(models, 1):
            asked = replace(call, model=call.model.model_copy(update={"model": model, "fallbacks": models[n:]}))
            try:
                return await self._fitted(asked)
            except BudgetExceeded:
                self._ledger.exhausted |= _is_research(call)
                raise
            except ModelUnavailable as error:
                if not isinstance(error, ModelUnreachable) or failure is None:  # a server that is there may recover
                    failure = error
                if asked.model.fallbacks:
                    self._warn(f"{error}; the {call.spec.name} tries {models[n]} instead", error, asked, models[n])
        assert failure, "the last model answers or fails"
        raise failure

    async def _fitted(self, call: ModelCall) -> Completion:
        """Answer a request with less of its material while it does not fit the model's window or the budget."""
        learnt, whole = await self.learnt(call.model), call
        for halvings_left in reversed(range(HALVINGS + 1)):
            fitting = await asyncio.to_thread(learnt.fit, call)
            if fitting is not call:
                said = f"{call.model.model} holds {learnt.window:,} tokens: it is shown a part of the material"
                self._warnings.warn(log, said, call.model.model, "window")
            try:
                completion = await self._patient(fitting, learnt)
                if fitting is whole and not call.invalid:
                    return completion
                return completion.model_copy(update={"prompt": sent_messages(fitting, learnt.dialect)})
            except (ContextOverflow, BudgetExceeded) as error:
                if isinstance(error, ContextOverflow) and halvings_left:
                    asked = learnt.asks(fitting)
                    learnt.holds(error.window)
                    if learnt.asks(learnt.fit(call)) != asked:  # less material, or less room for the answer
                        self._warn(f"{error}; the {call.spec.name} is asked within its window", error, call)
                        continue
                smaller = shrunk(fitting.request)
                if smaller is None or not halvings_left:
                    raise
                if isinstance(error, ContextOverflow):
                    self._warn(f"{error}; the {call.spec.name} gets half of the material", error, call)
                call = replace(fitting, request=smaller)
        raise AssertionError("the last one answers or raises")

    async def window(self, model: RoleModel) -> int | None:
        """Return the window of a model: from the settings, its server, litellm's table, or a later refusal."""
        return (await self.learnt(model)).window

    async def learnt(self, model: RoleModel) -> Learnt:
        """Return what is known of a model; its server is asked for its window once."""
        async with self._learning:
            key = model.model, model.window, model.structured_output
            if key not in self._models:
                transport = self._transport(model.model)
                dialect = dialect_of(model.model, own_server=transport.own_server(model.model))
                if model.structured_output:
                    dialect = replace(dialect, structured=model.structured_output)
                window = model.window or await transport.window(model.model)
                if dialect.num_ctx:
                    window = model.window or min(dialect.num_ctx, window or dialect.num_ctx)
                    dialect = replace(dialect, num_ctx=window)
                self._models[key] = Learnt(dialect, window, table_answer(model.model))
            return self._models[key]

    async def _patient(self, call: ModelCall, learnt: Learnt) -> Completion:
        """Answer a request; try again if the failure may be temporary, and in another form if the form is refused."""
        waits = [self._calls.backoff_seconds * 2**n for n in range(self._calls.retries)]
        repeated = 0
        while True:
            dialect = learnt.dialect
            try:
                completion = await self._once(call, learnt, dialect, repeated)
                again = repeated + 1 < REPETITIONS and varies(call, dialect, repeated)
                if completion.cut_off is not CutOff.repetition or not again:
                    return self._scrubber.model(completion)
                repeated += 1
                said = f"{completion.model} repeated itself; it is asked with another temperature or a penalty"
                self._warnings.warn(log, said, completion.model, "repetition")
            except (ModelUnavailable, RequestRejected) as error:
                refusal = error.message.removeprefix(f"{call.model.model}: ")
                if error.status in REFUSALS and learnt.concede(dialect, refusal):
                    self._warnings.warn(log, f"{error.message}: asked in another form", error.message)
                    continue
                if isinstance(error, RequestRejected):
                    raise
                if isinstance(error, ModelTimeout | AnswerTooLarge | ModelUnreachable):  # only one more try
                    del waits[1:]
                if isinstance(error, ModelUnreachable) and call.model.fallbacks:  # another model is better than a wait
                    raise
                wait = max(waits.pop(0), error.retry_after or 0.0) if waits else None
                if wait is None or not error.retryable or wait > min(MAX_WAIT, self._seconds_left(call)):
                    raise
                self._warn(f"{error}; the {call.spec.name} tries again in {wait:.0f} s", error, call)
                await asyncio.sleep(wait)

    async def _once(self, call: ModelCall, learnt: Learnt, dialect: Dialect, repeated: int) -> Completion:
        transport, options = self._transport(call.model.model), request_options(call, dialect, repeated)
        circuit = circuit_of(transport.service(call.model.model))
        request = json.dumps(options, ensure_ascii=False)
        rests = 0 if call.model.fallbacks else max(circuit.rests, 1)  # another model is better than a wait
        while True:
            await circuit.ready(hash(request), rests, self._seconds_left(call) - LEAST_SECONDS)
            with suppress(CircuitOpen):  # the service began to rest while the request waited for a slot
                return await self._in_slot(call, learnt, dialect, options, request)

    async def _in_slot(
        self, call: ModelCall, learnt: Learnt, dialect: Dialect, options: dict[str, Any], request: str
    ) -> Completion:
        model, transport = call.model.model, self._transport(call.model.model)
        service, (provider, name) = transport.service(model), provider_and_name(model)
        most_sent = len(request.encode()) + OVERHEAD_TOKENS
        most_received = learnt.answer_tokens(call.model, options)
        worst = partial(_worst_case, most_received, most_sent, self._pricing.highest(model) or Rates())
        async with (
            slots(self._calls.at_once),
            self._ledger.attempt(worst, research=_is_research(call)) as attempt,
            AsyncExitStack() as held,
        ):
            with circuit_of(service).attempt(hash(request)):
                await spacing_of(service).turn(self._calls.per_minute)
                left = await self._turn(call, held)
                await self._ledger.store.confirm()  # the wait for its turn may have been long
                began, most = time.monotonic(), attempt.cost.tokens - most_sent
                silence, pulse = self._calls.seconds, pulse_of(service)
                try:
                    with request_span(provider, name, call.spec.role, options, most) as request_sent:
                        pieces = transport.send(model, dialect, options, most)
                        if call.spec.draft:
                            pieces = telling(pieces, call, self._scrubber)
                        reply = await listen(pieces, model, silence=silence, left=left, most=most, pulse=pulse)
                        usage = self._usage(model, reply, time.monotonic() - began)
                        describe_reply(
                            request_sent, reply.model, reply.finish, usage, reply.pace.wait if reply.pace else None
                        )
                except ModelError as error:
                    if error.unbilled:
                        attempt.took(Cost(calls=1))
                    if isinstance(error, ModelUnreachable) and provider in self._reached:  # it may come back
                        raise ProviderFailed(error.message, next_step=error.next_step) from error
                    raise
                self._reached.add(provider)
                if reply.thought:
                    learnt.thinks()
                if reply.prompt_tokens and (reply.completion_tokens or not reply.text):  # else all of it counts
                    tokens = reply.prompt_tokens + reply.completion_tokens
                    attempt.took(Cost(Decimal(str(usage.cost_usd or 0)), tokens, 1))
                return _completion(reply, call, usage)

    async def _turn(self, call: ModelCall, held: AsyncExitStack) -> float:
        """Wait for the turn of a request at its provider, and return how long the request may take."""
        provider, _name = provider_and_name(call.model.model)
        left = self._seconds_left(call)
        try:
            async with asyncio.timeout(None if isinf(left) else max(0.0, left - LEAST_SECONDS)):
                await held.enter_async_context(turn(provider))
        except TimeoutError:
            left = 0.0
        else:
            left = self._seconds_left(call)
        if left < LEAST_SECONDS:
            raise BudgetExceeded("The time of the budget is up.", next_step="raise --max-seconds")
        return left

    def _transport(self, model: str) -> Transport:
        transport = self._openai_chat if speaks_openai_chat(model) else self._litellm
        if self._scope is AccessScope.private:
            check_local(model, transport.address(model))
        check_sending("models", transport.address(model))
        return transport

    def _usage(self, model: str, reply: ModelReply, seconds: float) -> Usage:
        """Return the cost of an answer; zero tokens if the provider does not state them."""
        cached, written = reply.cached_tokens, reply.cache_write_tokens
        cost = self._pricing.cost(model, reply.prompt_tokens, reply.completion_tokens, cached, written)
        return Usage(
            llm_calls=1,
            prompt_tokens=reply.prompt_tokens,
            cached_tokens=cached,
            cache_write_tokens=written,
            completion_tokens=reply.completion_tokens,
            cost_usd=None if cost is None else float(cost),
            seconds=round(seconds, 3),
        )

    def _warn(self, message: str, error: ModelError, call: ModelCall, *more: str) -> None:
        self._warnings.warn(log, message, error.code, call.model.model, *more)

    def _seconds_left(self, call: ModelCall) -> float:
        return self._ledger.seconds_left(research=_is_research(call))


def _is_research(call: ModelCall) -> bool:
    return call.spec.role is not Role.reporter


def _worst_case(most: int, sent: int, rates: Rates, left: Cost) -> Cost | None:
    """Return the most a request can cost, with its answer limited to what is left; None when too little is left."""
    affordable = (left.usd - rates.of(sent, 0)) / rates.received if rates.received else Decimal(most)
    received = int(min(Decimal(most), Decimal(left.tokens - sent), affordable))
    if received < min(LEAST_ANSWER_TOKENS, most):
        return None
    return Cost(rates.of(sent, received), sent + received, 1)


def _completion(reply: ModelReply, call: ModelCall, usage: Usage) -> Completion:
    """Return the answer of a successful request; one without content and a refusal are failures."""
    if reply.text is None:
        raise ProviderFailed(f"{call.model.model} sent an answer without choices.")
    if reply.refused:
        raise Refused(f"{call.model.model} declined to answer the {call.spec.name}.")
    return Completion(
        text=reply.text,
        model=call.model.model,
        cut_off=reply.cut_off,
        pace=reply.pace,
        usage=usage,
        at=datetime.now(UTC).isoformat(timespec="milliseconds"),
    )

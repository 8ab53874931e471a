"""Models of all other providers, over litellm, which speaks their dialects.

Its retries, time-outs, cache and counting are turned off: their defaults multiply each other.
"""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from fathom.config.environment import Environment
from fathom.config.secrets import Scrubber
from fathom.errors import ModelError, ModelTimeout, ProviderFailed, Refused
from fathom.llm.base import StreamedPiece
from fathom.llm.dialects import LOCAL, OLLAMA, Dialect
from fathom.llm.responses import failure, limited, said, unreachable
from fathom.llm.windows import ollama_window, overflow, served_window, table_window
from fathom.network import retry_after, tls, user_agent

if TYPE_CHECKING:
    from types import ModuleType

OLLAMA_ADDRESS = "http://localhost:11434"
_NO_END = 1e9  # seconds; whoever listens knows how long
# litellm takes missing credentials for an error of the server, and an error that Ollama streams for one of the request.
_MISTAKEN = (("Missing credentials", 401), ("unexpected response from Ollama", 500))


def load_litellm(environment: Environment) -> Any:
    """Import litellm, which takes seconds and 150 MB, on the first call that needs it."""
    environment.quieten_litellm()
    # litellm makes pydantic warn about itself, at import, at the first call, and at each piece of a stream.
    for said_by_pydantic in (
        r"Item .* on TypedDict class .* is using the `ReadOnly`",
        r"Accessing the 'model_\w+' attr",
    ):
        warnings.filterwarnings("ignore", message=said_by_pydantic)
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
        self._registered = set[str]()

    def service(self, model: str) -> str:
        """Return what answers for a model, as a message names it."""
        address = self._address(model)
        return f"{model} at {address}" if address else model

    def address(self, model: str) -> str:
        """Return the address at which a model is asked; empty if only litellm knows it."""
        return self._address(model) or (OLLAMA_ADDRESS if model.partition("/")[0] in OLLAMA else "")

    def own_server(self, model: str) -> bool:
        """Return whether a model is asked at an address of the user's own."""
        return model.partition("/")[0] in LOCAL

    async def window(self, model: str) -> int | None:
        """Return the model's window; see `fathom.llm.base.Transport`."""
        import httpx

        provider, _slash, name = model.partition("/")
        address = self.address(model)
        if provider not in LOCAL or not address:
            return table_window(model)
        key = self._environment.variables.get(f"{provider.upper()}_API_KEY", "").strip()
        usable = {"Authorization": f"Bearer {key}"} if key and key.isascii() else {}
        headers = {"User-Agent": user_agent(), **usable}
        try:
            async with httpx.AsyncClient(base_url=f"{address.rstrip('/')}/", headers=headers, verify=tls()) as http:
                served = await (ollama_window if provider in OLLAMA else served_window)(http, name)
        except httpx.InvalidURL:  # the request itself will say so
            served = None
        return served or table_window(model)

    async def send(
        self, model: str, dialect: Dialect, options: Mapping[str, Any], most: int
    ) -> AsyncGenerator[StreamedPiece, None]:
        """Send one request; see `fathom.llm.base.Transport`."""
        litellm = await asyncio.to_thread(load_litellm, self._environment)
        from openai import OpenAIError

        extra: dict[str, Any] = {"num_ctx": dialect.num_ctx} if dialect.num_ctx else {}
        if model.partition("/")[0] in OLLAMA and model not in self._registered:
            # Else it asks Ollama about the model in every call, while the event loop waits.
            self._registered.add(model)
            free = {"input_cost_per_token": 0.0, "output_cost_per_token": 0.0}
            litellm.register_model({model: {**free, "litellm_provider": model.partition("/")[0], "mode": "chat"}})
        if dialect.stream_usage:
            extra["stream_options"] = {"include_usage": True}
        try:
            with limited(litellm, model, most):
                stream = await litellm.acompletion(
                    model=model,
                    timeout=_NO_END,
                    max_retries=0,
                    num_retries=0,
                    drop_params=True,
                    stream=True,
                    **{**options, **extra, dialect.limit: most},
                )
                async with aclosing(stream):  # a server goes on writing for whoever stays connected
                    async for chunk in stream:
                        yield _piece(chunk)
        except OpenAIError as error:
            raise self._failure(litellm, error, model) from error
        if stream.received_finish_reason is None:  # it makes one up
            raise ProviderFailed(f"{model}: the answer broke off.")
        yield _usage(stream.chunks)

    async def aclose(self) -> None:
        """Leave litellm's connections to litellm."""

    def _setting(self, model: str) -> str:
        """Return the variable that holds the address of a model's server; empty if that is the provider's own."""
        provider = model.partition("/")[0]
        if provider in OLLAMA:
            return "OLLAMA_API_BASE"
        names = f"{provider.upper()}_BASE_URL", f"{provider.upper()}_API_BASE"
        chosen = next((name for name in names if self._environment.variables.get(name)), "")
        return chosen or (names[1] if provider in LOCAL else "")

    def _address(self, model: str) -> str:
        return self._environment.variables.get(self._setting(model), "")

    def _failure(self, litellm: ModuleType, error: Any, model: str) -> ModelError:
        """Return one of litellm's errors as one of ours. Order matters: the special cases are bad requests too."""
        if gone := unreachable(error, model, self._setting(model)):
            return gone
        text = str(getattr(error, "message", error))
        status = next((status for words, status in _MISTAKEN if words in text), getattr(error, "status_code", 500))
        message = self._scrubber.message(f"{model}: {said(text, status)}")
        exceptions = litellm.exceptions
        for kind, ours in ((exceptions.ContentPolicyViolationError, Refused), (exceptions.Timeout, ModelTimeout)):
            if isinstance(error, kind):
                return ours(message)
        is_too_long = isinstance(error, exceptions.ContextWindowExceededError)
        if too_long := overflow(413 if is_too_long else status, text, message):
            return too_long
        provider = litellm.get_llm_provider(model)[1]
        return failure(status, message, wait=retry_after(_headers(error), datetime.now(UTC)), provider=provider)


def _headers(error: Any) -> Mapping[str, str]:
    response = getattr(error, "response", None)
    return getattr(error, "litellm_response_headers", None) or getattr(response, "headers", None) or {}


def _piece(chunk: Any) -> StreamedPiece:
    first = chunk.choices[0] if chunk.choices else None
    if first is None:
        return StreamedPiece(choice=False)
    delta = first.delta
    calls = getattr(delta, "tool_calls", None) or []
    text = (delta.content or "") + "".join(call.function.arguments or "" for call in calls if call.function)
    thought = getattr(delta, "reasoning_content", None) or ""
    # It makes up an end for an answer without choices, and drops OpenAI's `refusal` from a stream (1.105).
    spoke, model = bool(text or thought or delta.role), str(getattr(chunk, "model", None) or "")
    return StreamedPiece(choice=spoke, text=text, thought=thought, finish=first.finish_reason, model=model)


def _usage(chunks: list[Any]) -> StreamedPiece:
    """Return the provider's own figures; litellm would estimate missing ones."""
    found = [usage for chunk in chunks if (usage := getattr(chunk, "usage", None))]
    of_prompt = [details for usage in found if (details := getattr(usage, "prompt_tokens_details", None))]

    def most(figures: list[Any], name: str) -> int:
        return max((getattr(each, name, None) or 0 for each in figures), default=0)

    return StreamedPiece(
        choice=False,
        prompt_tokens=most(found, "prompt_tokens"),
        cached_tokens=most(of_prompt, "cached_tokens"),
        cache_write_tokens=most(of_prompt, "cache_write_tokens"),
        completion_tokens=most(found, "completion_tokens"),
    )

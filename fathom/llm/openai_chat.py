"""Models that speak OpenAI's chat protocol, asked directly: OpenAI's own and every server of that kind.

litellm speaks this protocol too, but importing it takes three seconds of processor time and 150 MB.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ValidationError

from fathom.budget.model_table import model_entry
from fathom.config.environment import Environment
from fathom.config.secrets import Scrubber
from fathom.errors import (
    AnswerTooLarge,
    ContextOverflow,
    ModelError,
    ModelRejected,
    ModelTimeout,
    ProviderFailed,
    Refused,
)
from fathom.llm.base import ModelCall, Reply
from fathom.llm.failures import MAX_SAID, failure
from fathom.llm.limits import ERROR_BYTES, most_bytes
from fathom.network.body import ENCODINGS, TooLarge, Unreadable, limit_body
from fathom.network.client import tls, user_agent
from fathom.text.retry_after import retry_after

if TYPE_CHECKING:
    import httpx

ADDRESS = "https://api.openai.com/v1"
CONNECT_SECONDS = 20.0
_ADDRESS_HINT = "set OPENAI_BASE_URL to the server's own address, such as http://localhost:8000/v1"
# How servers of this protocol say that a prompt does not fit: OpenAI, vLLM, llama.cpp, LM Studio, gateways.
_TOO_LONG = re.compile(
    r"context_length_exceeded|maximum context length|context (?:window|size|length)|exceed_context_size|"
    r"too many tokens|(?:prompt|input|string) (?:is )?too long",
    re.IGNORECASE,
)
_UNSAFE = re.compile(r"content_filter|content_policy|content management policy|safety system", re.IGNORECASE)


class _Message(BaseModel):
    content: str | None = None
    refusal: str | None = None


class _Choice(BaseModel):
    message: _Message
    finish_reason: str | None = None


class _Usage(BaseModel):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None


class _Answer(BaseModel):
    choices: list[_Choice] | None = None
    usage: _Usage | None = None


def speaks_openai_chat(model: str) -> bool:
    """Return whether a model is asked in this protocol: its provider is `openai`, named or known from the table."""
    provider, slash, name = model.partition("/")  # the name may have more: openai/Qwen/Qwen3-8B
    entry = model_entry(model)
    known = provider == "openai" and bool(name) if slash else entry.get("litellm_provider") == "openai"
    return known and entry.get("mode", "chat") == "chat"


class OpenAIChat:
    """Sends requests to one server of the protocol: `OPENAI_BASE_URL`, else OpenAI's own."""

    def __init__(self, environment: Environment, scrubber: Scrubber) -> None:
        self._variables = environment.variables
        self._scrubber = scrubber
        self._http: httpx.AsyncClient | None = None

    @property
    def _own_address(self) -> str:
        address = self._variables.get("OPENAI_BASE_URL") or self._variables.get("OPENAI_API_BASE") or ""
        return "" if address.strip().rstrip("/") == ADDRESS else address.strip()

    @property
    def _key(self) -> str:
        return self._variables.get("OPENAI_API_KEY", "").strip()

    def service(self, model: str) -> str:
        """Return what answers for a model, as a message names it."""
        return f"{model} at {self._own_address}" if self._own_address else model

    async def send(self, call: ModelCall, options: Mapping[str, Any], seconds: float) -> Reply:
        """Send one request; see `fathom.llm.base.Transport`."""
        import httpx

        model, body = call.model.model, self._body(call, options)
        if not (self._key and self._key.isascii()):
            raise ModelRejected(f"{model}: there is no key, or none that can be sent.", next_step="set OPENAI_API_KEY")
        try:
            async with self._client().stream("POST", "chat/completions", json=body) as response:
                usable = response.is_success and "json" in response.headers.get("content-type", "")
                limit_body(response, most_bytes(options["max_tokens"]) if usable else ERROR_BYTES)
                data = await response.aread()
        except TooLarge as error:
            raise AnswerTooLarge(f"{model}: {error}") from None
        except (httpx.InvalidURL, httpx.UnsupportedProtocol) as error:
            raise ModelRejected(f"{model}: no such address: {error}", next_step=_ADDRESS_HINT) from error
        except httpx.TimeoutException as error:
            raise ModelTimeout(f"{model}: no connection within {CONNECT_SECONDS:g} s.") from error
        except (httpx.HTTPError, Unreadable) as error:
            raise ProviderFailed(self._said(model, f"{type(error).__name__}: {error}")) from error
        if not response.is_success:
            raise self._failure(call, response, data.decode(errors="replace"))
        try:
            return _reply(_Answer.model_validate_json(data))
        except ValidationError as error:
            raise ProviderFailed(f"{model}: the answer is not a chat completion.") from error

    async def aclose(self) -> None:
        """Close the connections."""
        if self._http:
            await self._http.aclose()

    def _body(self, call: ModelCall, options: Mapping[str, Any]) -> dict[str, Any]:
        body = {"model": call.model.model.removeprefix("openai/"), **options}
        entry = model_entry(call.model.model)
        thinks = entry.get("litellm_provider") == "openai" and bool(entry.get("supports_reasoning"))
        if thinks or not self._own_address:  # OpenAI's newer name, which its reasoning models insist on
            body["max_completion_tokens"] = body.pop("max_tokens")
        if call.model.temperature is not None and not thinks:  # they refuse any temperature but their own
            body["temperature"] = call.model.temperature
        return body

    def _client(self) -> httpx.AsyncClient:
        import httpx

        if self._http is None:
            address, get = self._own_address or ADDRESS, self._variables.get
            headers = {
                "Authorization": f"Bearer {self._key}",
                "OpenAI-Organization": get("OPENAI_ORGANIZATION") or get("OPENAI_ORG_ID") or "",
                "OpenAI-Project": get("OPENAI_PROJECT_ID", ""),
                "Accept-Encoding": ENCODINGS,
                "User-Agent": user_agent(),
            }
            self._http = httpx.AsyncClient(
                base_url=address.rstrip("/") + "/",
                headers={name: value for name, value in headers.items() if value},
                timeout=httpx.Timeout(None, connect=CONNECT_SECONDS),  # the whole request has a deadline of its own
                limits=httpx.Limits(max_connections=None),
                verify=tls(),
            )
        return self._http

    def _failure(self, call: ModelCall, response: httpx.Response, text: str) -> ModelError:
        status = response.status_code
        said = self._said(call.model.model, text or f"HTTP {status}")
        if response.is_redirect:
            return ModelRejected(f"{said}, a redirect", next_step=_ADDRESS_HINT)
        if status == 413 or (status == 400 and _TOO_LONG.search(text)):
            return ContextOverflow(said)
        if status == 400 and _UNSAFE.search(text):
            return Refused(said)
        if status in (408, 504):
            return ModelTimeout(said)
        wait = retry_after(response.headers, datetime.now(UTC))
        return failure(status, said, wait=wait, provider="openai", call=call)

    def _said(self, model: str, text: str) -> str:
        """Return what a provider says went wrong, on one line."""
        if found := re.search(r'"message"\s*:\s*"((?:[^"\\]|\\.)*)"', text):
            code = re.search(r'"(?:code|type)"\s*:\s*"(\w+)"', text)
            text = found[1] + (f" ({code[1]})" if code and code[1] not in found[1] else "")
        return self._scrubber.message(f"{model}: {' '.join(text.split())}"[:MAX_SAID])


def _reply(answer: _Answer) -> Reply:
    usage, choices = answer.usage or _Usage(), answer.choices or []
    first = choices[0] if choices else None
    return Reply(
        text=None if first is None else first.message.content or "",
        refused=first is not None and bool(first.message.refusal or first.finish_reason == "content_filter"),
        truncated=first is not None and first.finish_reason == "length",
        prompt_tokens=usage.prompt_tokens or 0,
        completion_tokens=usage.completion_tokens or 0,
    )

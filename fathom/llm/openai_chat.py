"""Models that speak OpenAI's chat protocol, asked directly: OpenAI's own and every server of that kind.

litellm speaks this protocol too, but importing it takes three seconds of processor time and 150 MB.

The answer of a chat completion on the wire: server-sent events, or one JSON object of a server that does not stream.
Thoughts have two names: `reasoning_content` (DeepSeek, llama.cpp, SGLang, LM Studio) and `reasoning` (OpenRouter,
vLLM, Ollama). So have the tokens of a prompt that are read from a cache: `cached_tokens` within the details (OpenAI,
vLLM, llama.cpp, OpenRouter) and `prompt_cache_hit_tokens` (DeepSeek).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from fathom.budget.prices import model_entry
from fathom.config.environment import Environment
from fathom.config.secrets import Scrubber
from fathom.errors import AnswerTooLarge, ModelError, ModelRejected, ModelTimeout, ProviderFailed, Refused
from fathom.llm.base import StreamedPiece
from fathom.llm.dialects import Dialect
from fathom.llm.responses import failure, most_bytes, said, unreachable
from fathom.llm.windows import overflow, served_window, table_window
from fathom.models import Received
from fathom.network import ENCODINGS, BodyTooLarge, BodyUnreadable, limit_body, retry_after, tls, user_agent

if TYPE_CHECKING:
    import httpx

ADDRESS = "https://api.openai.com/v1"
_ADDRESSES = ("OPENAI_BASE_URL", "OPENAI_API_BASE")  # variables; the first that is set counts
CONNECT_SECONDS = 20.0
_ADDRESS_HINT = "set OPENAI_BASE_URL to the server's own address, such as http://localhost:8000/v1"
_UNSAFE = ("content_filter", "content_policy", "content management policy", "safety system")


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
    def _setting(self) -> str:
        return next((name for name in _ADDRESSES if self._variables.get(name)), "")

    @property
    def _own_address(self) -> str:
        address = self._variables.get(self._setting, "")
        return "" if address.strip().rstrip("/") == ADDRESS else address.strip()

    @property
    def _key(self) -> str:
        return self._variables.get("OPENAI_API_KEY", "").strip()

    def service(self, model: str) -> str:
        """Return what answers for a model, as a message names it."""
        return f"{model} at {self._own_address}" if self._own_address else model

    def address(self, model: str) -> str:
        """Return the address at which a model is asked."""
        return self._own_address or ADDRESS

    def own_server(self, model: str) -> bool:
        """Return whether a model is asked at an address of the user's own."""
        return bool(self._own_address)

    async def window(self, model: str) -> int | None:
        """Return the model's window; see `fathom.llm.base.Transport`."""
        import httpx

        if not self._own_address or not self._can_send:
            return table_window(model)
        try:
            served = await served_window(self._client(), model.removeprefix("openai/"))
        except httpx.InvalidURL:  # the request itself will say so
            served = None
        return served or table_window(model)

    async def send(
        self, model: str, dialect: Dialect, options: Mapping[str, Any], most: int
    ) -> AsyncGenerator[StreamedPiece, None]:
        """Send one request; see `fathom.llm.base.Transport`."""
        import httpx

        if not self._can_send:
            raise ModelRejected(f"{model}: the key is missing or cannot be sent.", next_step="set OPENAI_API_KEY")
        body = {"model": model.removeprefix("openai/"), **options, dialect.limit: most, "stream": True}
        if dialect.stream_usage:
            body["stream_options"] = {"include_usage": True}
        try:
            async with self._client().stream("POST", "chat/completions", json=body) as response:
                kind = response.headers.get("content-type", "") if response.is_success else ""
                limit_body(response, most_bytes(kind, most))
                if not response.is_success:
                    raise self._failure(model, response, (await response.aread()).decode(errors="replace"))
                async for piece in pieces_of(response, kind):
                    yield piece
        except BodyTooLarge as error:
            raise AnswerTooLarge(f"{model}: {error}") from None
        except Unusable as error:
            message = self._said(model, f"{error}", 200)
            raise overflow(400, f"{error}", message) or ProviderFailed(message) from error
        except (httpx.InvalidURL, httpx.UnsupportedProtocol) as error:
            raise ModelRejected(f"{model}: no such address: {error}", next_step=_ADDRESS_HINT) from error
        except httpx.TimeoutException as error:
            raise ModelTimeout(f"{model}: no connection within {CONNECT_SECONDS:g} s.") from error
        except httpx.ConnectError as error:
            if gone := unreachable(error, model, self._setting):
                raise gone from error
            how = f"check that a server answers at {self._own_address or ADDRESS}"
            raise ProviderFailed(self._scrubber.message(f"{model}: no connection: {error}"), next_step=how) from error
        except (httpx.HTTPError, BodyUnreadable) as error:
            raise ProviderFailed(self._scrubber.message(f"{model}: {type(error).__name__}: {error}")) from error

    async def aclose(self) -> None:
        """Close the connections."""
        if self._http:
            await self._http.aclose()

    @property
    def _can_send(self) -> bool:
        return bool(self._key) and self._key.isascii()

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
                timeout=httpx.Timeout(None, connect=CONNECT_SECONDS),  # whoever listens knows how long
                limits=httpx.Limits(max_connections=None),
                verify=tls(),
            )
        return self._http

    def _failure(self, model: str, response: httpx.Response, text: str) -> ModelError:
        status = response.status_code
        message = self._said(model, text, status)
        if response.is_redirect:
            return ModelRejected(f"{message}, a redirect", next_step=_ADDRESS_HINT)
        if too_long := overflow(status, text, message):
            return too_long
        if status == 400 and any(mark in text.lower() for mark in _UNSAFE):
            return Refused(message)
        if status in (408, 504):
            return ModelTimeout(message)
        return failure(status, message, wait=retry_after(response.headers, datetime.now(UTC)), provider="openai")

    def _said(self, model: str, text: str, status: int) -> str:
        return self._scrubber.message(f"{model}: {said(text, status)}")


END_SECONDS = 1.0  # that a server has to end its response behind the answer


class Unusable(Exception):
    """What arrives is no chat completion, or the server says in the middle of it that it failed."""


class _Function(Received):
    arguments: str | None = None


class _ToolCall(Received):
    function: _Function | None = None


class _Message(Received):
    content: str | None = None
    refusal: str | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    tool_calls: list[_ToolCall] | None = None


class _Choice(Received):
    message: _Message | None = None
    delta: _Message | None = None
    finish_reason: str | None = None


class _PromptTokens(Received):
    cached_tokens: int | None = None
    cache_write_tokens: int | None = None


class _Usage(Received):
    prompt_tokens: int | None = None
    prompt_tokens_details: _PromptTokens | None = None
    prompt_cache_hit_tokens: int | None = None
    completion_tokens: int | None = None


class _Chunk(Received):
    choices: list[_Choice] | None = None
    usage: _Usage | None = None
    model: Any = None
    error: Any = None


async def pieces_of(response: httpx.Response, kind: str) -> AsyncIterator[StreamedPiece]:
    """Yield the pieces of a successful response; `kind` is its content type.

    Raises:
        Unusable: see there.
    """
    if "text/event-stream" not in kind:
        yield _piece(_chunk(await response.aread()), whole=True)
        return
    import httpx

    events, finished = _events(response.aiter_bytes()), False
    try:
        async for data in events:
            if data == b"[DONE]":
                finished = True
                yield StreamedPiece(choice=False, finish="stop")
                async with asyncio.timeout(END_SECONDS):  # read to the end, a connection can be used again
                    await anext(events, None)
                return
            piece = _piece(_chunk(data), whole=False)
            finished |= piece.finish is not None
            yield piece
    except (TimeoutError, httpx.HTTPError):  # it broke off behind the end of the answer
        if not finished:
            raise


async def _events(received: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Yield the data of each event. Lines that begin with a colon are comments that keep the connection open.

    Only a line feed or carriage return ends a line: an answer may have other separators as they are.
    """
    rest = b""
    async for chunk in received:
        *lines, rest = (rest + chunk).replace(b"\r", b"\n").split(b"\n")
        for line in lines:
            if data := _data(line):
                yield data
    if data := _data(rest):
        yield data


def _data(line: bytes) -> bytes:
    return line.removeprefix(b"data:").strip() if line.startswith(b"data:") else b""


def _chunk(data: bytes) -> _Chunk:
    try:
        chunk = _Chunk.model_validate_json(data)
    except ValidationError:
        raise Unusable("the answer is not a chat completion.") from None
    if chunk.error is not None:
        raise Unusable(data.decode(errors="replace"))
    return chunk


def _piece(chunk: _Chunk, *, whole: bool) -> StreamedPiece:
    usage, first = chunk.usage or _Usage(), chunk.choices[0] if chunk.choices else None
    said = (first and (first.delta or first.message)) or _Message()
    of_prompt = usage.prompt_tokens_details or _PromptTokens()
    return StreamedPiece(
        choice=first is not None,
        text=(said.content or "") + "".join(_arguments(said)),
        thought=said.reasoning_content or said.reasoning or "",
        refusal=said.refusal or "",
        finish=(first and first.finish_reason) or ("stop" if whole and first else None),
        prompt_tokens=usage.prompt_tokens or 0,
        cached_tokens=of_prompt.cached_tokens or usage.prompt_cache_hit_tokens or 0,
        cache_write_tokens=of_prompt.cache_write_tokens or 0,
        completion_tokens=usage.completion_tokens or 0,
        model=chunk.model if isinstance(chunk.model, str) else "",
    )


def _arguments(message: _Message) -> Iterator[str]:
    for call in message.tool_calls or []:
        yield (call.function and call.function.arguments) or ""

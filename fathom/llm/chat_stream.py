"""The answer of a chat completion on the wire: server-sent events, or one JSON object of a server that does not stream.

Thoughts have two names: `reasoning_content` (DeepSeek, llama.cpp, SGLang, LM Studio) and `reasoning` (OpenRouter, vLLM,
Ollama). So have the tokens of a prompt that are read from a cache: `cached_tokens` within the details (OpenAI, vLLM,
llama.cpp, OpenRouter) and `prompt_cache_hit_tokens` (DeepSeek).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ValidationError

from fathom.llm.base import Piece

if TYPE_CHECKING:
    import httpx


END_SECONDS = 1.0  # that a server has to end its response behind the answer


class Unusable(Exception):
    """What arrives is no chat completion, or the server says in the middle of it that it failed."""


class _Function(BaseModel):
    arguments: str | None = None


class _ToolCall(BaseModel):
    function: _Function | None = None


class _Message(BaseModel):
    content: str | None = None
    refusal: str | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    tool_calls: list[_ToolCall] | None = None


class _Choice(BaseModel):
    message: _Message | None = None
    delta: _Message | None = None
    finish_reason: str | None = None


class _PromptTokens(BaseModel):
    cached_tokens: int | None = None
    cache_write_tokens: int | None = None


class _Usage(BaseModel):
    prompt_tokens: int | None = None
    prompt_tokens_details: _PromptTokens | None = None
    prompt_cache_hit_tokens: int | None = None
    completion_tokens: int | None = None


class _Chunk(BaseModel):
    choices: list[_Choice] | None = None
    usage: _Usage | None = None
    model: Any = None
    error: Any = None


async def pieces_of(response: httpx.Response, kind: str) -> AsyncIterator[Piece]:
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
                yield Piece(choice=False, finish="stop")
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


def _piece(chunk: _Chunk, *, whole: bool) -> Piece:
    usage, first = chunk.usage or _Usage(), chunk.choices[0] if chunk.choices else None
    said = (first and (first.delta or first.message)) or _Message()
    of_prompt = usage.prompt_tokens_details or _PromptTokens()
    return Piece(
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

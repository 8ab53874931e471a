"""The answer of a chat completion on the wire: server-sent events, or one JSON object of a server that does not stream.

Thoughts have two names: `reasoning_content` (DeepSeek, llama.cpp, SGLang, LM Studio) and `reasoning` (OpenRouter, vLLM,
Ollama).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
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


class _Usage(BaseModel):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None


class _Chunk(BaseModel):
    choices: list[_Choice] | None = None
    usage: _Usage | None = None
    error: Any = None


async def pieces_of(response: httpx.Response, kind: str) -> AsyncIterator[Piece]:
    """Yield the pieces of a successful response; `kind` is its content type.

    Raises:
        Unusable: see there.
    """
    if "text/event-stream" not in kind:
        yield _piece(_chunk((await response.aread()).decode(errors="replace")), whole=True)
        return
    events = _events(response.aiter_lines())
    async for data in events:
        if data == "[DONE]":
            yield Piece(choice=False, finish="stop")
            with suppress(TimeoutError):  # read to the end, a connection can be used again
                async with asyncio.timeout(END_SECONDS):
                    await anext(events, None)
            return
        yield _piece(_chunk(data), whole=False)


async def _events(lines: AsyncIterator[str]) -> AsyncIterator[str]:
    """Yield the data of each event. Lines that begin with a colon are comments that keep the connection open."""
    async for line in lines:
        name, colon, value = line.partition(":")
        if colon and name == "data" and value.strip():
            yield value.strip()


def _chunk(data: str) -> _Chunk:
    try:
        chunk = _Chunk.model_validate_json(data)
    except ValidationError:
        raise Unusable("the answer is not a chat completion.") from None
    if chunk.error is not None:
        raise Unusable(data)
    return chunk


def _piece(chunk: _Chunk, *, whole: bool) -> Piece:
    usage, first = chunk.usage or _Usage(), chunk.choices[0] if chunk.choices else None
    said = (first and (first.delta or first.message)) or _Message()
    return Piece(
        choice=first is not None,
        text=(said.content or "") + "".join(_arguments(said)),
        thought=said.reasoning_content or said.reasoning or "",
        refusal=said.refusal or "",
        finish=(first and first.finish_reason) or ("stop" if whole and first else None),
        prompt_tokens=usage.prompt_tokens or 0,
        completion_tokens=usage.completion_tokens or 0,
    )


def _arguments(message: _Message) -> Iterator[str]:
    for call in message.tool_calls or []:
        yield (call.function and call.function.arguments) or ""

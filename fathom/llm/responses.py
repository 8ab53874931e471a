"""Responses of a provider: a refusal becomes the error that says who must react, and bodies have a limit.

The limit on the body of a model's answer holds while the answer arrives. litellm searches unusable answers for secrets:
6 seconds of processor time for a megabyte, in which the event loop stands still and no deadline fires. So it never gets
more than a model can have meant.
"""

from __future__ import annotations

import errno
import json
import re
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache, wraps
from typing import TYPE_CHECKING, Any

from fathom.errors import (
    AnswerTooLarge,
    ModelError,
    ModelRejected,
    ModelUnreachable,
    ProviderFailed,
    RateLimited,
    RequestRejected,
)
from fathom.network import ENCODINGS, BodyTooLarge, limit_body

if TYPE_CHECKING:
    from types import ModuleType

    import httpx

MAX_SAID = 500  # characters of a provider's message that are kept
_MESSAGE = re.compile(r'"(?:message|error|detail)"\s*:\s*"((?:[^"\\]|\\.)*)"')
_GATEWAY = re.compile(r"Provider returned error")  # OpenRouter; what the provider said stands in `metadata.raw`
_RAW = re.compile(r'"raw"\s*:\s*"((?:[^"\\]|\\.)+)"')
_CODE = re.compile(r'"(?:code|type)"\s*:\s*"(\w+)"')
_NESTED = re.compile(r"^(?:(?:litellm\.)?\w*(?:Error|Exception)\b[\s:-]*)+")  # litellm names every wrapper


def said(text: str, status: int) -> str:
    """Return a provider's error message on one line, without JSON around it and the names of wrappers."""
    if _GATEWAY.search(text) and (raw := _RAW.search(text)):
        return said(_unescaped(raw[1]), status)
    if found := _MESSAGE.search(text):
        code = _CODE.search(text)
        message = _unescaped(found[1])
        text = message + (f" ({code[1]})" if code and code[1] not in message else "")
    text = " ".join(_NESTED.sub("", text.strip()).split())
    return text[:MAX_SAID] or f"HTTP {status}"


def _unescaped(text: str) -> str:
    try:
        return str(json.loads(f'"{text}"', strict=False))
    except ValueError:  # it is not quite JSON
        return text


def failure(status: int, message: str, *, wait: float | None, provider: str) -> ModelError:
    """Return the error for an HTTP status; `wait` is the seconds of the provider's Retry-After."""
    error = _failure(status, message[:MAX_SAID], wait, provider)
    error.status = status
    return error


def _failure(status: int, message: str, wait: float | None, provider: str) -> ModelError:
    credentials = f"check {provider.upper()}_API_KEY, or the other credentials of {provider}"
    another = "choose another model: --model, --role-model ROLE=MODEL or FATHOM_MODEL"
    if status == 429 and "insufficient_quota" not in message:
        return RateLimited(message, retry_after=wait)
    if status in (400, 422):
        how = f"set the role's structured_output to json_object or prompt, or {another}"
        return RequestRejected(message, next_step=how)
    remedy = {
        401: credentials,
        403: credentials,
        404: another,
        429: f"raise the account's quota, or {another}",
    }.get(status)
    return ModelRejected(message, next_step=remedy) if remedy else ProviderFailed(message, retry_after=wait)


def unreachable(error: BaseException, model: str, setting: str) -> ModelUnreachable | None:
    """Return the error of a client as one of a server that is not there; None if it is about something else.

    `setting` is the variable that holds the server's address, empty where the address is the provider's own.
    """
    import httpx

    causes = list(_causes(error))
    connecting = next((cause for cause in causes if isinstance(cause, httpx.ConnectError)), None)
    why = next(filter(None, map(_no_server, causes)), "")
    if connecting is None or not why:
        return None
    url = connecting.request.url
    address = f"{url.scheme}://{url.netloc.decode()}"
    how = f"check that the server is running and that {setting} is its address" if setting else "check the network"
    return ModelUnreachable(f"{model}: no server answers at {address}: {why}.", next_step=how)


def _no_server(error: BaseException) -> str:
    """Return in words that an address has no server; empty for another error."""
    if isinstance(error, socket.gaierror):
        return "the host name cannot be resolved"
    # A host with several addresses: the failures are joined in one text.
    refused = isinstance(error, ConnectionRefusedError) or f"[Errno {errno.ECONNREFUSED}]" in str(error)
    return "connection refused" if refused else ""


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    """Yield an error and what led to it: clients wrap what they are told."""
    while error is not None:
        yield error
        if isinstance(error, BaseExceptionGroup):
            for one in error.exceptions:
                yield from _causes(one)
        error = error.__cause__ or error.__context__


ERROR_BYTES = 2**16  # bytes of an error or of a body that is not JSON
TOKEN_BYTES = 32  # of JSON for a token; one of English takes 5, an escaped character 6
EVENT_BYTES = 1_024  # of a stream for a token: about 300, more where the model's name is a path
_STREAMS = ("event-stream", "ndjson", "eventstream")  # of OpenAI and Anthropic, Ollama, Amazon

_most: ContextVar[int] = ContextVar("most tokens of an answer")


def most_bytes(kind: str, tokens: int) -> int:
    """Return how large an answer of some tokens may be; `kind` is its content type, empty for an error."""
    if any(stream in kind for stream in _STREAMS):
        return ERROR_BYTES + tokens * EVENT_BYTES
    return ERROR_BYTES + (tokens * TOKEN_BYTES if "json" in kind else 0)


@contextmanager
def limited(litellm: ModuleType, model: str, tokens: int) -> Iterator[None]:
    """Limit the answers of requests that litellm makes inside the block to some tokens.

    Raises:
        AnswerTooLarge: one was larger; the connection is closed and the rest not read.
    """
    _watch(litellm)
    token = _most.set(tokens)
    try:
        yield
    except Exception as error:
        # litellm wraps what its client raises.
        if (found := next((cause for cause in _causes(error) if isinstance(cause, BodyTooLarge)), None)) is None:
            raise
        raise AnswerTooLarge(f"{model}: {found}") from None
    finally:
        _most.reset(token)


@cache
def _watch(litellm: ModuleType) -> None:
    """Have all clients of litellm limit their answers: there are two places that make them."""
    from litellm.llms.custom_httpx.http_handler import AsyncHTTPHandler
    from litellm.llms.openai.common_utils import BaseOpenAILLM

    for owner, name in ((AsyncHTTPHandler, "create_client"), (BaseOpenAILLM, "_get_async_http_client")):
        make = getattr(owner, name)

        @wraps(make)
        def limiting(*args: Any, _make: Any = make, **options: Any) -> httpx.AsyncClient:
            return _with_limit(_make(*args, **options))

        setattr(owner, name, limiting if owner is AsyncHTTPHandler else staticmethod(limiting))
    _with_limit(litellm.module_level_aclient.client)


def _with_limit(client: httpx.AsyncClient) -> httpx.AsyncClient:
    client.headers["Accept-Encoding"] = ENCODINGS
    client.event_hooks["response"].append(_limit)
    return client


async def _limit(response: httpx.Response) -> None:
    kind = response.headers.get("content-type", "") if response.is_success else ""
    limit_body(response, most_bytes(kind, _most.get(0)))

"""What a provider refuses or fails to do, as the error that says who must react and how."""

from __future__ import annotations

import json
import re

from fathom.errors import ModelError, ModelRejected, ProviderFailed, RateLimited, RequestRejected

MAX_SAID = 500  # characters of a provider's message that are kept
_MESSAGE = re.compile(r'"(?:message|error|detail)"\s*:\s*"((?:[^"\\]|\\.)*)"')
_GATEWAY = re.compile(r"Provider returned error")  # OpenRouter; what the provider said stands in `metadata.raw`
_RAW = re.compile(r'"raw"\s*:\s*"((?:[^"\\]|\\.)+)"')
_CODE = re.compile(r'"(?:code|type)"\s*:\s*"(\w+)"')
_NESTED = re.compile(r"^(?:(?:litellm\.)?\w*(?:Error|Exception)\b[\s:-]*)+")  # litellm names every wrapper


def said(text: str, status: int) -> str:
    """Return what a provider says went wrong, on one line: its message, out of JSON and the names of wrappers."""
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

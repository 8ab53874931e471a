"""The OpenAI chat-completions protocol, and the ways in which a model fails.

Behaviours with an answer: ok, `untidy_json` (a fence and a trailing comma: can be mended), `broken_json` (cannot),
`false` (a sentence that its source does not have), `invented` (numbers, names, ids, addresses and quotations that no
page has), truncated, refusal, empty, `no_choices`, `no_usage`, `html` (a gateway's page with status 200). Errors: see
`_ERRORS`. The server knows more: hang, drop and those of `floods`.
"""

from __future__ import annotations

import json
import re
from typing import Any

from tests.stubs.reading import Prompt
from tests.stubs.replies import Reply
from tests.stubs.roles import answer
from tests.stubs.settings import Settings

__all__ = ["INVENTED", "complete", "invented"]

CREATED = 1_700_000_000

_ERRORS = {
    "401": (401, "invalid_request_error", "invalid_api_key", "Incorrect API key provided."),
    "404": (404, "invalid_request_error", "model_not_found", "The model does not exist."),
    "429": (429, "requests", "rate_limit_exceeded", "Rate limit reached for requests."),
    "quota": (429, "insufficient_quota", "insufficient_quota", "You exceeded your current quota: insufficient_quota."),
    "500": (500, "server_error", None, "The server had an error while processing your request."),
    "context_limit": (
        400,
        "invalid_request_error",
        "context_length_exceeded",
        "This model's maximum context length is 8192 tokens. Please reduce the length of the messages.",
    ),
    "content_policy": (
        400,
        "invalid_request_error",
        "content_policy_violation",
        "Your request was rejected as a result of our safety system.",
    ),
}


def complete(body: dict[str, Any], authorized: bool, behaviour: str, settings: Settings) -> Reply:
    """Answer one request; `behaviour` "ok" or a scripted failure.

    Raises:
        ValueError: the behaviour is unknown.
    """
    prompt_tokens = len(json.dumps(body.get("messages", [])).encode()) // 4
    if not authorized:
        behaviour = "401"
    elif settings.context_window and prompt_tokens > settings.context_window:
        behaviour = "context_limit"
    if behaviour in _ERRORS:
        return _error(behaviour, settings)
    if behaviour == "html":
        return Reply(200, "<html><body>Please sign in to the network.</body></html>")
    text = answer(Prompt(body), settings)
    refusal, finish = None, "stop"
    match behaviour:
        case "ok" | "no_choices" | "no_usage":
            pass
        case "broken_json":
            text = "My answer is " + re.sub(r'[":,\[\]{}]', "", text)
        case "untidy_json":
            text = f"```json\n{text[:-1]},}}\n```"
        case "invented":
            text = invented(text) if text.startswith("{") else f"{invented(text)}\n\n{INVENTED}"
        case "false":
            text = f"Exactly 4711 zeppelins did it in 1899 [{Prompt(body).cited_ids[0]}]."
        case "truncated":
            text, finish = text[: len(text) // 2], "length"
        case "refusal":
            text, refusal = "", "I'm sorry, but I can't help with that."
        case "empty":
            text = ""
        case _:
            raise ValueError(f"unknown behaviour {behaviour!r}")
    usage = {"prompt_tokens": prompt_tokens, "completion_tokens": len(text.encode()) // 4}
    usage["total_tokens"] = sum(usage.values())
    message = {"role": "assistant", "content": None if refusal else text, "refusal": refusal}
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": finish}
    payload = {
        "id": "chatcmpl-stub",
        "object": "chat.completion",
        "created": CREATED,
        "model": body.get("model", "stub"),
        "choices": [] if behaviour == "no_choices" else [choice],
        "usage": usage,
    }
    if behaviour == "no_usage":
        del payload["usage"]
    return Reply(200, payload, usage=usage)


INVENTED = (
    "The archive at https://invented.example/a has a full list of them [Sffffff]. "
    "Professor Quillon Vasterby counted 4711 of them in 1899. "
    'An official said: "nobody had ever measured the zeppelin tariffs of the lake" [S0a0a0a, Sabcdef01].'
)
"""Sentences without any source: an address, ids, a name, a number and a quotation that no page has."""


def invented(text: str) -> str:
    """Return a text with another number in each of its sentences that has one, citations left as they are."""
    return re.sub(r"(?<![\w\[])(\d+)(?=\s[a-z])", lambda found: str(int(found[1]) + 1357), text)


def _error(behaviour: str, settings: Settings) -> Reply:
    status, kind, code, message = _ERRORS[behaviour]
    headers = {"Retry-After": str(settings.retry_after)} if status == 429 else {}
    return Reply(status, {"error": {"message": message, "type": kind, "param": None, "code": code}}, headers)

"""The OpenAI chat-completions protocol, whole and streamed, and the ways in which it fails.

Behaviours with an answer: see `behaviours`; besides, in this protocol, `no_choices`, `no_usage` and `html` (a
gateway's page with status 200). Errors: see `_ERRORS`. The server adds hang, drop and the behaviours of `floods`.
"""

from __future__ import annotations

import json
from typing import Any

from tests.stubs.behaviours import INVENTED, Answer, behave, invented
from tests.stubs.reading import Prompt
from tests.stubs.refusals import refused, too_long
from tests.stubs.replies import Reply
from tests.stubs.settings import Settings
from tests.stubs.streams import Events, Pieces

__all__ = ["INVENTED", "complete", "events", "invented", "models"]

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
    elif reply := refused(body, settings) or too_long(body, prompt_tokens, settings):
        return reply
    elif behaviour == "error_in_stream" and not body.get("stream"):
        behaviour = "500"
    if behaviour in _ERRORS:
        return _error(behaviour, settings)
    if behaviour == "html":
        return Reply(200, "<html><body>Please sign in to the network.</body></html>")
    said = behave(Prompt(body), behaviour, settings)
    usage = {"prompt_tokens": prompt_tokens, "completion_tokens": said.completion_tokens}
    usage["total_tokens"] = sum(usage.values())
    choice = {"index": 0, "message": _message(said, body), "logprobs": None, "finish_reason": said.finish}
    details = {"completion_tokens_details": {"reasoning_tokens": said.reasoning_tokens}} if said.thoughts else {}
    payload = {
        "id": "chatcmpl-stub",
        "object": "chat.completion",
        "created": CREATED,
        "model": body.get("model", "stub"),
        "choices": [] if behaviour == "no_choices" else [choice],
        "usage": {**usage, **details, **_cached(body, prompt_tokens, settings)},
    }
    if behaviour == "no_usage":
        del payload["usage"]
    return Reply(200, payload, usage=usage, delivery=said.delivery)


def _cached(body: dict[str, Any], prompt_tokens: int, settings: Settings) -> dict[str, Any]:
    """Return what the usage says of the cache; DeepSeek says it in its own words."""
    read = int(prompt_tokens * settings.cached)
    if "deepseek" in body.get("model", ""):
        return {"prompt_cache_hit_tokens": read, "prompt_cache_miss_tokens": prompt_tokens - read}
    return {"prompt_tokens_details": {"cached_tokens": read}} if read else {}


def events(payload: dict[str, Any], body: dict[str, Any], at_once: int) -> Events:
    """Return a completion as server-sent events; what it used comes last, if the request wants it."""
    with_usage = bool((body.get("stream_options") or {}).get("include_usage"))

    def chunk(choices: list[dict[str, Any]], usage: dict[str, Any] | None = None) -> dict[str, Any]:
        frame = {name: payload[name] for name in ("id", "created", "model")}
        frame |= {"object": "chat.completion.chunk", "choices": choices}
        return {**frame, "usage": usage} if with_usage else frame

    def delta(content: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
        return chunk([{"index": 0, "delta": content, "logprobs": None, "finish_reason": finish}])

    pieces = Pieces(at_once)
    if not payload["choices"]:
        ends = [chunk([]), chunk([])]
    else:
        choice = payload["choices"][0]
        ends = [delta({"role": "assistant", "content": ""}), delta({}, choice["finish_reason"])]
        for name in ("reasoning_content", "content", "refusal"):
            pieces.add(delta({name: ""}), name, choice["message"].get(name) or "")
        for index, call in enumerate(choice["message"].get("tool_calls", [])):
            opened = {"index": index, **call, "function": {**call["function"], "arguments": ""}}
            pieces.one(_event(delta({"tool_calls": [opened]})))
            more = {"index": index, "function": {"arguments": ""}}
            pieces.add(delta({"tool_calls": [more]}), "arguments", call["function"]["arguments"])
    usage = [chunk([], payload["usage"])] if with_usage and "usage" in payload else []
    return Events(
        "text/event-stream; charset=utf-8",
        head=_event(ends[0]),
        pieces=pieces,
        tail=b"".join(_event(end) for end in (ends[1], *usage)) + b"data: [DONE]\n\n",
        error=_event({"error": _in_stream("500")}),
    )


def models(authorized: bool, behaviour: str, settings: Settings) -> Reply:
    """Return the list of models, which not every server has."""
    behaviour = behaviour if authorized else "401"
    if behaviour in _ERRORS:
        return _error(behaviour, settings)
    return Reply(404, {"detail": "Not Found"}) if settings.models is None else Reply(200, settings.models)


def _event(data: dict[str, Any]) -> bytes:
    return f"data: {json.dumps(data)}\n\n".encode()


def _message(said: Answer, body: dict[str, Any]) -> dict[str, Any]:
    """Return what is said as a message, or as a call of the tool that must be used."""
    message: dict[str, Any] = {
        "role": "assistant",
        "content": None if said.refusal else said.text,
        "refusal": said.refusal,
    }
    choice = body.get("tool_choice")
    if isinstance(choice, dict) and said.text:
        function = {"name": choice["function"]["name"], "arguments": said.text}
        message |= {"content": None, "tool_calls": [{"id": "call_stub", "type": "function", "function": function}]}
    return {**message, "reasoning_content": said.thoughts} if said.thoughts else message


def _in_stream(behaviour: str) -> dict[str, Any]:
    status, kind, _, message = _ERRORS[behaviour]
    return {"message": message, "type": kind, "code": status}


def _error(behaviour: str, settings: Settings) -> Reply:
    status, kind, code, message = _ERRORS[behaviour]
    headers = {"Retry-After": str(settings.retry_after)} if status == 429 else {}
    return Reply(status, {"error": {"message": message, "type": kind, "param": None, "code": code}}, headers)

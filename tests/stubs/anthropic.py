"""Anthropic's Messages protocol, whole and streamed: typed answers come as the input of a tool that must be used.

What a model says: see `behaviours`. Errors: see `_ERRORS`. The server adds hang, drop and the behaviours of `floods`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from typing import Any

from tests.stubs.behaviours import Answer, behave
from tests.stubs.reading import Prompt
from tests.stubs.refusals import UNCACHED, is_marked
from tests.stubs.replies import Reply
from tests.stubs.settings import Settings
from tests.stubs.streams import Events, Pieces

__all__ = ["complete", "events"]

_ERRORS = {
    "401": (401, "authentication_error", "invalid x-api-key"),
    "404": (404, "not_found_error", "model: the model does not exist"),
    "429": (429, "rate_limit_error", "This request would exceed your organization's rate limit."),
    "500": (500, "api_error", "Internal server error"),
    "529": (529, "overloaded_error", "Overloaded"),
    "quota": (400, "invalid_request_error", "Your credit balance is too low to access the Anthropic API."),
    "context_limit": (400, "invalid_request_error", "prompt is too long: 9000 tokens > 8192 maximum"),
    "content_policy": (400, "invalid_request_error", "Output blocked by content filtering policy"),
}
LEAST_CACHED, MOST_MARKS = 1_024, 4  # tokens; https://docs.claude.com/en/docs/build-with-claude/prompt-caching
# amrit110/oli issue 7
_UNKNOWN = ("response_format", "output_format", "frequency_penalty")
# ianarawjo/ChainForge issue 271
_SYSTEM_ROLE = (
    'messages: Unexpected role "system". The Messages API accepts a top-level `system` parameter, '
    'not "system" as an input message role.'
)
_STOPPED = {"stop": "end_turn", "length": "max_tokens"}
_DELTAS = {
    "text": ("text_delta", "text"),
    "thinking": ("thinking_delta", "thinking"),
    "tool_use": ("input_json_delta", "partial_json"),
}


def complete(body: dict[str, Any], authorized: bool, behaviour: str, settings: Settings) -> Reply:
    """Answer one request; `behaviour` "ok" or a scripted failure.

    Raises:
        ValueError: the behaviour is unknown.
    """
    prompt_tokens = sum(map(_tokens, _blocks(body)))
    if not authorized:
        behaviour = "401"
    elif problem := _problem(body, prompt_tokens, settings):
        return _error(400, "invalid_request_error", problem)
    elif behaviour == "error_in_stream" and not body.get("stream"):
        behaviour = "500"
    if behaviour in _ERRORS:
        headers = {"Retry-After": str(settings.retry_after)} if behaviour == "429" else {}
        return _error(*_ERRORS[behaviour], headers)
    said = behave(Prompt(body), behaviour, settings)
    content = _content(said, body)
    read, written = _cache(body, settings)
    payload = {
        "id": "msg_stub",
        "type": "message",
        "role": "assistant",
        "model": body.get("model", "stub"),
        "content": content,
        "stop_reason": _stop_reason(said, content),
        "stop_sequence": None,
        "usage": {
            "input_tokens": prompt_tokens - read - written,
            "cache_read_input_tokens": read,
            "cache_creation_input_tokens": written,
            "output_tokens": said.completion_tokens,
        },
    }
    counted = {"prompt_tokens": prompt_tokens, "completion_tokens": said.completion_tokens}
    usage = {**counted, "total_tokens": sum(counted.values())}
    return Reply(200, payload, usage=usage, delivery=said.delivery)


def _cache(body: dict[str, Any], settings: Settings) -> tuple[int, int]:
    """Return the tokens of the prompt that are read from the cache, and written to it at the last mark."""
    read = written = tokens = 0
    sent = hashlib.sha256()
    for block in _blocks(body):
        tokens += _tokens(block)
        sent.update(_bytes(block))
        if (beginning := sent.hexdigest()) in settings.kept:
            read, written = tokens, 0
        elif "cache_control" in block and tokens >= LEAST_CACHED:
            settings.kept.add(beginning)
            written = tokens - read
    return read, written


def _tokens(block: dict[str, Any]) -> int:
    return len(_bytes(block)) // 4


def _bytes(block: dict[str, Any]) -> bytes:
    return json.dumps({name: value for name, value in block.items() if name != "cache_control"}).encode()


def _blocks(body: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield what a prompt is made of, in the order in which the cache has it."""
    yield from body.get("tools", [])
    for content in (body.get("system") or [], *(message["content"] for message in body["messages"])):
        yield from [{"text": content}] if isinstance(content, str) else content


def events(payload: dict[str, Any], _body: dict[str, Any], at_once: int) -> Events:
    """Return a message as server-sent events."""
    used = payload["usage"]
    opening = {**payload, "content": [], "stop_reason": None, "usage": {**used, "output_tokens": 1}}
    head, tail = _event("message_start", message=opening) + _event("ping"), b""
    pieces = Pieces(at_once)
    for index, block in enumerate(payload["content"]):
        empty = {"tool_use": {"input": {}}, "text": {"text": ""}, "thinking": {"thinking": ""}}[block["type"]]
        start = tail + _event("content_block_start", index=index, content_block=block | empty)
        if pieces.events:
            pieces.events[-1] += start
        else:
            head += start
        kind, field = _DELTAS[block["type"]]
        frame = {"type": "content_block_delta", "index": index, "delta": {"type": kind, field: ""}}
        pieces.add(frame, field, _text(block), before="event: content_block_delta\ndata: ")
        tail = _event("content_block_stop", index=index)
    stopped = {"stop_reason": payload["stop_reason"], "stop_sequence": None}
    tail += _event("message_delta", delta=stopped, usage={"output_tokens": used["output_tokens"]})
    error = {"type": "overloaded_error", "message": "Overloaded"}
    return Events(
        "text/event-stream; charset=utf-8", head, pieces, tail + _event("message_stop"), _event("error", error=error)
    )


def _event(kind: str, **data: Any) -> bytes:
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **data})}\n\n".encode()


def _problem(body: dict[str, Any], prompt_tokens: int, settings: Settings) -> str:
    if "max_tokens" not in body:
        return "max_tokens: Field required"
    if found := next((name for name in _UNKNOWN if name in body), ""):
        return f"{found}: Extra inputs are not permitted"
    if any(message["role"] == "system" for message in body["messages"]):
        return _SYSTEM_ROLE
    if "cache_control" in settings.refuses and is_marked(body):
        return UNCACHED
    if (marks := sum("cache_control" in block for block in _blocks(body))) > MOST_MARKS:
        return f"A maximum of {MOST_MARKS} blocks with cache_control may be provided. Found {marks}."
    if settings.context_window and prompt_tokens > settings.context_window:
        return f"prompt is too long: {prompt_tokens} tokens > {settings.context_window} maximum"
    return ""


def _content(said: Answer, body: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the blocks of an answer; a stream may send JSON that is none, a whole answer has it parsed."""
    blocks: list[dict[str, Any]] = []
    if said.thoughts:
        blocks.append({"type": "thinking", "thinking": said.thoughts, "signature": "c3R1Yg=="})
    if said.refusal or (said.thoughts and not said.text):
        return blocks
    choice = body.get("tool_choice") or {}
    if choice.get("type") != "tool":
        return [*blocks, {"type": "text", "text": said.text}]
    try:
        given = json.loads(said.text)
    except ValueError:
        given = said.text if body.get("stream") else {}
    return [*blocks, {"type": "tool_use", "id": "toolu_stub", "name": choice["name"], "input": given}]


def _text(block: dict[str, Any]) -> str:
    if block["type"] != "tool_use":
        return str(block[block["type"]])
    return block["input"] if isinstance(block["input"], str) else json.dumps(block["input"])


def _stop_reason(said: Answer, content: list[dict[str, Any]]) -> str:
    if said.refusal:
        return "refusal"
    used_tool = bool(content) and content[-1]["type"] == "tool_use"
    return "tool_use" if used_tool and said.finish == "stop" else _STOPPED[said.finish]


def _error(status: int, kind: str, message: str, headers: dict[str, str] | None = None) -> Reply:
    return Reply(status, {"type": "error", "error": {"type": kind, "message": message}}, headers or {})

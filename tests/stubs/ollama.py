"""Ollama's own protocol, which streams lines of JSON unless told not to.

It refuses no prompt for its length: it silently drops the beginning, and with it the instructions (ollama/ollama
issues 8531 and 14259). Only `prompt_eval_count` shows it.

What a model says: see `behaviours`. Errors: see `_ERRORS`. The server adds hang, drop and the behaviours of `floods`.
"""

from __future__ import annotations

import json
from typing import Any

from tests.stubs.behaviours import Answer, behave
from tests.stubs.reading import Prompt
from tests.stubs.replies import Reply
from tests.stubs.settings import Settings
from tests.stubs.streams import Events, Pieces

__all__ = ["NONSENSE", "complete", "events", "show"]

NONSENSE = "It looks like you have shared the end of a longer text. What would you like me to do with it?"
_NUM_CTX = 4_096
_CREATED = "2023-11-14T22:13:20Z"
_ERRORS = {
    "401": (401, "unauthorized"),
    "404": (404, "model 'stub' not found"),
    "429": (429, "too many requests"),
    "500": (500, "llama runner process has terminated: exit status 2"),
    "503": (503, "server busy, please try again.  maximum pending requests exceeded"),
}


def complete(body: dict[str, Any], authorized: bool, behaviour: str, settings: Settings) -> Reply:
    """Answer one request, with a key or without one; `behaviour` "ok" or a scripted failure.

    Raises:
        ValueError: the behaviour is unknown.
    """
    body = {"stream": True, **body}
    if behaviour == "error_in_stream" and not body["stream"]:
        behaviour = "500"
    if behaviour in _ERRORS:
        return _error(behaviour)
    window = int((body.get("options") or {}).get("num_ctx") or _NUM_CTX)
    prompt_tokens = len(json.dumps(body.get("messages", [])).encode()) // 4
    if prompt_tokens > window:
        prompt_tokens, said = window, Answer(NONSENSE)
    else:
        said = behave(Prompt(body), behaviour, settings)
    message = {"role": "assistant", "content": said.refusal or said.text}
    payload = {
        "model": body.get("model", "stub"),
        "created_at": _CREATED,
        "message": {**message, "thinking": said.thoughts} if said.thoughts else message,
        "done": True,
        "done_reason": said.finish,
        "total_duration": 1_000_000,
        "load_duration": 1_000,
        "prompt_eval_count": prompt_tokens,
        "prompt_eval_duration": 1_000,
        "eval_count": said.completion_tokens,
        "eval_duration": 1_000,
    }
    counted = {"prompt_tokens": prompt_tokens, "completion_tokens": said.completion_tokens}
    usage = {**counted, "total_tokens": sum(counted.values())}
    return Reply(200, payload, usage=usage, delivery=said.delivery)


def events(payload: dict[str, Any], _body: dict[str, Any], at_once: int) -> Events:
    """Return an answer as lines of JSON; the last has what was counted."""
    frame = {"model": payload["model"], "created_at": payload["created_at"]}
    said = {"role": "assistant", "content": ""}
    thoughts = {**frame, "message": {**said, "thinking": ""}, "done": False}
    answer = {**frame, "message": said, "done": False}
    pieces = Pieces(at_once)
    pieces.add(thoughts, "thinking", payload["message"].get("thinking", ""), before="", after="\n")
    pieces.add(answer, "content", payload["message"]["content"], before="", after="\n")
    error = {"error": "an error was encountered while running the model: unexpected EOF"}
    return Events("application/x-ndjson", b"", pieces, _line({**payload, "message": said}), _line(error))


def show(behaviour: str, settings: Settings) -> Reply:
    """Return what is known of a model: the window that it was trained with, not the one that it is given."""
    if not settings.ollama_context:
        behaviour = "404"
    if behaviour in _ERRORS:
        return _error(behaviour)
    payload = {
        "parameters": 'stop                           "<|eot_id|>"',
        "template": "{{ .Prompt }}",
        "details": {"format": "gguf", "family": "llama", "parameter_size": "8.0B", "quantization_level": "Q4_K_M"},
        "model_info": {"general.architecture": "llama", "llama.context_length": settings.ollama_context},
        "capabilities": ["completion"],
    }
    return Reply(200, payload)


def _error(behaviour: str) -> Reply:
    status, message = _ERRORS[behaviour]
    return Reply(status, {"error": message})


def _line(data: dict[str, Any]) -> bytes:
    return json.dumps(data).encode() + b"\n"

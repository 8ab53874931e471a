"""Servers that do not take what others take: each refuses in its own words and its own shape of JSON.

The words are those that users of these servers reported; the report stands beside each.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

from tests.stubs.behaviours import room
from tests.stubs.replies import Reply
from tests.stubs.settings import Settings

__all__ = ["REFUSALS", "UNCACHED", "is_marked", "refused", "too_long"]

# Vertex AI, before it had the cache: Mirascope/mirascope issue 618
UNCACHED = "messages.0.content.0.text.cache_control: Extra inputs are not permitted"

_BOUNDS = (
    "minLength", "maxLength", "pattern", "format", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum",
    "multipleOf", "minItems", "maxItems", "uniqueItems",
)  # fmt: skip


def refused(body: dict[str, Any], settings: Settings) -> Reply | None:
    """Return why a server with these settings refuses a request; None when it takes it.

    Raises:
        ValueError: the settings name a refusal that is not known.
    """
    if unknown := settings.refuses - REFUSALS.keys() - {"stream"}:
        raise ValueError(f"unknown refusals {sorted(unknown)}")
    replies = (refuse(body) for name, refuse in REFUSALS.items() if name in settings.refuses)
    return next((reply for reply in replies if reply), None)


def too_long(body: dict[str, Any], prompt_tokens: int, settings: Settings) -> Reply | None:
    """Return how a server refuses a prompt that its window does not hold; None when it holds it."""
    window, wanted = settings.context_window, room(body)
    if settings.window_style == "vllm":
        if not window or prompt_tokens + wanted <= window:
            return None
        return _vllm(  # ogx-ai/ogx issue 4534; vllm-project/vllm issue 20409
            f"This model's maximum context length is {window} tokens. However, you requested {prompt_tokens + wanted} "
            f"tokens ({prompt_tokens} in the messages, {wanted} in the completion). "
            "Please reduce the length of the messages or completion."
        )
    if not window or prompt_tokens <= window:
        return None
    if settings.window_style == "llama.cpp":  # ggml-org/llama.cpp pull request 15780; continuedev/continue issue 9797
        error = {
            "code": 400,
            "message": "the request exceeds the available context size, try increasing it",
            "type": "exceed_context_size_error",
            "n_prompt_tokens": prompt_tokens,
            "n_ctx": window,
        }
        return Reply(400, {"error": error})
    return _openai(
        f"This model's maximum context length is {window} tokens. However, your messages resulted in {prompt_tokens} "
        "tokens. Please reduce the length of the messages.",
        param="messages",
        code="context_length_exceeded",
    )


def _openai(message: str, param: str | None = None, code: str | None = None) -> Reply:
    error = {"message": message, "type": "invalid_request_error", "param": param, "code": code}
    return Reply(400, {"error": error})


def _vllm(message: str) -> Reply:
    payload = {"object": "error", "message": message, "type": "BadRequestError", "param": None, "code": 400}
    return Reply(400, payload)


def _bounds(body: dict[str, Any]) -> Reply | None:
    """OpenAI, strict mode: jina-ai/node-DeepResearch issue 79."""
    for context, node in _strict_nodes(body):
        if found := next((keyword for keyword in _BOUNDS if keyword in node), None):
            return _bad_schema(body, context, f"'{found}' is not permitted.")
    return None


def _loose_schema(body: dict[str, Any]) -> Reply | None:
    """OpenAI, strict mode: moeru-ai/xsai issue 202; docker/docker-agent pull request 1871."""
    for context, node in _strict_nodes(body):
        if node.get("type") != "object" and "properties" not in node:
            continue
        if node.get("additionalProperties") is not False:
            return _bad_schema(body, context, "'additionalProperties' is required to be supplied and to be false.")
        for name in node.get("properties", {}):
            if name not in node.get("required", []):
                said = "'required' is required to be supplied and to be an array including every key in properties."
                return _bad_schema(body, context, f"{said} Missing '{name}'.")
    return None


def _bad_schema(body: dict[str, Any], context: tuple[str, ...], problem: str) -> Reply:
    name = body["response_format"]["json_schema"].get("name", "response")
    return _openai(
        f"Invalid schema for response_format '{name}': In context={context!r}, {problem}", param="response_format"
    )


def _strict_nodes(body: dict[str, Any]) -> Iterator[tuple[tuple[str, ...], dict[str, Any]]]:
    wanted = (body.get("response_format") or {}).get("json_schema") or {}
    if wanted.get("strict"):
        yield from _nodes(wanted["schema"])


def _nodes(schema: dict[str, Any], *context: str) -> Iterator[tuple[tuple[str, ...], dict[str, Any]]]:
    """Yield every schema in a schema, with the names on the way to it."""
    yield context, schema
    for keyword in ("properties", "$defs"):
        for name, child in schema.get(keyword, {}).items():
            yield from _nodes(child, *context, keyword, name)
    for number, child in enumerate(schema.get("anyOf", [])):
        yield from _nodes(child, *context, "anyOf", str(number))
    if isinstance(schema.get("items"), dict):
        yield from _nodes(schema["items"], *context, "items")


def _response_format(body: dict[str, Any]) -> Reply | None:
    """A model older than JSON modes: openai-php/client issue 251."""
    return _openai("Unrecognized request argument supplied: response_format") if "response_format" in body else None


def _json_schema(body: dict[str, Any]) -> Reply | None:
    """DeepSeek: llm-exe/llm-exe issue 662; the word that it wants: browserbase/stagehand issue 1204."""
    wanted = (body.get("response_format") or {}).get("type")
    if wanted == "json_schema":
        return _openai("This response_format type is unavailable now", code="invalid_request_error")
    if wanted == "json_object" and "json" not in str(body["messages"]).lower():
        said = "Prompt must contain the word 'json' in some form to use 'response_format' of type 'json_object'."
        return _openai(said, code="invalid_request_error")
    return None


def _json_object(body: dict[str, Any]) -> Reply | None:
    """LM Studio: lmstudio-ai/lmstudio-bug-tracker issue 189; LoadShine/tada issue 16."""
    if (body.get("response_format") or {}).get("type") in (None, "json_schema", "text"):
        return None
    return Reply(400, {"error": "'response_format.type' must be 'json_schema' or 'text'"})


def _system(body: dict[str, Any]) -> Reply | None:
    """The chat template of Gemma, in vLLM: vllm-project/vllm pull request 2964; huggingface/chat-ui issue 1386."""
    roles = [message["role"] for message in body["messages"]]
    return _vllm("System role not supported") if "system" in roles else None


def _neighbours(body: dict[str, Any]) -> Reply | None:
    """The chat template of Mistral, in vLLM: vllm-project/vllm issue 6862."""
    roles = [message["role"] for message in body["messages"] if message["role"] != "system"]
    if all(one != other for one, other in pairwise(roles)):
        return None
    return _vllm(
        "After the optional system message, conversation roles must alternate user/assistant/user/assistant/..."
    )


def _temperature(body: dict[str, Any]) -> Reply | None:
    """OpenAI's reasoning models: gabrii/Cursor-Azure-GPT-5 issue 33; OpenHands/OpenHands issue 4131."""
    if body.get("temperature") in (None, 1):
        return None
    value = f"Unsupported value: 'temperature' does not support {body['temperature']} with this model."
    return _openai(f"{value} Only the default (1) value is supported.", param="temperature", code="unsupported_value")


def _max_tokens(body: dict[str, Any]) -> Reply | None:
    """OpenAI's reasoning models: griptape-ai/ComfyUI-Griptape issue 312."""
    if "max_tokens" not in body:
        return None
    said = "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."
    return _openai(said, param="max_tokens", code="unsupported_parameter")


def _max_completion_tokens(body: dict[str, Any]) -> Reply | None:
    """An older vLLM: voideditor/void issue 128; 1Panel-dev/MaxKB issue 2912."""
    name = "max_completion_tokens"
    if name not in body:
        return None
    problem = {"type": "extra_forbidden", "loc": ("body", name), "msg": "Extra inputs are not permitted"}
    return _vllm(str([{**problem, "input": body[name]}]))


def _stream_options(body: dict[str, Any]) -> Reply | None:
    """Mistral, with status 422: dnakov/anon-kode issue 53; the status: editor-code-assistant/eca issue 231."""
    if "stream_options" not in body:
        return None
    name, value = next(iter(body["stream_options"].items()))
    problem = {"type": "extra_forbidden", "loc": ["body", "stream_options", name]}
    detail = [{**problem, "msg": "Extra inputs are not permitted", "input": value}]
    error = {"object": "error", "message": {"detail": detail}, "type": "invalid_request_error"}
    return Reply(422, {**error, "param": None, "code": None})


def _frequency_penalty(body: dict[str, Any]) -> Reply | None:
    """xAI, which has its own names of fields: QuantumNous/new-api pull request 6081; BerriAI/litellm issue 14056."""
    if "frequency_penalty" not in body:
        return None
    said = f"Model {body.get('model', 'stub')} does not support parameter frequencyPenalty."
    return Reply(400, {"code": "Client specified an invalid argument", "error": said})


def is_marked(body: dict[str, Any]) -> bool:
    """Return whether a request has a mark for a cache."""
    return '"cache_control"' in json.dumps(body)


def _cache_control(body: dict[str, Any]) -> Reply | None:
    return _openai(UNCACHED) if is_marked(body) else None


def _model(body: dict[str, Any]) -> Reply:
    """LM Studio, with too little memory: continuedev/continue issue 10150. No other form of the request helps."""
    return Reply(400, {"error": f'Failed to load model "{body.get("model", "stub")}". Error: Error loading model.'})


REFUSALS: dict[str, Callable[[dict[str, Any]], Reply | None]] = {
    "bounds": _bounds,
    "loose_schema": _loose_schema,
    "response_format": _response_format,
    "json_schema": _json_schema,
    "json_object": _json_object,
    "system": _system,
    "neighbours": _neighbours,
    "temperature": _temperature,
    "max_tokens": _max_tokens,
    "max_completion_tokens": _max_completion_tokens,
    "stream_options": _stream_options,
    "frequency_penalty": _frequency_penalty,
    "cache_control": _cache_control,
    "model": _model,
}

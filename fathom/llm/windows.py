"""How many tokens a model holds, prompt and answer together: by its server, by a refusal, else by litellm's table.

Servers tell it in the list of their models, each under a name of its own. Ollama's list does not: it has a window of
4,096 tokens unless it is asked for another, and leaves out the start of what is longer.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from fathom.budget.prices import model_entry
from fathom.errors import ContextOverflow
from fathom.network import TooLarge, limit_body

if TYPE_CHECKING:
    import httpx

SECONDS = 5.0  # for a question to the server about itself
MOST_BYTES = 2**24  # of its answer: gateways list thousands of models
LEAST_WINDOW = 1_024  # with less, a number in a refusal is none
_TELLS_NOTHING = (TimeoutError, TooLarge, ValueError, KeyError, TypeError, AttributeError)
OLLAMA_DEFAULT = 4_096  # https://docs.ollama.com/context-length
# By server: llama.cpp (within `meta`), vLLM and SGLang, LM Studio, OpenRouter and Together, Groq.
_NAMES = ("n_ctx", "max_model_len", "loaded_context_length", "max_context_length", "context_length", "context_window")
# How servers say that a prompt does not fit: OpenAI, vLLM, llama.cpp, LM Studio, gateways.
_TOO_LONG = re.compile(
    r"context_length_exceeded|maximum context length|context (?:window|size|length)|exceed_context_size|"
    r"too many tokens|(?:prompt|input|string) (?:is )?too long",
    re.IGNORECASE,
)
_SAID = re.compile(
    r'"n_ctx"\s*:\s*(?P<n_ctx>\d+)|context (?:window|size|length)[^\d]{0,30}(?P<tokens>\d[\d,]*)(?P<thousands>k\b)?',
    re.IGNORECASE,
)


def table_window(model: str) -> int | None:
    """Return the window that litellm's table has for a model."""
    tokens = model_entry(model).get("max_input_tokens")
    return tokens if isinstance(tokens, int) else None


def table_answer(model: str) -> int | None:
    """Return the longest answer that litellm's table has for a model, in tokens."""
    tokens = model_entry(model).get("max_output_tokens")
    return tokens if isinstance(tokens, int) else None


async def served_window(http: httpx.AsyncClient, name: str) -> int | None:
    """Return the window that an OpenAI-compatible server gives for a model in the list of its models."""
    import httpx

    try:
        listed = (await _asked(http, "GET", "models"))["data"]
        entries = [entry for entry in listed if isinstance(entry, dict)]
    except (httpx.HTTPError, httpx.InvalidURL, *_TELLS_NOTHING):
        return None
    named = [entry for entry in entries if entry.get("id") == name or name in (entry.get("aliases") or ())]
    chosen = named or (entries if len(entries) == 1 else [])  # a server of one model answers to any name
    return next(filter(None, map(_window, chosen)), None)


def _window(entry: Mapping[str, Any]) -> int | None:
    meta = entry.get("meta")
    places = [meta if isinstance(meta, dict) else {}, entry]
    found = [place.get(name) for name in _NAMES for place in places]
    told = next((tokens for tokens in found if isinstance(tokens, int) and tokens > 0), None)
    return told or (OLLAMA_DEFAULT if entry.get("owned_by") == "library" else None)


async def ollama_window(http: httpx.AsyncClient, name: str) -> int | None:
    """Return the window that a model was trained for, as Ollama gives it."""
    import httpx

    try:
        known = (await _asked(http, "POST", "api/show", json={"model": name}))["model_info"]
        return next((int(value) for key, value in known.items() if key.endswith(".context_length")), None)
    except (httpx.HTTPError, httpx.InvalidURL, *_TELLS_NOTHING):
        return None


async def _asked(http: httpx.AsyncClient, method: str, path: str, **options: Any) -> Any:
    """Return what a server says about itself, within `SECONDS` and `MOST_BYTES`."""
    async with asyncio.timeout(SECONDS), http.stream(method, path, **options) as response:
        limit_body(response, MOST_BYTES)
        response.raise_for_status()
        return json.loads(await response.aread())


def overflow(status: int, text: str, message: str) -> ContextOverflow | None:
    """Return the error of a refusal that says that the prompt is too long; None where it says something else."""
    if status != 413 and not (status in (400, 500) and _TOO_LONG.search(text)):
        return None
    error = ContextOverflow(message)
    error.window = _told_window(text)
    return error


def _told_window(text: str) -> int | None:
    """Return the window that a refusal tells."""
    if not (found := _SAID.search(text)):
        return None
    tokens = int((found["n_ctx"] or found["tokens"]).replace(",", "")) * (1_000 if found["thousands"] else 1)
    return tokens if tokens >= LEAST_WINDOW else None

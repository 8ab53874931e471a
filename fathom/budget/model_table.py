"""What is known of models before they are called: litellm's table, from its file, since importing litellm is slow."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

_FILE = "model_prices_and_context_window_backup.json"


@lru_cache(maxsize=100)
def model_entry(model: str) -> Mapping[str, object]:
    """Return litellm's entry of a model, by its name with or without its provider; empty for an unknown one.

    `litellm_provider` and `mode`, such as `chat`, tell how it is called, `input_cost_per_token` and others what it
    costs in US dollars, `supports_reasoning` that it thinks before it answers.
    """
    spec = importlib.util.find_spec("litellm")
    assert spec and spec.origin
    table = json.loads(Path(spec.origin).with_name(_FILE).read_bytes())
    entry: Mapping[str, object] = table.get(model) or table.get(model.partition("/")[2]) or {}
    return entry


def provider_and_name(model: str) -> tuple[str, str]:
    """Return a model's provider, named or known from the table, and its name there."""
    provider, slash, name = model.partition("/")
    return (provider, name) if slash else (str(model_entry(model).get("litellm_provider") or "openai"), model)

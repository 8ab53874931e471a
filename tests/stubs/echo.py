"""Providers that say too much: a text added to every error, to every page and to whatever a model answers."""

from __future__ import annotations

import json
from typing import Any

__all__ = ["echoing"]

_SAID = {
    "message", "error",  # errors
    "title", "raw_content",  # pages
    "plan_title", "description", "input", "summary_title", "summary", "reasoning", "heading", "focus",  # answers
}  # fmt: skip


def echoing(payload: Any, said: str) -> Any:
    """Return a payload in which every text of a person's or a page's ends with what is to be said."""
    if isinstance(payload, list):
        return [echoing(item, said) for item in payload]
    if not isinstance(payload, dict):
        return payload
    return {name: _echo(name, value, said) for name, value in payload.items()}


def _echo(name: str, value: Any, said: str) -> Any:
    if not isinstance(value, str):
        return echoing(value, said)
    if name == "content" and value.startswith("{"):
        return json.dumps(echoing(json.loads(value), said))
    return f"{value} {said}" if name in _SAID or name == "content" else value

"""Tokens as models count them: the cl100k encoding, from the table that litellm brings along; nothing is downloaded."""

from __future__ import annotations

import functools
import importlib.util
import os
from pathlib import Path
from typing import Any


def count(text: str) -> int:
    """Return the number of tokens."""
    return len(_encoding().encode(text, disallowed_special=()))


def truncated(text: str, limit: int) -> str:
    """Return the first tokens of a text."""
    tokens = _encoding().encode(text, disallowed_special=())
    return text if len(tokens) <= limit else str(_encoding().decode(tokens[:limit]))


@functools.cache
def _encoding() -> Any:
    found = importlib.util.find_spec("litellm")
    assert found is not None and found.origin is not None
    os.environ.setdefault("TIKTOKEN_CACHE_DIR", str(Path(found.origin).parent / "litellm_core_utils" / "tokenizers"))
    import tiktoken

    return tiktoken.get_encoding("cl100k_base")

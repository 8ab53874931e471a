"""What other research tools ask of the same providers: OpenAI's embeddings, and a search that returns whole pages.

`pages` is the interface that gpt-researcher calls its custom retriever.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from typing import Any
from zlib import crc32

from tests.stubs.replies import Reply
from tests.stubs.settings import Settings
from tests.stubs.tavily import hits

__all__ = ["embeddings", "pages"]

_DIMENSIONS = 16  # so few that a question is near to the texts about it


def embeddings(body: dict[str, Any]) -> Reply:
    """Return a vector of length 1 for each text; texts with the same words have nearly the same one."""
    texts = [body["input"]] if isinstance(body["input"], str) else body["input"]
    data = [{"object": "embedding", "index": n, "embedding": _vector(text)} for n, text in enumerate(texts)]
    tokens = sum(len(text.encode()) // 4 for text in texts)
    usage = {"prompt_tokens": tokens, "total_tokens": tokens}
    return Reply(200, {"object": "list", "data": data, "model": body["model"], "usage": usage}, usage=usage)


def _vector(text: str) -> list[float]:
    counted = Counter(crc32(word.encode()) % _DIMENSIONS for word in re.findall(r"\w+", text.lower()))
    length = math.sqrt(sum(count * count for count in counted.values())) or 1.0
    return [counted[place] / length for place in range(_DIMENSIONS)]


def pages(query: dict[str, str], settings: Settings) -> Reply:
    """Return the pages that a query finds, with their texts."""
    found = hits(query["query"], 5, settings)
    return Reply(200, [{"url": hit.url, "title": hit.title, "raw_content": hit.text} for hit in found])

"""Retrieval for the engine's `search` operation: the index of the documents tool, over a corpus in one file."""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import Any

from fathom.tools.documents.index import Index
from fathom.tools.documents.normal import DocumentSection, ReadDocument


def search(request: dict[str, Any]) -> dict[str, list[str]]:
    """Return the `k` best document ids of each query; the corpus holds JSON lines with `_id`, `title` and `text`."""
    path = Path(request["corpus"]).resolve()
    status = path.stat()
    index = index_of(path, status.st_size, status.st_mtime_ns)
    return {
        query_id: [index.document(match.document).url for match in index.search(query, request["k"])]
        for query_id, query in request["queries"].items()
    }


@functools.lru_cache(maxsize=2)
def index_of(path: Path, size: int, modified: int) -> Index:
    """Read and index a corpus; size and time of the file see to it that a changed one is another one."""
    documents: dict[str, ReadDocument] = {}
    with path.open(encoding="utf-8") as lines:
        for line in filter(str.strip, lines):
            document = json.loads(line)
            documents[str(document["_id"])] = ReadDocument(
                document.get("title") or "", [DocumentSection(document["text"])]
            )
    return Index.build(documents)

"""Reading a log: each entry is an item, with the lines that belong to it, such as a trace, below it."""

from __future__ import annotations

import re
from collections.abc import Iterator

from fathom.tools.documents.normal import DocumentSection

SAMPLE_CHARS = 20_000  # at the start of a text, which show whether it is a log
_ENTRY = re.compile(
    r"[\[(<]?(?:\d{4}[-/.]\d\d[-/.]\d\d[T ]?|\d\d[-/.]\d\d[-/.]\d{2,4} |\d\d:\d\d:\d\d|[A-Z][a-z]{2} [ \d]\d \d\d:\d\d"
    r"|\d{1,3}(?:\.\d{1,3}){3} \S+ \S+ \[)"
)


def is_log(text: str) -> bool:
    """Return whether most lines of a text, and at least three, begin with a time or as a web server's log does."""
    lines = [line for line in text[:SAMPLE_CHARS].split("\n") if line.strip() and not line[0].isspace()]
    entries = sum(bool(_ENTRY.match(line)) for line in lines)
    return entries > 2 and 2 * entries > len(lines)


def read_log(text: str) -> list[DocumentSection]:
    """Return the entries of a log."""
    return [DocumentSection("\n".join(_items(text)))]


def _items(text: str) -> Iterator[str]:
    for line in filter(str.strip, text.split("\n")):
        yield f"- {line}" if _ENTRY.match(line) else f"  {line}"

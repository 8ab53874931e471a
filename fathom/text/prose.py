"""Whether a text that should be prose is something else."""

from __future__ import annotations

import re

from fathom.text.citations import without_citations
from fathom.text.sentences import fences

_OPENS = re.compile(r"[{\[]\s*(?:\"[^\"\n]*\"\s*(?:[:,]|\](?!\())|[{\[]\s*\"|\Z)|\"\w+\"[ \t]*:\s*[\"\[{\d]")
_CLOSES = re.compile(r"[}\],:{\[\"]\s*\Z")
_WORDS = re.compile(r"[^\W\d_]{2,}")
_HEADING = re.compile(r"^[ \t]*#{1,6}[ \t].*$", re.MULTILINE)
_MOST = 0.5  # of a text's characters, in lines of JSON


def not_prose(text: str) -> str:
    """Return what a text is instead of prose, such as `JSON`; empty where it is prose, perhaps with code in it."""
    outside, position = "", 0
    for fence in fences(text):
        outside += text[position : fence.start] + "\n"
        position = fence.end
    outside = (outside + text[position:]).strip()
    lines = [line for line in outside.splitlines() if line.strip()]
    json = [line for line in lines if _OPENS.match(line.strip()) and _CLOSES.search(without_citations(line))]
    if json and (json[0] is lines[0] or sum(map(len, json)) > _MOST * sum(map(len, lines))):
        return "JSON"
    if position and not _WORDS.search(_HEADING.sub("", outside)):
        return "only a code block"
    return ""

"""Whether a text that should be prose is something else."""

from __future__ import annotations

import re

from fathom.text.fences import fences

_JSON = re.compile(r"^[ \t]*(?:[{\[]\s*(?:[{\"]|\Z)|\"\w+\"[ \t]*:)", re.MULTILINE)
_WORDS = re.compile(r"[^\W\d_]{2,}")
_HEADING = re.compile(r"^[ \t]*#{1,6}[ \t].*$", re.MULTILINE)


def not_prose(text: str) -> str:
    """Return what a text is instead of prose, such as `JSON`; empty where it is prose, perhaps with code in it."""
    outside, position = "", 0
    for fence in fences(text):
        outside += text[position : fence.start] + "\n"
        position = fence.end
    outside += text[position:]
    if _JSON.search(outside):
        return "JSON"
    if position and not _WORDS.search(_HEADING.sub("", outside)):
        return "only a code block"
    return ""

"""Parts of a question that look like orders to a model, like marks of a chat template, or like code.

A question may be about such things, so nothing is refused or removed on this word: the planner is told which parts they
are, and a search is made with their words alone. Nothing that a question says is ever run.
"""

from __future__ import annotations

import re

MOST = 5  # parts that are named
CHARS = 120  # of a part that is named

_RULES = (
    r"(?:instructions?|prompts?|rules|guidelines|directives|safeguards|anweisung\w*|regeln|vorgaben|consignes|"
    r"instrucciones)"
)
_PATTERNS = [
    # Orders, in English, German, French and Spanish.
    r"\b(?:ignore|disregard|forget|override|bypass|ignorez|oubliez|ignora|olvida|ignorier\w*|vergiss|missachte\w*)\b"
    rf"[^.\n]{{0,50}}\b(?:{_RULES}|(?:everything|all|what was)[^.\n]{{0,20}}\b(?:above|before|said))\b",
    r"\b(?:reveal|print|repeat|show|output|leak)\b[^.\n]{0,30}\b(?:your|system|initial|hidden)\b"
    rf"[^.\n]{{0,20}}\b{_RULES}\b",
    r"\b(?:you are now|from now on,? you|pretend (?:to be|that you))\b",
    r"\bact as (?:an? )?(?:unrestricted|unfiltered|evil|root|dan)\b",
    r"\b(?:new|updated|real) instructions?\s*:|\b(?:developer|debug|god|jailbreak) mode\b",
    # Marks of chat templates, and of the sides of a conversation.
    r"<\|[\w ]{1,40}\|>|\[/?(?:INST|SYS)\]|<</?SYS>>|^[ \t]*(?:system|assistant|developer)[ \t]*:",
    r"^#{2,}[ \t]*(?:instructions?|system|response)\b",
    r"</?(?:system|source|instructions?|prompt|tool_call|function_calls?)\b[^>\n]*>",
    # Code and commands.
    r"```.*?(?:```|\Z)|<(?:script|iframe|img|svg)\b[^>\n]*>?|<\?php\b|\bjavascript:\S+",
    r"\b(?:os\.system|subprocess\.\w+|eval|exec|__import__)\s*\([^)\n]*\)?",
    r"\$\([^)\n]*\)|\$\{[^}\n]*\}|\{\{.*?\}\}|\{%.*?%\}|:\(\)\s*\{",
    r"\brm\s+-[rf]+\b[^\n]{0,40}|\b(?:curl|wget)\s+(?:-\w+\s+)*https?:\S+(?:\s*\|\s*\w+)?",
    r"\b(?:drop|truncate)\s+table\b|\bunion\s+(?:all\s+)?select\b|'\s*or\s+'?\d+'?\s*=|;\s*--",
]
_MARKER = re.compile("|".join(_PATTERNS), re.IGNORECASE | re.MULTILINE | re.DOTALL)
_NO_WORDS = re.compile(r"<\|[\w ]{1,40}\|>|\[/?(?:INST|SYS)\]|[^\w\s.,:'?!%&@/+-]+|(?<!\w)[:'./-]+(?!\w)")


def markers(text: str) -> list[str]:
    """Return the parts of a text that look like orders to a model or like code, each on a line, at most `MOST`."""
    found = (" ".join(part[0].split())[:CHARS] for part in _MARKER.finditer(text))
    return list(dict.fromkeys(filter(None, found)))[:MOST]


def as_words(query: str) -> str:
    """Return a search query as plain words if a part of it looks like an order or like code, else as it is."""
    return " ".join(_NO_WORDS.sub(" ", query).split()) if _MARKER.search(query) else query

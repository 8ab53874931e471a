"""A question by its kind: the step that answers it, and the words that its answer is likely to stand among."""

from __future__ import annotations

import re
from typing import NamedTuple

from fathom.extractive.wording import is_english, keywords

QUERY_WORDS = 8
DEFINED_WORDS = 2  # "What is X" asks for a definition when X has no more key words than this

_SEARCHED = {"how": ("steps order",), "why": ("reasons", "cause")}
_HOW = re.compile(r"how (?:do|does|did|is|are|was|were|can|could|should|to)\b", re.IGNORECASE)
_WHAT_IS = re.compile(r"what(?:'s| is| are)\b(?!.*\bof\b)", re.IGNORECASE)


class Part(NamedTuple):
    """Something to find out. `essential`: the question names it; others only help."""

    title: str
    description: str
    queries: list[str]
    essential: bool = True
    topic: str = ""  # a noun phrase for it


def part_of(plain: str, title: str) -> Part:
    """Return the step that a question makes by itself.

    Args:
        plain: the question without request and question mark.
        title: its statement form.
    """
    words = keywords(plain)
    kind = plain.split(maxsplit=1)[0].lower() if plain else ""
    if not is_english(plain):
        return Part(title, f"Find the passages that answer: {plain}?", [plain, title, *words[:1]], topic=title)
    asked = title.endswith("?") or kind in ("how", "why", "what", "who", "when", "where", "which")
    more: tuple[str, ...] = ()
    if kind != "how" or _HOW.match(plain):
        more = _SEARCHED.get(kind, ())
    if _WHAT_IS.match(plain) and len(words) <= DEFINED_WORDS:
        more = ("definition", "meaning")
    subject = " ".join(words[:QUERY_WORDS]) or plain
    return Part(
        title,
        f"Find the passages that answer: {plain}?" if asked else f"Find what is said about {plain}.",
        [plain, *(f"{subject} {word}" for word in more)],
        topic=title,
    )

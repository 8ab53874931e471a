"""A question by its kind: what answers it, and what else a reader of the answer will ask."""

from __future__ import annotations

import re
from typing import NamedTuple

from fathom.llm.extractive.grammar import nominal
from fathom.llm.extractive.wording import capitalized, decapitalized, is_english, keywords, shorten

__all__ = ["Part", "aspects_of"]

QUERY_WORDS = 6
ASPECT_WORDS = 6  # a longer question says itself what it wants
DEFINED_WORDS = 3  # "What is X" asks for a definition when X has no more key words than this

_SEARCHED = {
    "how": ("steps order", "mechanism"),
    "why": ("reasons", "cause"),
    "when": ("date year", "history"),
    "where": ("place location", "country"),
}


class Part(NamedTuple):
    """Something to find out. `essential`: the question names it; others are aspects it usually has."""

    title: str
    description: str
    queries: list[str]
    essential: bool = True
    topic: str = ""  # a noun phrase for it


def aspects_of(plain: str, title: str) -> list[Part]:
    """Return the question itself, then what usually goes with a question of its kind.

    Args:
        plain: the question without request and question mark.
        title: its statement form.
    """
    words = keywords(plain)
    subject = " ".join(words[:QUERY_WORDS]) or plain
    kind = plain.split(maxsplit=1)[0].lower() if plain else ""
    defines = re.match(r"what(?:'s| is| are)\b", plain, re.IGNORECASE) is not None
    if not is_english(plain):
        return [Part(title, f"Find the passages that answer: {plain}?", [plain, title, *words[:1]], topic=title)]
    asked = title.endswith("?") or kind in ("how", "why", "what", "who", "when", "where", "which")
    core = Part(
        title,
        f"Find the passages that answer: {plain}?" if asked else f"Find what is said about {plain}.",
        [
            plain,
            *(
                f"{subject} {more}"
                for more in _SEARCHED.get(kind, ("definition", "meaning") if defines or not asked else ())
            ),
        ],
        topic=title,
    )
    if len(words) > ASPECT_WORDS:
        return [core]
    if kind == "how" and not title.endswith("?") and not title.startswith("How many"):
        return [core, *_of_how(shorten(nominal(plain), 7), subject)]
    if kind == "why":
        return [core, *_of_why(subject, words)]
    if defines or not asked:
        return [core, *_of_what(decapitalized(title, plain), subject, definition=len(words) <= DEFINED_WORDS)]
    return [core]


def _of_how(topic: str, subject: str) -> list[Part]:
    return [
        Part(
            f"{topic}: exceptions and special cases",
            f"Find when the usual course changes or fails, and what happens then: {topic}.",
            [f"{subject} exceptions", f"{subject} special cases failure"],
            essential=False,
            topic=topic,
        ),
        Part(
            f"{topic}: what controls it",
            f"Find the settings, rules or conditions that change it: {topic}.",
            [f"{subject} rules conditions", f"{subject} customization"],
            essential=False,
            topic=topic,
        ),
    ]


def _of_why(subject: str, words: list[str]) -> list[Part]:
    topic = " ".join(words[:4])
    return [
        Part(
            f"Evidence on {topic}",
            f"Find observations, figures and studies on {topic}.",
            [f"{subject} evidence", f"{subject} study data"],
            essential=False,
            topic=topic,
        ),
        Part(
            f"Consequences of {topic}",
            f"Find what follows from {topic}.",
            [f"{subject} consequences", f"{subject} effects"],
            essential=False,
            topic=topic,
        ),
    ]


def _of_what(topic: str, subject: str, *, definition: bool) -> list[Part]:
    if not definition:
        return []
    works = "work" if topic.endswith("s") and not topic.endswith("ss") else "works"
    return [
        Part(
            f"How {topic} {works}",
            f"Find how {topic} {works}: its parts and what each of them does.",
            [f"{subject} how it works", f"{subject} parts structure"],
            essential=False,
            topic=topic,
        ),
        Part(
            f"Uses and limits of {topic}",
            f"Find what {topic} can be used for, and where it has its limits.",
            [f"{capitalized(subject)} uses", f"{subject} limits"],
            essential=False,
            topic=topic,
        ),
    ]

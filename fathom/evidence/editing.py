"""A section without the sentences that its sources do not carry, or with a mark behind each."""

from __future__ import annotations

import re
from collections.abc import Collection

from fathom.evidence.claims import row_of
from fathom.text.citations import without_citations
from fathom.text.sentences import Sentence, split_sentences

MARK = "*(not supported by the sources)*"


def without(markdown: str, claims: Collection[str]) -> str:
    """Return a section without the sentences that make some claims, and without what that leaves empty.

    Args:
        markdown: the section, citing by id.
        claims: sentences as `claims_of` returns them.
    """
    for sentence in reversed(split_sentences(markdown)):
        if sentence.kind == "table" and _claim(sentence) in claims:  # the whole line: an empty one would end the table
            start = markdown.rfind("\n", 0, sentence.start) + 1
            end = markdown.find("\n", sentence.end) + 1 or len(markdown)
            markdown = markdown[:start] + markdown[end:]
        elif _claim(sentence) in claims:
            before, after = markdown[: sentence.start].rstrip(" "), markdown[sentence.end :].lstrip(" ")
            between = " " if before and after and not before.endswith("\n") and not after.startswith("\n") else ""
            markdown = before + between + after
    markdown = re.sub(r"^[ \t]*(?:[-*+]|\d+[.)])[ \t]*$\n?", "", markdown, flags=re.MULTILINE)
    markdown = re.sub(r"^\|[^\n]*\|[ \t]*\n\|[-: |]+\|[ \t]*(?:\n(?!\|)|\Z)", "", markdown, flags=re.MULTILINE)
    return re.sub(r"\n{3,}", "\n\n", _without_bare_headings(markdown)).strip()


def _without_bare_headings(markdown: str) -> str:
    """Take out the headings below which there is nothing, not even a heading of a lower level."""
    sentences = split_sentences(markdown)
    for number in range(len(sentences) - 1, -1, -1):
        sentence, following = sentences[number], sentences[number + 1 :]
        level = _level(sentence)
        if level and (not following or 0 < _level(following[0]) <= level):
            markdown = markdown[: sentence.start] + markdown[sentence.end :].lstrip("\n")
            del sentences[number]
    return markdown


def _level(sentence: Sentence) -> int:
    """Return the level of a heading with number signs; 0 for anything else."""
    return len(sentence.text) - len(sentence.text.lstrip("#")) if sentence.kind == "heading" else 0


def marked(markdown: str, claims: Collection[str]) -> str:
    """Return a section with a mark behind the sentences that make some claims; see `without`."""
    for sentence in reversed(split_sentences(markdown)):
        if _claim(sentence) in claims and not markdown[sentence.end :].startswith(f" {MARK}"):
            end = sentence.start + len(sentence.text.rstrip(" |")) if sentence.kind == "table" else sentence.end
            markdown = f"{markdown[:end]} {MARK}{markdown[end:]}"
    return markdown


def _claim(sentence: Sentence) -> str:
    if sentence.kind == "table":
        return row_of(sentence.text)
    return without_citations(sentence.clean).strip()

"""A section without the sentences that its sources do not carry, or with a mark behind each."""

from __future__ import annotations

import re
from collections.abc import Collection

from fathom.citations import without_citations
from fathom.evidence.claims import row_of
from fathom.text.sentences import Sentence, split_sentences

__all__ = ["MARK", "marked", "without"]

MARK = "*(not supported by the sources)*"


def without(markdown: str, claims: Collection[str]) -> str:
    """Return a section without the sentences that make some claims, and without what that leaves empty.

    Args:
        markdown: the section, citing by id.
        claims: sentences as `claims_of` returns them.
    """
    for sentence in reversed(split_sentences(markdown)):
        if _claim(sentence) in claims:
            markdown = (
                markdown[: sentence.start].rstrip(" ") + _gap(markdown, sentence) + markdown[sentence.end :].lstrip(" ")
            )
    markdown = re.sub(r"^[ \t]*(?:[-*+]|\d+[.)])[ \t]*$\n?", "", markdown, flags=re.MULTILINE)
    markdown = re.sub(r"^#{1,6} [^\n]*\n+(?=#|\Z)", "", markdown, flags=re.MULTILINE)
    return re.sub(r"\n{3,}", "\n\n", markdown).strip()


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


def _gap(markdown: str, sentence: Sentence) -> str:
    """Return what stands between the neighbours of a sentence that is taken out."""
    before, after = markdown[: sentence.start].rstrip(" "), markdown[sentence.end :].lstrip(" ")
    return " " if before and after and not before.endswith("\n") and not after.startswith("\n") else ""

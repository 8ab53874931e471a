"""The sentences of a report that claim something: found with the sources they cite, taken out, or marked.

A citation belongs to the sentence it ends. A sentence without one takes those of the next sentence of its paragraph or
list item that has some: a citation at the end of a paragraph is for all that was said since the one before it. A row
of a table has only its own.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

from fathom.facts.extraction import facts_of, plain
from fathom.models import ReportSection
from fathom.text.citations import cited_ids, without_citations
from fathom.text.sentences import Sentence, split_sentences
from fathom.text.terms import query_terms

FEW_TERMS = 2  # a sentence with no more words of topic, without a number, name or citation, only connects others
MARK = "*(not supported by the sources)*"
_OF_THE_REPORT = re.compile(
    r"(?:this|the (?:following|next|previous)|these|below|above|in (?:this|the following))\b"
    r"(?:\W+\w+){0,3}?\W+(?:section|report|chapter|table|list|overview|summary|answer|points?|findings)\b",
    re.IGNORECASE,
)
_CELL_RULE = re.compile(r"[\s|:-]+\Z")
_NUMBERED = re.compile(r"\s*\[(?:S[0-9a-f]{6,64}|\d{1,4})\]")


class Statement(NamedTuple):
    """A sentence that claims something, without its citations, and the position of its section, from 0."""

    section: int
    sentence: str
    source_ids: tuple[str, ...]


def claims_of(sections: Sequence[ReportSection]) -> list[Statement]:
    """Return the claims of a report's sections in reading order; headings and code do not count.

    Neither is a sentence that has no citation of its own and only connects others: it ends in a colon or question
    mark, is about the report itself ("This section ..."), or has at most two words of topic and no number or name.
    """
    return [Statement(n, *found) for n, section in enumerate(sections) for found in _statements(section.markdown)]


def claim_text(sentence: Sentence) -> str:
    """Return what a sentence of a report claims: itself without citations, or the cells of a row in a line."""
    if sentence.kind != "table":
        return without_citations(sentence.clean).strip()
    cells = (cell.strip() for cell in re.split(r"(?<!\\)[|\t]", without_citations(sentence.text)))
    return " | ".join(cell for cell in cells if cell)


def without(markdown: str, claims: Collection[str]) -> str:
    """Return a section without some claims, given as `claims_of` returns them, and without what that leaves empty."""
    for sentence in reversed(split_sentences(markdown)):
        if claim_text(sentence) not in claims:
            continue
        if sentence.kind == "table":  # the whole line: an empty one would end the table
            start = markdown.rfind("\n", 0, sentence.start) + 1
            end = markdown.find("\n", sentence.end) + 1 or len(markdown)
            markdown = markdown[:start] + markdown[end:]
        else:
            before, after = markdown[: sentence.start].rstrip(" "), markdown[sentence.end :].lstrip(" ")
            between = " " if before and after and not before.endswith("\n") and not after.startswith("\n") else ""
            markdown = before + between + after
    markdown = re.sub(r"^[ \t]*(?:[-*+]|\d+[.)])[ \t]*$\n?", "", markdown, flags=re.MULTILINE)
    markdown = re.sub(r"^\|[^\n]*\|[ \t]*\n\|[-: |]+\|[ \t]*(?:\n(?!\|)|\Z)", "", markdown, flags=re.MULTILINE)
    return re.sub(r"\n{3,}", "\n\n", _without_bare_headings(markdown)).strip()


def marked(markdown: str, claims: Collection[str]) -> str:
    """Return a section with a mark behind the sentences that make some claims; see `without`."""
    for sentence in reversed(split_sentences(markdown)):
        if claim_text(sentence) in claims and not markdown[sentence.end :].startswith(f" {MARK}"):
            end = sentence.start + len(sentence.text.rstrip(" |")) if sentence.kind == "table" else sentence.end
            markdown = f"{markdown[:end]} {MARK}{markdown[end:]}"
    return markdown


def comparable(text: str) -> str:
    """Return a text without citations, layout and escapes, so that a sentence is found again in the rendered report."""
    return " ".join(re.sub(r"[|\s]+", " ", _NUMBERED.sub("", text.replace("\\", ""))).split())


def _statements(markdown: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    sentences = split_sentences(markdown)
    for number, sentence in enumerate(sentences):
        own, text = cited_ids(sentence.text), claim_text(sentence)
        if sentence.kind in ("heading", "code", "rule"):
            continue
        if sentence.kind == "table":
            if text and not _is_head(sentences, number):
                yield text, tuple(own)
        elif re.search(r"\w", text) and (own or not _connects(text)):
            later = (cited_ids(s.text) for s in sentences[number + 1 :] if s.paragraph == sentence.paragraph)
            yield text, tuple(own or next(filter(None, later), ()))


def _is_head(sentences: Sequence[Sentence], number: int) -> bool:
    """Whether a row names the columns, or is the rule below those."""
    following = sentences[number + 1].text if number + 1 < len(sentences) else ""
    return any(_CELL_RULE.match(text) and "-" in text for text in (sentences[number].text, following))


def _connects(sentence: str) -> bool:
    if sentence.endswith((":", "?", "：", "？")) or _OF_THE_REPORT.match(plain(sentence)):
        return True
    facts = facts_of(sentence)
    telling = facts.numbers or facts.dates or any(not name.opening for name in facts.names)
    return len(query_terms(sentence)) <= FEW_TERMS and not telling


def _without_bare_headings(markdown: str) -> str:
    """Take out headings with nothing below them, not even a heading of a lower level."""
    sentences = split_sentences(markdown)
    for number in range(len(sentences) - 1, -1, -1):
        sentence, following = sentences[number], sentences[number + 1 :]
        level = _level(sentence)
        if level and (not following or 0 < _level(following[0]) <= level):
            markdown = markdown[: sentence.start] + markdown[sentence.end :].lstrip("\n")
            del sentences[number]
    return markdown


def _level(sentence: Sentence) -> int:
    return len(sentence.text) - len(sentence.text.lstrip("#")) if sentence.kind == "heading" else 0

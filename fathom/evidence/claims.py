"""The sentences of a report that claim something, each with the sources it cites.

A citation belongs to the sentence it ends. A sentence without one takes those of the next sentence of its paragraph or
list item that has some: a citation at the end of a paragraph stands for what was said since the one before it. Rows of
a table have their own only.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from fathom.facts.extraction import facts_of, plain
from fathom.models import ReportSection
from fathom.text.citations import cited_ids, without_citations
from fathom.text.sentences import Sentence, split_sentences
from fathom.text.terms import query_terms

FEW_TERMS = 2  # a sentence with no more words of topic, without a number, name or citation, only connects others
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
    """Return the claims of a report's sections in reading order; headings, code and mere connectives are none.

    A sentence without a citation of its own is a mere connective when it ends in a colon or question mark, speaks of
    the report itself ("This section ..."), or has at most two words of topic and neither number nor name.
    """
    return [
        Statement(position, sentence, ids)
        for position, section in enumerate(sections)
        for sentence, ids in _statements(section.markdown)
    ]


def comparable(text: str) -> str:
    """Return a text in a form in which a sentence is found again in the rendered report: without citations."""
    return " ".join(re.sub(r"[|\s]+", " ", _NUMBERED.sub("", text)).split())


def _statements(markdown: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    sentences = split_sentences(markdown)
    for number, sentence in enumerate(sentences):
        if sentence.kind in ("heading", "code", "rule"):
            continue
        if sentence.kind == "table":
            if not _is_head(sentences, number) and (row := row_of(sentence.text)):
                yield row, tuple(cited_ids(sentence.text))
            continue
        own = cited_ids(sentence.text)
        text = without_citations(sentence.clean).strip()
        if re.search(r"\w", text) and (own or not _connects(text)):
            yield text, tuple(own or _following(sentences, number))


def _following(sentences: Sequence[Sentence], number: int) -> list[str]:
    """Return the citations of the next sentence of the same block that has some."""
    block = sentences[number].paragraph
    later = (cited_ids(s.text) for s in sentences[number + 1 :] if s.paragraph == block)
    return next((ids for ids in later if ids), [])


def _is_head(sentences: Sequence[Sentence], number: int) -> bool:
    """Whether a row names the columns, or is the rule below those."""
    following = sentences[number + 1].text if number + 1 < len(sentences) else ""
    return any(_CELL_RULE.match(text) and "-" in text for text in (sentences[number].text, following))


def row_of(text: str) -> str:
    """Return what a row of a table claims: its cells in a line, without citations."""
    cells = (cell.strip() for cell in re.split(r"(?<!\\)[|\t]", without_citations(text)))
    return " | ".join(cell for cell in cells if cell)


def _connects(sentence: str) -> bool:
    if sentence.endswith((":", "?", "：", "？")) or _OF_THE_REPORT.match(plain(sentence)):
        return True
    facts = facts_of(sentence)
    names = [name for name in facts.names if not name.opening]
    return len(query_terms(sentence)) <= FEW_TERMS and not facts.numbers and not facts.dates and not names

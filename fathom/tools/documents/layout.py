"""The form of a document in the index: one text with its passages, and the terms by which each passage is found.

The slow work is done here, in pure functions, so that another process can do it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from fathom.text.sentences import split_sentences
from fathom.text.terms import count_words, terms
from fathom.tools.documents.sections import ReadDocument

PASSAGE_WORDS = 400  # an abstract or a short page is one passage
PASSAGE_CHARS = 4_000  # for texts in which nothing looks like a word
_BLANK_LINES = re.compile(r"\n[^\S\n]*\n\s*")


class Span(NamedTuple):
    """A passage: a slice of its document's text, its place, and its terms, separated by spaces."""

    heading: str
    page: int
    start: int
    stop: int
    words: int
    heading_terms: str
    text_terms: str


class LaidOut(NamedTuple):
    """A document as the index takes it."""

    title: str
    title_terms: str
    text: str
    spans: list[Span]
    date: str = ""  # when the document was written or changed, as it says
    fields: dict[str, str] = {}  # what the document's header says of it
    unread: str = ""  # what part of the file is missing


def lay_out(document: ReadDocument) -> LaidOut:
    """Join the sections to one text, with headings as in Markdown, and find its passages; a heading starts one."""
    parts: list[str] = []
    spans: list[Span] = []
    offset = 0
    for section in document.sections:
        heading = f"{'#' * min(section.level, 6)} {section.heading}" if section.heading else ""
        heading_terms = _joined_terms(section.heading)
        part = "\n\n".join(filter(None, (heading, section.text)))
        for start, stop, words in _passage_spans(part, len(part) - len(section.text)):
            place = (section.heading, section.page, offset + start, offset + stop, words)
            spans.append(Span(*place, heading_terms, _joined_terms(part[start:stop])))
        parts.append(part)
        offset += len(part) + 2
    title = document.title
    return LaidOut(title, _joined_terms(title), "\n\n".join(parts), spans, document.date, document.fields)


def _joined_terms(text: str) -> str:
    return " ".join(terms(text))


def _passage_spans(text: str, head: int) -> Iterator[tuple[int, int, int]]:
    """Yield passages (start, stop, words) of whole paragraphs, up to 400 words; the first includes the `head`."""
    start, stop, words = 0, head, _words(text[:head])
    for unit_start, unit_stop in _units(text, head):
        more = _words(text[unit_start:unit_stop])
        if words and (words + more > PASSAGE_WORDS or unit_stop - start > PASSAGE_CHARS):
            yield start, stop, words
            start, words = unit_start, 0
        stop, words = unit_stop, words + more
    if stop > start:
        yield start, stop, words


def _units(text: str, start: int) -> Iterator[tuple[int, int]]:
    """Yield paragraphs, or their sentences where a paragraph is too long for one passage."""
    borders = [(m.start(), m.end()) for m in _BLANK_LINES.finditer(text, start)]
    for stop, following in [*borders, (len(text), len(text))]:
        paragraph = text[start:stop]
        if len(paragraph) <= PASSAGE_CHARS and _words(paragraph) <= PASSAGE_WORDS:
            yield start, stop
        else:
            for sentence in split_sentences(paragraph):
                end = start + sentence.end
                for at in range(start + sentence.start, end, PASSAGE_CHARS):
                    yield at, min(at + PASSAGE_CHARS, end)
        start = following


def _words(text: str) -> int:
    """Count words; this is quick where spaces separate them."""
    words = len(text.split())
    return words if len(text) <= 12 * words else count_words(text)

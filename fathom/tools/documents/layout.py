"""The form of a document in the index: one text with its passages, and the terms by which each passage is found.

The slow work is done here, in pure functions, so that another process can do it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Literal, NamedTuple

from fathom.retrieval.chunking import LONGEST_AGAIN, Part, parts_of
from fathom.text.sentences import split_sentences
from fathom.text.terms import count_words, terms
from fathom.tools.documents.sections import ReadDocument

PASSAGE_WORDS = 400  # an abstract or a short page is one passage
PASSAGE_CHARS = 4_000  # for texts in which nothing looks like a word
HEAD_CHARS = 300  # up to which a beginning, such as a heading or a lead-in, is no passage without what follows


class Span(NamedTuple):
    """A passage: a slice of its document's text, its place, and its terms, separated by spaces."""

    heading: str
    page: int
    start: int
    stop: int
    words: int
    opening: str  # said again where it is shown without the passage before: a heading, a lead-in, a fence
    closing: str  # added where it is shown without the passage after: the end of a fence
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
    announcing, depth = "", 0  # headings without a text, or a lead-in, for the deeper section below; their level
    for section in document.sections:
        heading = f"{'#' * min(section.level, 6)} {section.heading}" if section.heading else ""
        heading_terms = _joined_terms(section.heading)
        part = "\n\n".join(filter(None, (heading, section.text)))
        above = announcing if section.level > depth else ""
        for start, stop, words, opening, closing in _passage_spans(part):
            place = (section.heading, section.page, offset + start, offset + stop, words)
            again = opening or ("" if start else above)
            spans.append(Span(*place, again, closing, heading_terms, _joined_terms(part[start:stop])))
        last = section.text.rpartition("\n\n")[2]
        if not section.text and heading:
            announcing, depth = f"{above}{heading}\n\n", section.level
        elif len(last) <= LONGEST_AGAIN and last.endswith((":", "：")):
            announcing, depth = f"{last}\n\n", section.level
        else:
            announcing = ""
        parts.append(part)
        offset += len(part) + 2
    title = document.title
    return LaidOut(title, _joined_terms(title), "\n\n".join(parts), spans, document.date, document.fields)


def _joined_terms(text: str) -> str:
    return " ".join(terms(text))


class _Stretch(NamedTuple):
    """Characters of a text with their words, and what is said again or added where a passage begins or ends there."""

    start: int
    stop: int
    words: int
    opening: str = ""
    closing: str = ""  # of what ends before it


def _passage_spans(text: str) -> Iterator[_Stretch]:
    """Yield passages of what stands together, up to 400 words; of what is longer, as much as fits."""
    passage: _Stretch | None = None
    for more in _stretches(text, parts_of(text), ("group", "unit", "start")):
        if passage is None:
            passage = more
            continue
        words = passage.words + more.words
        fits = words <= PASSAGE_WORDS and more.stop - passage.start <= PASSAGE_CHARS
        if fits or passage.stop - passage.start <= HEAD_CHARS:
            passage = passage._replace(stop=more.stop, words=words)
        else:
            yield passage._replace(closing=more.closing)
            passage = more
    if passage:
        yield passage._replace(closing="")


def _stretches(
    text: str, parts: Sequence[Part], levels: Sequence[Literal["group", "unit", "start"]]
) -> Iterator[_Stretch]:
    """Yield what stands together; where it is too long for a passage, its units, then blocks, then sentences."""
    for _, together in groupby(parts, key=lambda part: getattr(part, levels[0])):
        held = list(together)
        start, stop, first = held[0].start, held[-1].stop, held[0]
        words = _words(text[start:stop])
        if words <= PASSAGE_WORDS and stop - start <= PASSAGE_CHARS:
            yield _Stretch(start, stop, words, first.opening, first.closing)
        elif levels[1:]:
            yield from _stretches(text, held, levels[1:])
        else:
            for sentence in split_sentences(text[start:stop]):
                for at in range(start + sentence.start, start + sentence.end, PASSAGE_CHARS):
                    end = min(at + PASSAGE_CHARS, start + sentence.end)
                    yield _Stretch(at, end, _words(text[at:end]), first.opening, first.closing)


def _words(text: str) -> int:
    """Count words; this is quick where spaces separate them."""
    words = len(text.split())
    return words if len(text) <= 12 * words else count_words(text)

"""A searchable copy of a corpus: SQLite's FTS5, the best retriever without a model that was tried.

A document is kept as one text, in which passages of at most about 300 words are marked by their offsets; what a search
returns is always a slice of that text.
"""

from __future__ import annotations

import re
import sqlite3
import threading
import weakref
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from fathom.text import count_words, split_sentences
from fathom.text.stopwords import STOP_WORDS
from fathom.tools.documents.sections import ReadDocument

__all__ = ["Hit", "Index", "Match", "Passage", "StoredDocument", "fts_query"]

PASSAGE_WORDS = 300
PASSAGE_CHARS = 4_000  # where nothing in a text looks like a word
HITS = 2_000  # passages looked at for one query
MAX_QUERY_WORDS = 64
_SCHEMA = """
CREATE TABLE documents (id INTEGER PRIMARY KEY, url TEXT, title TEXT, text TEXT, words INTEGER);
CREATE TABLE passages (
    id INTEGER PRIMARY KEY, document INTEGER, heading TEXT, page INTEGER, start INTEGER, stop INTEGER, words INTEGER
);
CREATE TABLE skipped (name TEXT, reason TEXT);
CREATE INDEX passages_of ON passages (document);
CREATE VIRTUAL TABLE search USING fts5(
    title, heading, text, content='', tokenize='porter unicode61 remove_diacritics 2'
);
"""
# A title or heading that holds a word of the query says twice as much as a text that does.
_SEARCH = """
SELECT document, passages.id, -bm25(search, 2.0, 2.0, 1.0) AS score
FROM search JOIN passages ON passages.id = search.rowid
WHERE search MATCH ? ORDER BY score DESC, passages.id LIMIT ?
"""
_PASSAGES = "SELECT id, heading, page, start, stop, words FROM passages WHERE document = ? ORDER BY id"
_CJK = re.compile("([\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff])")


class Hit(NamedTuple):
    """A passage that matches, with its score."""

    passage: int
    score: float


class Match(NamedTuple):
    """A document that matches, with its passages that do, the best first."""

    document: int
    hits: list[Hit]


class Passage(NamedTuple):
    """A slice of a document's text."""

    id: int
    heading: str
    page: int
    start: int
    stop: int
    words: int


class StoredDocument(NamedTuple):
    """A document of the index."""

    url: str
    title: str
    text: str
    words: int


class Index:
    """An index, in memory or in a file. Its methods may be called from any thread."""

    def __init__(self, path: str) -> None:
        self._lock = threading.Lock()
        self._database = sqlite3.connect(path, check_same_thread=False)
        weakref.finalize(self, self._database.close)

    @classmethod
    def build(cls, path: str, documents: Mapping[str, ReadDocument], skipped: Mapping[str, str]) -> Index:
        """Make an index.

        Args:
            path: a new file, or `:memory:`.
            documents: by URL, in the order in which equally good ones are to be returned.
            skipped: files that are left out, with the reason.
        """
        index = cls(path)
        with index._database as database:
            database.executescript(_SCHEMA)
            database.executemany("INSERT INTO skipped VALUES (?, ?)", skipped.items())
            for number, (url, document) in enumerate(documents.items(), 1):
                text, passages = _laid_out(document)
                words = sum(passage.words for passage in passages)
                database.execute(
                    "INSERT INTO documents VALUES (?, ?, ?, ?, ?)", (number, url, document.title, text, words)
                )
                for p in passages:
                    row = database.execute(
                        "INSERT INTO passages VALUES (NULL, ?, ?, ?, ?, ?, ?)", (number, *p[1:])
                    ).lastrowid
                    fields = (_spaced(document.title), _spaced(p.heading), _spaced(text[p.start : p.stop]))
                    database.execute(
                        "INSERT INTO search (rowid, title, heading, text) VALUES (?, ?, ?, ?)", (row, *fields)
                    )
            database.execute("INSERT INTO search (search) VALUES ('optimize')")
        return index

    def close(self) -> None:
        """Close the database."""
        self._database.close()

    def search(self, query: str, limit: int) -> list[Match]:
        """Return the documents closest to a query, ranked by their best passage."""
        if not (expression := fts_query(query)):
            return []
        found: dict[int, list[Hit]] = {}
        for document, passage, score in self._rows(_SEARCH, (expression, HITS)):
            found.setdefault(document, []).append(Hit(passage, score))
        return [Match(document, hits) for document, hits in list(found.items())[:limit]]

    def document(self, number: int) -> StoredDocument:
        """Return a document."""
        return StoredDocument(*self._rows("SELECT url, title, text, words FROM documents WHERE id = ?", (number,))[0])

    def passages(self, document: int) -> list[Passage]:
        """Return a document's passages in reading order."""
        return [Passage(*row) for row in self._rows(_PASSAGES, (document,))]

    @property
    def skipped(self) -> dict[str, str]:
        """Files that were left out, with the reason."""
        return dict(self._rows("SELECT name, reason FROM skipped ORDER BY rowid", ()))

    def _rows(self, sql: str, values: Sequence[object]) -> list[tuple[Any, ...]]:
        with self._lock:
            return self._database.execute(sql, values).fetchall()


def fts_query(query: str) -> str:
    """Return an FTS5 expression that matches any word of a query; a word is always quoted, so none is an operator.

    Words side by side count once more where a title or heading has them so; that alone tells `the with statement` from
    all other statements, for stop words do not count by themselves. Writing without spaces is compared by its pairs of
    characters.
    """
    words = re.findall(r"\w+", _spaced(query.lower()))[:MAX_QUERY_WORDS]
    topical = [word for word in words if word not in STOP_WORDS] or words
    pairs = [
        ("" if _CJK.match(first) and _CJK.match(second) else "{title heading} : ") + f'"{first} {second}"'
        for first, second in pairwise(words)
    ]
    return " OR ".join(dict.fromkeys([*(f'"{word}"' for word in topical), *pairs]))


def _spaced(text: str) -> str:
    """Put spaces around characters of writing that has none between words, so that each is a token."""
    return _CJK.sub(r" \1 ", text)


def _laid_out(document: ReadDocument) -> tuple[str, list[Passage]]:
    """Join the sections to one text, headings as in Markdown, and mark its passages; a heading begins one."""
    parts: list[str] = []
    passages: list[Passage] = []
    offset = 0
    for section in document.sections:
        heading = f"{'#' * min(section.level, 6)} {section.heading}" if section.heading else ""
        part = "\n\n".join(filter(None, (heading, section.text)))
        for start, stop in _passage_spans(part, len(part) - len(section.text)):
            words = count_words(part[start:stop])
            passages.append(Passage(0, section.heading, section.page, offset + start, offset + stop, words))
        parts.append(part)
        offset += len(part) + 2
    return "\n\n".join(parts), passages


def _passage_spans(text: str, head: int) -> Iterator[tuple[int, int]]:
    """Yield passages: as many paragraphs as fit into 300 words; the first includes the `head`."""
    start, stop, words = 0, head, 0
    for unit_start, unit_stop in _units(text, head):
        more = count_words(text[unit_start:unit_stop])
        if words and (words + more > PASSAGE_WORDS or unit_stop - start > PASSAGE_CHARS):
            yield start, stop
            start, words = unit_start, 0
        stop, words = unit_stop, words + more
    if stop > start:
        yield start, stop


def _units(text: str, start: int) -> Iterator[tuple[int, int]]:
    """Yield paragraphs, and the sentences of those that are too long for one passage."""
    borders = [(m.start(), m.end()) for m in re.finditer(r"\n[^\S\n]*\n\s*", text[start:])]
    for stop, following in [*((start + a, start + b) for a, b in borders), (len(text), len(text))]:
        paragraph = text[start:stop]
        if len(paragraph) <= PASSAGE_CHARS and count_words(paragraph) <= PASSAGE_WORDS:
            yield start, stop
        else:
            for sentence in split_sentences(paragraph):
                yield from _cut(start + sentence.start, start + sentence.end)
        start = following


def _cut(start: int, stop: int) -> Iterable[tuple[int, int]]:
    return ((at, min(at + PASSAGE_CHARS, stop)) for at in range(start, stop, PASSAGE_CHARS))

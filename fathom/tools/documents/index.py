"""A searchable copy of a corpus: SQLite's FTS5 over the terms of the text engine, and the form of a document in it.

It stores terms, not words, so that a search compares the same things as a ranking and a check. A document is kept as
one text, in which passages of at most about 400 words are marked by their offsets; a search always returns slices of
that text.

A document in the index is one text with its passages, and the terms by which each passage is found. The slow work of
laying it out is done in pure functions, so that another process can do it.
"""

from __future__ import annotations

import json
import re
import sqlite3
import threading
import weakref
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, Literal, NamedTuple

from fathom.retrieval.chunking import LONGEST_AGAIN, ChunkPart, parts_of
from fathom.retrieval.expansion import compounds_of, nouns_of, related_terms, said_otherwise
from fathom.retrieval.identifiers import Borne, Identifier, borne_by, identifiers_of, naming
from fathom.text.plain import shortened
from fathom.text.sentences import split_sentences
from fathom.text.terms import count_words, query_terms, terms
from fathom.tools.documents.normal import LONGEST_TITLE, ReadDocument

HITS = 300  # passages of one query
MAX_QUERY_TERMS = 64
MAX_COMPOUNDS = 20  # of a noun that a search is made for
VOCABULARY_CHARS = 5_000_000  # read in half a second
BEGINNINGS, BEGINNING_CHARS = 200, 2_000
_LONG_WORD = re.compile(r"[^\W\d_]{5,}")  # shorter words are not taken for misspelt
_SCHEMA = """
CREATE TABLE documents (
    id INTEGER PRIMARY KEY, url TEXT UNIQUE, digest TEXT, position INTEGER, title TEXT, text TEXT, words INTEGER,
    date TEXT, fields TEXT
);
CREATE TABLE passages (
    id INTEGER PRIMARY KEY, document INTEGER, heading TEXT, page INTEGER, start INTEGER, stop INTEGER, words INTEGER,
    opening TEXT, closing TEXT
);
CREATE TABLE identifiers (name TEXT, sure INTEGER, weight INTEGER, document INTEGER);
CREATE TABLE skipped (url TEXT, digest TEXT, reason TEXT);
CREATE TABLE files (url TEXT, size INTEGER, modified INTEGER, digest TEXT);
CREATE INDEX passages_of ON passages (document);
CREATE INDEX identifiers_named ON identifiers (name);
CREATE INDEX identifiers_of ON identifiers (document);
CREATE VIRTUAL TABLE search USING fts5(title, heading, text, tokenize="ascii tokenchars '.,'");
CREATE VIRTUAL TABLE terms USING fts5vocab(search, row);
"""
# A word of the query counts twice in a title or heading.
_SEARCH = """
SELECT document, passages.id, score FROM (
    SELECT rowid AS passage, -bm25(search, 2.0, 2.0, 1.0) AS score
    FROM search WHERE search MATCH ? ORDER BY score DESC LIMIT ?
) JOIN passages ON passages.id = passage JOIN documents ON documents.id = document
ORDER BY score DESC, position, passages.id
"""
_SLICES = """
SELECT passages.id, document, substr(text, start + 1, stop - start)
FROM passages JOIN documents ON documents.id = document ORDER BY position, passages.id
"""
_IDENTIFIERS = "SELECT document, name, sure, weight FROM identifiers WHERE name IN (SELECT value FROM json_each(?))"
_PASSAGES = (
    "SELECT id, heading, page, start, stop, words, opening, closing FROM passages WHERE document = ? ORDER BY id"
)


class Hit(NamedTuple):
    """A passage that matches, with its score."""

    passage: int
    score: float


class Match(NamedTuple):
    """A document that matches, with its matching passages, the best first."""

    document: int
    hits: list[Hit]
    named: int = 0  # above 0 if the query names it by an identifier; the higher, the more surely


class IndexedPassage(NamedTuple):
    """A slice of a document's text."""

    id: int
    heading: str
    page: int
    start: int
    stop: int
    words: int
    opening: str  # repeated if it is shown without the passage before; empty if not needed
    closing: str  # added where it is shown without the passage after


class StoredDocument(NamedTuple):
    """A document of the index."""

    url: str
    title: str
    text: str
    words: int
    date: str  # date that it states: YYYY-MM-DD, YYYY-MM, or empty
    fields: dict[str, str]  # of its header
    digest: str  # SHA-256 of its file


class StoredFile(NamedTuple):
    """A file when it was last read; `digest` is the SHA-256 of its bytes."""

    url: str
    size: int
    modified: int
    digest: str


class Index:
    """An index, in memory or in a file. Its methods may be called from any thread."""

    def __init__(self, path: str) -> None:
        self._lock = threading.Lock()
        self._database = sqlite3.connect(path, check_same_thread=False)
        weakref.finalize(self, self._database.close)

    @classmethod
    def create(cls, path: str) -> Index:
        """Make an empty index in a new file, or in `:memory:`."""
        index = cls(path)
        index._database.executescript(_SCHEMA)
        return index

    @classmethod
    def build(cls, documents: Mapping[str, ReadDocument]) -> Index:
        """Make an index in memory of documents by URL; equally good ones are returned in this order."""
        index = cls.create(":memory:")
        for url, document in documents.items():
            index.add(url, "", lay_out(document))
        index.finish([StoredFile(url, 0, 0, "") for url in documents])
        return index

    def add(self, url: str, digest: str, document: LaidOut) -> None:
        """Add a document; `digest` is the digest of its file's bytes."""
        run = self._database.execute
        words = sum(span.words for span in document.spans)
        values = (url, digest, document.title, document.text, words, document.date, json.dumps(document.fields))
        number = run("INSERT INTO documents VALUES (NULL, ?, ?, 0, ?, ?, ?, ?, ?)", values).lastrowid
        for (name, sure), weight in borne_by(document.title, url, (span.heading for span in document.spans)):
            run("INSERT INTO identifiers VALUES (?, ?, ?, ?)", (name, sure, weight, number))
        for s in document.spans:
            place = (number, s.heading, s.page, s.start, s.stop, s.words, s.opening, s.closing)
            row = run("INSERT INTO passages VALUES (NULL, ?, ?, ?, ?, ?, ?, ?, ?)", place).lastrowid
            fields = (row, document.title_terms, s.heading_terms, s.text_terms)
            run("INSERT INTO search (rowid, title, heading, text) VALUES (?, ?, ?, ?)", fields)

    def skip(self, url: str, digest: str, reason: str) -> None:
        """Record a file that is left out, or read in part; without a digest if the reason is not in its bytes."""
        self._database.execute("INSERT INTO skipped VALUES (?, ?, ?)", (url, digest, reason))

    def forget_unsettled(self) -> None:
        """Forget the files that were left out without a digest: the reason may be gone."""
        self._database.execute("DELETE FROM skipped WHERE digest = ''")

    def keep(self, wanted: Collection[tuple[str, str]]) -> set[str]:
        """Remove all but the wanted files, each a URL and a digest, and return the URLs of the remaining files."""
        run = self._database.execute
        kept: set[str] = set()
        for table, key in (("documents", "id"), ("skipped", "rowid")):
            for number, url, digest in run(f"SELECT {key}, url, digest FROM {table}").fetchall():  # noqa: S608 - constants
                if (url, digest) in wanted:
                    kept.add(url)
                    continue
                if table == "documents":
                    run("DELETE FROM search WHERE rowid IN (SELECT id FROM passages WHERE document = ?)", (number,))
                    run("DELETE FROM passages WHERE document = ?", (number,))
                    run("DELETE FROM identifiers WHERE document = ?", (number,))
                run(f"DELETE FROM {table} WHERE {key} = ?", (number,))  # noqa: S608 - constants
        return kept

    def finish(self, files: Sequence[StoredFile], *, optimize: bool = True) -> None:
        """Write what was added; among equally good documents, the first of the files comes first."""
        with self._database as database:
            database.execute("DELETE FROM files")
            database.executemany("INSERT INTO files VALUES (?, ?, ?, ?)", files)
            order = ((position, file.url) for position, file in enumerate(files))
            database.executemany("UPDATE documents SET position = ? WHERE url = ?", order)
            if optimize:
                database.execute("INSERT INTO search (search) VALUES ('optimize')")

    @property
    def is_empty(self) -> bool:
        """Whether there is no document."""
        return not self._rows("SELECT 1 FROM documents LIMIT 1", ())

    def files(self) -> list[StoredFile]:
        """Return the files it was made from, in their order."""
        return [StoredFile(*row) for row in self._rows("SELECT * FROM files ORDER BY rowid", ())]

    def close(self) -> None:
        """Close the database."""
        self._database.close()

    def search(self, query: str, limit: int) -> list[Match]:
        """Return the documents closest to a query: first the documents that it names, then by their best passage."""
        named = query_terms(query)
        forms = said_otherwise(query)
        others = (other for term in named for other in (*related_terms(term), *forms.get(term, ())))
        longer = (word for noun in nouns_of(query) for word in self._compounds(noun))
        asked = list(dict.fromkeys([*named, *longer, *others]))[:MAX_QUERY_TERMS]
        named_by = self._named(query)
        if not asked and not named_by:
            return []
        found: dict[int, list[Hit]] = {}
        for document, passage, score in self._rows(_SEARCH, (" OR ".join(f'"{term}"' for term in asked), HITS)):
            found.setdefault(document, []).append(Hit(passage, score))
        for document in named_by:
            found.setdefault(document, [Hit(self.passages(document)[0].id, 0.0)])
        matches = [Match(document, hits, named_by.get(document, 0)) for document, hits in found.items()]
        return sorted(matches, key=lambda match: -match.named)[:limit]

    def _compounds(self, noun: str) -> list[str]:
        """Return the terms that are German compounds whose last part is a noun, the most frequent first."""
        rows = self._rows("SELECT term FROM terms WHERE term LIKE '%' || ? ORDER BY doc DESC, term", (noun,))
        return compounds_of(noun, (term for (term,) in rows))[:MAX_COMPOUNDS]

    def _named(self, query: str) -> dict[int, int]:
        """Return the documents that a query names by an identifier, with the certainty of the match."""
        names = json.dumps([one.name for one in identifiers_of(query)])
        rows = self._rows(_IDENTIFIERS, (names,))
        return naming(query, ((row[0], Borne(Identifier(row[1], bool(row[2])), row[3])) for row in rows))

    def document(self, number: int) -> StoredDocument:
        """Return a document."""
        columns = "SELECT url, title, text, words, date, fields, digest FROM documents WHERE id = ?"
        url, title, text, words, date, fields, digest = self._rows(columns, (number,))[0]
        return StoredDocument(url, title, text, words, date, json.loads(fields), digest)

    def passages(self, document: int) -> list[IndexedPassage]:
        """Return a document's passages in reading order."""
        return [IndexedPassage(*row) for row in self._rows(_PASSAGES, (document,))]

    def slices(self) -> list[tuple[int, int, str]]:
        """Return every passage with its document and its text."""
        return self._rows(_SLICES, ())

    @property
    def size(self) -> int:
        """The number of documents."""
        return int(self._rows("SELECT count(*) FROM documents", ())[0][0])

    @property
    def words(self) -> int:
        """The number of words in all documents."""
        return int(self._rows("SELECT coalesce(sum(words), 0) FROM documents", ())[0][0])

    def has(self, word: str) -> bool:
        """Return whether a document has a word in any of its forms."""
        said = " OR ".join(f'"{term}"' for term in terms(word))
        return bool(said and self._rows("SELECT 1 FROM search WHERE search MATCH ? LIMIT 1", (said,)))

    def vocabulary(self) -> Counter[str]:
        """Return the words of the first five million characters, in lower case, with their counts."""
        counts, room = Counter[str](), VOCABULARY_CHARS
        for (text,) in self._rows("SELECT substr(text, 1, ?) FROM documents ORDER BY position", (room,)):
            counts.update(_LONG_WORD.findall(text[:room].lower()))
            room -= len(text)
            if room <= 0:
                break
        return counts

    def beginnings(self) -> list[str]:
        """Return the beginnings of some documents, from which their languages are detected."""
        columns = "SELECT substr(text, 1, ?) FROM documents ORDER BY position LIMIT ?"
        return [text for (text,) in self._rows(columns, (BEGINNING_CHARS, BEGINNINGS))]

    @property
    def skipped(self) -> dict[str, str]:
        """Files that were left out, or read in part, with the reason."""
        return dict(self._rows("SELECT url, reason FROM skipped ORDER BY url", ()))

    def _rows(self, sql: str, values: Sequence[object]) -> list[tuple[Any, ...]]:
        with self._lock:
            return self._database.execute(sql, values).fetchall()


PASSAGE_WORDS = 400  # an abstract or a short page is one passage
PASSAGE_CHARS = 4_000  # for texts in which nothing looks like a word
HEAD_CHARS = 300  # words up to which a beginning, such as a heading or a lead-in, is joined with the text that follows


class StoredSpan(NamedTuple):
    """A passage: a slice of its document's text, its place, and its terms, separated by spaces."""

    heading: str
    page: int
    start: int
    stop: int
    words: int
    opening: str  # repeated if it is shown without the passage before: a heading, a lead-in, a fence
    closing: str  # added if it is shown without the passage after: the end of a fence
    heading_terms: str
    text_terms: str


class LaidOut(NamedTuple):
    """A document in the form of the index."""

    title: str
    title_terms: str
    text: str
    spans: list[StoredSpan]
    date: str = ""  # when the document was written or changed, as it states
    fields: dict[str, str] = {}  # fields of the document's header
    unread: str = ""  # the missing part of the file


def lay_out(document: ReadDocument) -> LaidOut:
    """Join the sections to one text, with headings as in Markdown, and find its passages; a heading starts one."""
    parts: list[str] = []
    spans: list[StoredSpan] = []
    offset = 0
    announcing, depth = "", 0  # headings without a text, or a lead-in, for the deeper section below; their level
    for section in document.sections:
        heading = f"{'#' * min(section.level, 6)} {section.heading}" if section.heading else ""
        named = shortened(section.heading, LONGEST_TITLE)
        heading_terms = _joined_terms(named)
        part = "\n\n".join(filter(None, (heading, section.text)))
        above = announcing if section.level > depth else ""
        for start, stop, words, opening, closing in _passage_spans(part):
            place = (named, section.page, offset + start, offset + stop, words)
            again = opening or ("" if start else above)
            spans.append(StoredSpan(*place, again, closing, heading_terms, _joined_terms(part[start:stop])))
        last = section.text.rpartition("\n\n")[2]
        if not section.text and 0 < len(heading) <= LONGEST_AGAIN:
            announcing, depth = f"{above}{heading}\n\n", section.level
        elif len(last) <= LONGEST_AGAIN and last.endswith((":", "：")):
            announcing, depth = f"{last}\n\n", section.level
        else:
            announcing = ""
        parts.append(part)
        offset += len(part) + 2
    title, text = document.title, "\n\n".join(parts)
    return LaidOut(title, _joined_terms(title), text, spans, document.date, document.fields, document.unread)


def _joined_terms(text: str) -> str:
    return " ".join(terms(text))


class _Stretch(NamedTuple):
    """A stretch of a text with its words, and the lines repeated or added if a passage begins or ends there."""

    start: int
    stop: int
    words: int
    opening: str = ""
    closing: str = ""  # of what ends before it


def _passage_spans(text: str) -> Iterator[_Stretch]:
    """Yield passages of text that belongs together, up to 400 words; longer text is split where it fits."""
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
    text: str, parts: Sequence[ChunkPart], levels: Sequence[Literal["group", "unit", "start"]]
) -> Iterator[_Stretch]:
    """Yield text that belongs together; if it is too long for a passage, its units, then blocks, then sentences."""
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

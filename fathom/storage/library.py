"""The full-text index of a store's finished runs: SQLite's FTS5, in the cache of this machine.

It is only a copy: whoever uses it compares it with the store's runs, and one that is missing, damaged or of another
version is made again.
"""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Literal, NamedTuple

from fathom.errors import StoreError
from fathom.text.terms import STOP_WORDS, is_particle

Kind = Literal["answer", "note", "question", "source"]
VERSION = 1
MOST_WORDS = 64  # of a query
BUSY_SECONDS = 30.0  # another process may add many runs at once
_SHIFT = 24  # the rows of a run have its number above their own, so that they are removed as one range
_WEIGHTS: Mapping[Kind, float] = {"answer": 1.5, "note": 1.2, "question": 1.2, "source": 1.0}
"""What was checked or noted comes before what was only read."""
_SCHEMA = f"""
BEGIN EXCLUSIVE;
CREATE TABLE IF NOT EXISTS runs (id INTEGER PRIMARY KEY, folder TEXT UNIQUE, run_id TEXT);
CREATE VIRTUAL TABLE IF NOT EXISTS texts USING fts5(
    text, kind UNINDEXED, source UNINDEXED, title UNINDEXED, url UNINDEXED,
    tokenize="porter unicode61 remove_diacritics 2"
);
PRAGMA user_version = {VERSION};
COMMIT;
"""
_WITH_WORDS = "SELECT folder FROM runs WHERE id IN (SELECT rowid >> ? FROM texts WHERE texts MATCH ?)"
_FIND = """
SELECT folder, kind, text, source, title, url, score FROM (
    SELECT rowid AS place, rank AS score FROM texts
    WHERE texts MATCH ? AND rowid >> ? IN (SELECT id FROM runs WHERE folder IN (SELECT value FROM json_each(?)))
    ORDER BY rank LIMIT ?
) JOIN texts ON texts.rowid = place JOIN runs ON runs.id = place >> ?
"""
_CJK = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"  # writing without spaces
_CHARACTER = re.compile(rf"[{_CJK}]")
_BREAK = "\u200b"  # between two of its characters, so that each is a word
_WORD = re.compile(rf"[{_CJK}]+|[^\W{_CJK}]+")


class LibraryText(NamedTuple):
    """A text of a run; a note, a claim and a piece of a source have their source."""

    kind: Kind
    text: str
    source_id: str = ""
    title: str = ""
    url: str = ""


class LibraryMatch(NamedTuple):
    """A text that matches a query; the best has the highest score."""

    folder: str
    text: LibraryText
    score: float


class LibraryIndex:
    """The index in a file. Its methods block; each opens the file, so that any thread may call them.

    Raises:
        StoreError: the file cannot be written.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def runs(self) -> dict[str, str]:
        """Return the ids of the runs that it has, by their folders."""
        with self._database() as database:
            return dict(database.execute("SELECT folder, run_id FROM runs"))

    def put(self, folder: str, run_id: str, texts: Iterable[LibraryText]) -> None:
        """Add a run, in place of what the folder had before."""
        with self._database() as database:
            database.execute("BEGIN IMMEDIATE")
            _drop(database, [folder])
            number = database.execute("INSERT INTO runs (folder, run_id) VALUES (?, ?)", (folder, run_id)).lastrowid
            first = (number or 0) << _SHIFT
            rows = ((first + n, _spaced(one.text), *one[:1], *one[2:]) for n, one in enumerate(texts))
            database.executemany(
                "INSERT INTO texts (rowid, text, kind, source, title, url) VALUES (?, ?, ?, ?, ?, ?)", rows
            )

    def drop(self, folders: Sequence[str]) -> None:
        """Remove the runs of some folders."""
        with self._database() as database:
            database.execute("BEGIN IMMEDIATE")
            _drop(database, folders)

    def with_words(self, query: str) -> list[str]:
        """Return the folders of the runs that have a text with words of a query."""
        if not (words := _match(query)):
            return []
        with self._database() as database:
            return [folder for (folder,) in database.execute(_WITH_WORDS, (_SHIFT, words))]

    def find(self, query: str, folders: Sequence[str], most: int) -> list[LibraryMatch]:
        """Return the texts of the runs in some folders that have words of a query, the best first."""
        if not (words := _match(query)):
            return []
        with self._database() as database:
            rows = database.execute(_FIND, (words, _SHIFT, json.dumps(folders), most, _SHIFT)).fetchall()
        found = [
            LibraryMatch(folder, LibraryText(kind, text.replace(_BREAK, ""), *rest), -rank * _WEIGHTS[kind])
            for folder, kind, text, *rest, rank in rows
        ]
        return sorted(found, key=lambda one: one.score, reverse=True)

    @contextmanager
    def _database(self) -> Iterator[sqlite3.Connection]:
        try:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with closing(self._opened()) as database, database:
                yield database
        except (OSError, sqlite3.Error) as error:
            raise StoreError(
                f"The index of the library, {self._path}, cannot be used: {error}.",
                next_step="delete the file, and it is made again; or set FATHOM_CACHE to a folder that can be written",
            ) from error

    def _opened(self) -> sqlite3.Connection:
        database = sqlite3.connect(self._path, timeout=BUSY_SECONDS, isolation_level=None)
        try:
            database.execute("PRAGMA journal_mode = WAL")
            database.execute("PRAGMA synchronous = NORMAL")
            database.execute("PRAGMA secure_delete = ON")  # removed runs leave no text in the file
            (version,) = database.execute("PRAGMA user_version").fetchone()
            if version == 0:
                database.executescript(_SCHEMA)
            if version in (0, VERSION):
                return database
        except sqlite3.DatabaseError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_NOTADB:
                database.close()
                raise
        database.close()  # it is no database, or another version's
        for ending in ("", "-wal", "-shm"):
            Path(f"{self._path}{ending}").unlink(missing_ok=True)
        return self._opened()


def _drop(database: sqlite3.Connection, folders: Sequence[str]) -> None:
    for folder in folders:
        row = database.execute("SELECT id FROM runs WHERE folder = ?", (folder,)).fetchone()
        if row:
            first = row[0] << _SHIFT
            database.execute("DELETE FROM texts WHERE rowid >= ? AND rowid < ?", (first, first + (1 << _SHIFT)))
            database.execute("DELETE FROM runs WHERE id = ?", row)


def _spaced(text: str) -> str:
    """Return a text in which each character of writing without spaces is a word."""
    return text if text.isascii() else _CHARACTER.sub(rf"{_BREAK}\g<0>{_BREAK}", text)


def _match(query: str) -> str:
    """Return a query as FTS5 writes it: any of its words, and of writing without spaces any pair of characters."""
    found = _WORD.findall(query)
    words: list[str] = []
    for word in [word for word in found if word.lower() not in STOP_WORDS] or found:
        if _CHARACTER.match(word):
            pairs = [word[at : at + 2] for at in range(len(word) - 1)] or [word]
            words += [" ".join(pair) for pair in pairs if not is_particle(pair)]
        else:
            words.append(word)
    return " OR ".join(f'"{word}"' for word in [*dict.fromkeys(words)][:MOST_WORDS])

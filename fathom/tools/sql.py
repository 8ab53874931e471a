"""A process of its own that answers one SQL query over some tables: standard input to standard output, as JSON.

The query comes from a model, so the system bounds its memory and its seconds, and SQLite lets it do nothing but read
these tables. It is SQLite because its dialect has what such questions need, joins, windows and aggregates, and because
it comes with Python. The file is run by its path and imports nothing of Fathom, so that it starts in 50 ms.
"""

from __future__ import annotations

import json
import sqlite3
import sys
from collections.abc import Sequence
from statistics import median
from typing import Any

MOST_ROWS = 50
_LONGEST = 100_000  # bytes of a value
_ALLOWED = (sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION)
_CHANGING = frozenset(("random", "randomblob", "load_extension"))


class _Median:
    """The aggregate that SQLite lacks and people ask for."""

    def __init__(self) -> None:
        self._values: list[float] = []

    def step(self, value: Any) -> None:
        """Take up a value."""
        if isinstance(value, int | float):
            self._values.append(value)

    def finalize(self) -> float | None:
        """Return the median of all values."""
        return median(self._values) if self._values else None


def answer(query: str, tables: dict[str, tuple[Sequence[str], Sequence[Sequence[Any]]]]) -> dict[str, Any]:
    """Return the columns and rows of a query over tables, and the columns that it read of each; or its error."""
    read: dict[str, list[str]] = {}

    def allow(action: int, first: str | None, second: str | None, *_others: str | None) -> int:
        if action == sqlite3.SQLITE_READ and first in tables:
            read.setdefault(first, []).extend([second] if second else [])  # count(*) reads none
        fits = action in _ALLOWED and not (action == sqlite3.SQLITE_FUNCTION and second in _CHANGING)
        foreign = action == sqlite3.SQLITE_READ and first is not None and first.lower().startswith("sqlite_")
        return sqlite3.SQLITE_OK if fits and not foreign else sqlite3.SQLITE_DENY

    connection = sqlite3.connect(":memory:")
    for name, (columns, rows) in tables.items():
        connection.execute(f"CREATE TABLE {quoted(name)} ({', '.join(map(quoted, columns))})")
        places = ", ".join("?" * len(columns))
        connection.executemany(f"INSERT INTO {quoted(name)} VALUES ({places})", rows)  # noqa: S608 - quoted
    connection.execute("PRAGMA temp_store = MEMORY")
    connection.create_aggregate("median", 1, _Median)  # type: ignore[arg-type] # typeshed wants one type of values
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _LONGEST)
    connection.set_authorizer(allow)
    try:
        found = connection.execute(query)
        rows = found.fetchmany(MOST_ROWS + 1)
    except sqlite3.Error as error:
        return {"error": str(error)}
    return {
        "columns": [column[0] for column in found.description or ()],
        "rows": rows[:MOST_ROWS],
        "more": len(rows) > MOST_ROWS,
        "read": {table: list(dict.fromkeys(columns)) for table, columns in read.items()},
    }


def quoted(name: str) -> str:
    """Return a name as SQL may hold any."""
    return '"' + name.replace('"', '""') + '"'


def main() -> None:
    """Answer the query of standard input within the seconds of a processor and the bytes of data that it may take."""
    given = json.load(sys.stdin)
    if sys.platform == "linux":  # other systems do not enforce all of it
        import resource

        for what, most in (
            (resource.RLIMIT_DATA, given["memory"]),
            (resource.RLIMIT_CPU, given["seconds"]),
            (resource.RLIMIT_FSIZE, 0),
            (resource.RLIMIT_CORE, 0),
        ):
            resource.setrlimit(what, (most, most))
    try:
        said = answer(given["query"], given["tables"])
    except MemoryError:
        said = {"error": "out of memory"}
    json.dump(said, sys.stdout, default=bytes.hex)


if __name__ == "__main__":
    main()

"""A process of its own that answers one SQL query over some tables: standard input to standard output, as JSON.

The query comes from a model, so the system bounds its memory and its seconds, and SQLite lets it do nothing but read
these tables. It is SQLite because its dialect has what such questions need, joins, windows and aggregates, and because
it comes with Python. The file is run by its path and imports nothing of Fathom, so that it starts in 50 ms.
"""

from __future__ import annotations

import json
import re
import sqlite3
import sys
from collections.abc import Callable, Iterator, Sequence
from statistics import median
from typing import Any

MOST_ROWS = 50
MOST_CHARS = 20_000  # of a result
_LONGEST = 100_000  # bytes of a value
_FUNCTIONS = """
abs avg ceil ceiling coalesce count cume_dist date dense_rank exp first_value floor format group_concat iif ifnull
instr julianday lag last_value lead length like ln log lower ltrim max median min mod nth_value ntile nullif
percent_rank pow power printf rank replace round row_number rtrim sign sqrt strftime substr substring sum total trim
typeof unicode upper
"""
_QUOTED = re.compile(r"""'(?:[^']|'')*'|"(?:[^"]|"")*"|\[[^]]*]""")
_BRACKETS = re.compile(r"\([^()]*\)")
_RESULTS = re.compile(
    r"\bselect\b(.*?)(?=\b(?:from|where|group|union|except|intersect|order|limit)\b|\Z)", re.IGNORECASE
)
_TOKEN = re.compile(r"(?P<word>[a-z_]\w*)|(?P<number>\d+(?:\.\d*)?(?:e[+-]?\d+)?|\.\d+)|\S", re.IGNORECASE)
_CLAUSE = re.compile("select|from|where|group|having|order|limit|offset|on|when|union|except|intersect|values")
_COUNTS_PLACES = re.compile("round|substr(?:ing)?|nth_value|lag|lead|ntile")  # by its second argument
_OF_FORM = frozenset((0, 1, 100))  # that make a fraction, a share in per cent or a flag
_LABEL = re.compile(r"""(?:'(?:[^']|'')*'|null)(?: (?:as )?(?:\w+|\[[^]]*]))?""", re.IGNORECASE)


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
    """Return the columns and rows of a query over tables, the columns that it read of each, and its first constant.

    Of a query that fails, its error.
    """
    functions = _FUNCTIONS.split()
    read: dict[str, list[str]] = {}
    counts: list[str] = []

    def allow(action: int, first: str | None, second: str | None, *_others: str | None) -> int:
        if action == sqlite3.SQLITE_FUNCTION:
            counts.extend(["count"] * (second in ("count", "row_number")))
            return sqlite3.SQLITE_OK if second in functions else sqlite3.SQLITE_DENY
        if action == sqlite3.SQLITE_READ and not (first or "").lower().startswith("sqlite_"):
            if first in tables:
                read.setdefault(first, []).extend([second] if second else [])  # count(*) reads none
            return sqlite3.SQLITE_OK  # of a subquery, too
        return sqlite3.SQLITE_OK if action == sqlite3.SQLITE_SELECT else sqlite3.SQLITE_DENY

    def is_constant(result: str) -> bool:
        read.clear()
        counts.clear()
        try:
            connection.execute(f"EXPLAIN SELECT {result}")
        except sqlite3.Error:
            return False  # it names a column, which this SELECT does not know
        return not counts and not any(read.values())

    connection = sqlite3.connect(":memory:")
    for name, (columns, rows) in tables.items():
        connection.execute(f"CREATE TABLE {quoted(name)} ({', '.join(f'{quoted(c)} COLLATE NOCASE' for c in columns)})")
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
    if sum(len(str(value)) for row in rows for value in row) > MOST_CHARS:
        return {"error": f"the result has more than {MOST_CHARS} characters"}
    used = {t: list(dict.fromkeys(names)) for t, names in read.items() if counts or any(read.values())}
    return {
        "columns": [column[0] for column in found.description or ()],
        "rows": rows[:MOST_ROWS],
        "more": len(rows) > MOST_ROWS,
        "read": used,
        "constant": next(_constants(query, is_constant), ""),
        "numbers": list(dict.fromkeys(own_numbers(query))),
    }


def own_numbers(query: str) -> Iterator[str]:
    """Yield the numbers that a query itself puts into its results, as it writes them: no table says them.

    Numbers of conditions and limits choose rows only; 0, 1 and 100 make shares, and some arguments count places.
    """
    clause, function, argument, before = "", "", 0, ""
    outer: list[tuple[str, str, int]] = []
    for token in _TOKEN.finditer(_QUOTED.sub(_dots, query)):
        said = token[0].lower()
        if said == "(":
            outer.append((clause, function, argument))
            function, argument = before, 0
        elif said == ")" and outer:
            clause, function, argument = outer.pop()
        elif said == ",":
            argument += 1
        elif _CLAUSE.fullmatch(said):
            clause = said
        elif said in ("then", "else"):
            clause = "select"
        elif token["number"] and clause in ("select", "values") and before not in ("<", ">", "="):
            chooses = function == "in" or (argument and _COUNTS_PLACES.fullmatch(function))
            if not chooses and float(said) not in _OF_FORM:
                yield token[0]
        before = said


def _constants(query: str, is_constant: Callable[[str], bool]) -> Iterator[str]:
    """Yield the results of a query that use no column; a text may label a row beside results that use one."""
    query = _QUOTED.sub(lambda found: f"[{found[0][1:-1]}]" if found[0][0] == '"' else found[0], query)
    outer = _QUOTED.sub(_dots, query)
    while (shorter := _BRACKETS.sub(_dots, outer)) != outer:
        outer = shorter
    for select in _RESULTS.finditer(outer):
        commas = [n for n in range(*select.span(1)) if outer[n] == ","]
        ends = zip([select.start(1), *(n + 1 for n in commas)], [*commas, select.end(1)], strict=True)
        results = [query[start:end].strip() for start, end in ends]
        constants = [result for result in results if is_constant(result)]
        labels = [result for result in constants if _LABEL.fullmatch(result)] if len(constants) < len(results) else []
        yield from (result for result in constants if result not in labels)


def _dots(found: re.Match[str]) -> str:
    return "." * len(found[0])


def quoted(name: str) -> str:
    """Return a name as SQL may hold any."""
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    """Return a text as SQL may hold any."""
    return "'" + text.replace("'", "''") + "'"


def main() -> None:
    """Answer the query of standard input within the seconds of a processor and the bytes of data that it may take."""
    given = json.load(sys.stdin)
    if sys.platform == "linux":  # other systems do not enforce all of it
        import resource

        for what, most in (
            (resource.RLIMIT_DATA, given["memory"]),
            (resource.RLIMIT_CPU, given["seconds"]),
            (resource.RLIMIT_NOFILE, 3),  # neither files nor sockets beside the standard streams
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

"""Numbers that nobody wrote: one SQL query over the tables that this run has read.

What a query finds is a source of its own, with the query as its address: it states the result, and below it the rows of
the tables that the query read, as their sources have them. So claims can be checked against it like any others, and
whoever doubts a number sees from what it came. Tables have names that do not depend on what else was read meanwhile.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Any, NamedTuple, Self

from fathom.errors import ToolRejected
from fathom.evidence.computed import TOTAL, Value, bare_number, comparable, is_number, may_be_number, values_of
from fathom.facts.numbers import CURRENCIES, UNITS, MeasureUnit
from fathom.models import SourceText, ToolOutput
from fathom.roles.researcher import QUERY_CHARS
from fathom.sources.corroboration import COMPUTED, COMPUTED_FROM
from fathom.text.plain import clean_line, counted
from fathom.text.tables import BAR, NOTHING, WholeTable, plain_cell, tables_of
from fathom.text.urls import source_ids
from fathom.tools import sql
from fathom.tools.base import ArtifactReader, RunContext, Tool

SECONDS = 5  # of a processor, that a query may take
MEMORY = 256 << 20  # bytes of data that its process may hold; interpreter and SQLite take 20 MB
MOST_TABLES = 12  # in the description
MOST_COLUMNS = 24  # of a table, there
NAMED_TEXTS = 3  # of a column of numbers, there
NAMED_CHARS = 30  # of such a text
SHOWN_ROWS = 30  # of a table below a result, of each of its two groups
_OWN_OUTPUT = re.compile(r"__(?:artifact_grep|artifact_read|compute)(__\d+)?\.\w+\Z")
_SELECT = re.compile(r"(?:select|with)\b", re.IGNORECASE)
_WAIT = 6 * SECONDS  # the machine may be busy
_WORDS = re.compile(r"[^\W\d_](?:[^\W\d_]|[ .,/()'’-])*")
_EMPHASIS = re.compile(r"[*`]")
_FIGURE = re.compile(r"\W{0,3}(\d(?:[\d.,’' ]*\d)?)")
_SLASHED = re.compile(r"(\d\d?)/(\d\d?)/\d")
_INTEGERS = 10**15  # below it, a float holds each
_KEYWORDS = re.compile(
    "all|and|as|between|by|case|check|column|create|default|desc|else|end|exists|from|group|having|in|index|is|join|"
    "like|limit|not|null|on|or|order|primary|references|select|set|table|then|to|union|unique|update|using|values|"
    "when|where"
)


Cell = str | int | float | None


class Column(NamedTuple):
    """A column of a table for SQL: its name, what its values are, and the values."""

    name: str
    kind: str  # text, date, or number with its unit
    values: list[Cell]


class RunTable(NamedTuple):
    """A table of a stored text, and its form for SQL."""

    name: str
    source: SourceText
    table: WholeTable
    columns: list[Column]

    def described(self) -> str:
        """Return its name and columns as a model needs them: names and few words only, as a text may give orders."""
        columns = ", ".join(f"{column.name} {column.kind}" for column in self.columns[:MOST_COLUMNS])
        more = ", ..." if len(self.columns) > MOST_COLUMNS else ""
        totals = ", some of them totals" if any(TOTAL.match(row[0]) for row in self.table.rows) else ""
        part = "; of an excerpt, perhaps not all rows" if not self.source.full else ""
        return f"{self.name}({columns}{more}), {len(self.table.rows)} rows{totals}{part}"


class ComputeTool(Tool):
    """Answers an SQL query over the tables that this run has read; a model is offered it once there are some."""

    name = "compute"
    description = (
        "Computes what no text says from tables that this run has read: the least or greatest, sums, averages, counts, "
        "shares, joins. Input: one SELECT of SQLite, without recursion; median(x) is there too. Counts are integers: "
        "write 1.0 * count(x) / count(*). Text among numbers is 0 in avg and greater than any number: leave it out by "
        "WHERE typeof(x) <> 'text'. Select the names of rows beside numbers. The tables:"
    )
    over_tables = True

    def __init__(self, artifacts: ArtifactReader) -> None:
        self._artifacts = artifacts
        self._known: dict[str, list[SourceText]] = {}  # the texts with tables, by raw output, which never changes

    @classmethod
    def open(cls, run: RunContext) -> Self:
        """Query the raw outputs of the run."""
        return cls(run.artifacts)

    async def offer(self, files: Sequence[str]) -> str:
        """Return its description with the tables of some raw outputs; empty if they have none."""
        tables = await self._tables(files)
        lines = [f"  - {table.described()}" for table in tables[:MOST_TABLES]]
        return "\n".join([self.description, *lines]) if lines else ""

    async def run(self, tool_input: str) -> ToolOutput:
        """Return the result of a query, with the rows that it came from, as a source of its own."""
        query = " ".join(tool_input.replace("`", '"').split()).rstrip("; ")
        if not query or len(query) > QUERY_CHARS:
            raise ToolRejected(f"A query has 1 to {QUERY_CHARS} characters; this one has {len(query)}.")
        if not _SELECT.match(query):
            raise ToolRejected("The input is no query.", next_step="write one SELECT")
        tables = {table.name: table for table in await self._tables(await self._artifacts.list())}
        found = await asyncio.to_thread(_answered, query, tables)
        read: dict[str, list[str]] = found["read"]
        if found["constant"] or not read:
            what = f"`{found['constant']}`" if found["constant"] else "The query"
            next_step = "select from the tables, and compute each result from their columns"
            raise ToolRejected(f"{what} reads no column of a table.", next_step=next_step)
        return ToolOutput(results=[_source(query, found, [(tables[name], names) for name, names in read.items()])])

    async def _tables(self, files: Sequence[str]) -> list[RunTable]:
        names = [name for name in files if not _OWN_OUTPUT.search(name)]
        for name in names:
            if name not in self._known:
                output = await self._artifacts.read(name)
                self._known[name] = await asyncio.to_thread(_with_tables, output.results)
        texts = [text for name in names for text in self._known[name]]
        return await asyncio.to_thread(lambda: list(tables_in(texts)))


def _with_tables(texts: Sequence[SourceText]) -> list[SourceText]:
    return [text for text in texts if any(tables_of(text.text))]


def tables_in(texts: Sequence[SourceText]) -> Iterator[RunTable]:
    """Yield the tables of some texts, of several texts of one source each table once, with the rows of all of them."""
    found: dict[str, list[tuple[SourceText, WholeTable]]] = {}
    for text in dict.fromkeys(text.source_id for text in texts):
        of_source = {each.text: each for each in texts if each.source_id == text}
        found[text] = []
        for each in sorted(of_source.values(), key=lambda each: (not each.full, -len(each.text))):
            before = [*found[text]]
            for table in tables_of(each.text):
                alike = [(n, old) for n, (_, old) in enumerate(before) if old.lines[0] == table.lines[0]]
                if any({*table.lines} <= {*old.lines} for _, old in alike):
                    continue
                same = next((n for n, old in alike if old.above == table.above and not each.full), None)
                if same is None:
                    found[text].append((each, table))
                else:
                    found[text][same] = (found[text][same][0], _joined(found[text][same][1], table))
    taken: set[str] = set()
    for tables in found.values():
        for source, table in tables:
            name = _name_of(source, table)
            while name in taken:
                name += "b"
            taken.add(name)
            yield RunTable(name, source, table, _columns(table))


def _joined(table: WholeTable, other: WholeTable) -> WholeTable:
    known = {*table.lines}
    new = [(line, row) for line, row in zip(other.lines[1:], other.rows, strict=True) if line not in known]
    return table._replace(rows=[*table.rows, *(r for _, r in new)], lines=[*table.lines, *(line for line, _ in new)])


def _name_of(source: SourceText, table: WholeTable) -> str:
    digest = hashlib.sha256(f"{source.source_id}{table.above}{table.lines[0]}".encode()).hexdigest()[:4]
    return f"{_identifier(source.title, 't')}_{digest}"


def _identifier(text: str, instead: str) -> str:
    name = "_".join(re.findall(r"\w+", plain_cell(text).lower()))[:30].strip("_")
    return f"{instead}_{name}".rstrip("_") if not name or name[0].isdigit() or _KEYWORDS.fullmatch(name) else name


def _columns(table: WholeTable) -> list[Column]:
    columns: list[Column] = []
    for number, header in enumerate(table.header):
        name = _identifier(header, "c")
        while name in {column.name for column in columns}:
            name += "_"
        cells = [_clean(row[number]) if number < len(row) else "" for row in table.rows]
        columns.append(Column(name, *_typed(header, cells)))
    return columns


def _clean(cell: str) -> str:
    return " ".join(_EMPHASIS.sub("", cell).replace("\\|", "|").split())


def _typed(header: str, cells: Sequence[str]) -> tuple[str, list[Cell]]:
    """Return what the values of a column are, and the values; words such as "included" stay beside numbers or dates.

    A column of names has more different ones than numbers, and is text.
    """
    words = {n: cell for n, cell in enumerate(cells) if cell.lower() not in NOTHING and _WORDS.fullmatch(cell)}
    texts = Counter(words.values())
    kind, values = _figures(header, [cell for n, cell in enumerate(cells) if n not in words])
    others = sum(value is not None for value in values)
    if not words or not others or kind.startswith("text") or len(texts) > others:
        return _figures(header, cells)
    read = iter(values)
    return f"{kind} (and {_told(texts)})", [words[n] if n in words else next(read) for n in range(len(cells))]


def _told(texts: Counter[str]) -> str:
    """Return the most frequent texts of a column of numbers with their rows, but no long one: it may give orders."""
    named = [(text, rows) for text, rows in texts.most_common() if len(text) <= NAMED_CHARS][:NAMED_TEXTS]
    told = [f"the text {sql.literal(text)} in {counted(rows, 'row')}" for text, rows in named]
    rest = texts.total() - sum(rows for _, rows in named)
    return ", ".join([*told, *([f"other texts in {counted(rest, 'row')}"] if rest else [])])


def _figures(header: str, cells: Sequence[str]) -> tuple[str, list[Cell]]:
    """Return what the values of a column are, and the values: numbers only where each cell is one, in one unit."""
    given = {n: _unit_behind(cell) for n, cell in enumerate(cells) if cell.lower() not in NOTHING}
    texts: list[Cell] = [cell or None for cell in cells]
    found = {n: list(values_of(cell)) for n, cell in given.items()}
    if any(map(is_number, found.values())):
        found |= {n: [bare_number(cell)] for n, cell in given.items() if may_be_number(cell, header)}
    if not given or not all(len(values) == 1 for values in found.values()):
        return _as_text(cells), texts
    values = {n: one._replace(loose=False) for n, [one] in found.items()}
    first = values[min(values)]
    if not all(given[n].startswith(one.text) and comparable(first, one) for n, one in values.items()):
        return _as_text(cells), texts
    if len({given[n].removeprefix(one.text) for n, one in values.items()}) > 1:
        return _as_text(cells), texts
    if first.is_date:
        return _dated(values, texts)
    figures = {n: figure[0] if (figure := _FIGURE.match(cell)) else "" for n, cell in given.items()}
    kinds = {one.kind for n, one in values.items() if given[n] != figures[n]}
    thousandths = _thousandths(figures, money=first.kind in CURRENCIES)
    if len(kinds) > 1 or thousandths is None:
        return _as_text(cells), texts
    unit = min(
        (UNITS[one.unit.lower()] for one in values.values() if one.unit.lower() in UNITS), key=_size, default=None
    )
    amounts = {n: one.amount / (unit.factor if unit else 1) for n, one in values.items()}
    amounts |= {n: amounts[n] / 1_000 for n in thousandths}
    kind = f"number in {unit.sign}" if unit else "number"
    empty = f" with {len(cells) - len(given)} empty" if len(given) < len(cells) else ""
    return kind + empty, [float(amounts[n]) if n in amounts else None for n in range(len(cells))]


def _as_text(cells: Sequence[str]) -> str:
    return "text (not numbers)" if any(map(_FIGURE.match, cells)) else "text"


def _unit_behind(cell: str) -> str:
    """Return a cell as numbers are read: of "+3" without the sign, of "USD 5" with the currency behind."""
    word, _, rest = cell.removeprefix("+").partition(" ")
    unit = UNITS.get(word.lower())
    return f"{rest} {word}" if unit and unit.dimension in CURRENCIES and rest[:1].isdigit() else cell.removeprefix("+")


def _thousandths(figures: dict[int, str], *, money: bool) -> list[int] | None:
    """Return the cells in whose figure a mark before three digits is the decimal mark; None: they cannot be read.

    1,234 and 1.234 are read as the other cells of the column are, 3.50 or 1.234,50; where these do not tell, a comma is
    of thousands, and so is a point in amounts of money. Codes such as 007 and versions such as 3.11.2 are no numbers.
    """
    decimal, unclear = set[str](), dict[int, str]()
    for n, figure in figures.items():
        whole, *groups = re.split("[.,]", figure)
        marks = re.findall("[.,]", figure)
        if (len(whole) > 1 and whole[0] == "0") or (len(marks) > 2 and len(set(marks[:-1])) > 1):
            return None
        grouped = len(whole) <= 3 and whole != "0" and all(len(group) == 3 for group in groups)
        if len(set(marks)) == 2 or (len(marks) == 1 and not grouped):
            decimal.add(marks[-1])
        elif len(marks) == 1:
            unclear[n] = marks[0]
        elif marks and not grouped:
            return None
        elif marks:
            decimal.add("," if marks[0] == "." else ".")
    if unclear and (len(decimal) > 1 or (not decimal and "." in unclear.values() and not money)):
        return None
    return [n for n, mark in unclear.items() if mark in decimal]


def _size(unit: MeasureUnit) -> Decimal:
    return unit.factor


def _dated(values: dict[int, Value], texts: list[Cell]) -> tuple[str, list[Cell]]:
    slashed = [found.groups() for value in values.values() if (found := _SLASHED.match(value.text))]
    if slashed and (any(int(a) > 12 for a, _ in slashed) or all(int(b) <= 12 for _, b in slashed)):
        return "text (not dates)", texts  # the day may stand before the month
    days = {n: f"{int(value.amount):08d}" for n, value in values.items()}
    if all(day.endswith("0000") for day in days.values()):
        return "year", [int(days[n][:4]) if n in days else None for n in range(len(texts))]
    if any(day.endswith("00") for day in days.values()):
        return "text (not dates)", texts
    iso: list[Cell] = [f"{days[n][:4]}-{days[n][4:6]}-{days[n][6:]}" if n in days else None for n in range(len(texts))]
    return "date as YYYY-MM-DD", iso


def _answered(query: str, tables: dict[str, RunTable]) -> dict[str, Any]:
    given = {
        name: ([c.name for c in each.columns], list(zip(*(c.values for c in each.columns), strict=True)))
        for name, each in tables.items()
    }
    try:
        done = subprocess.run(  # noqa: S603 - the query is no part of the command
            [sys.executable, "-I", sql.__file__],
            input=json.dumps({"query": query, "tables": given, "seconds": SECONDS, "memory": MEMORY}),
            capture_output=True,
            encoding="utf-8",
            timeout=_WAIT,
            check=True,
        )
    except (subprocess.TimeoutExpired, subprocess.CalledProcessError) as error:
        limits = f"{SECONDS} seconds or {MEMORY >> 20} MB of memory"
        message = f"The query takes more than {limits}."
        raise ToolRejected(message, next_step="join tables on equal columns, and select less") from error
    found: dict[str, Any] = json.loads(done.stdout)
    if "error" in found:
        raise ToolRejected(f"SQLite: {found['error'].rstrip('.')}.", next_step="mend the query")
    return found


def _source(query: str, found: dict[str, Any], read: Sequence[tuple[RunTable, Sequence[str]]]) -> SourceText:
    """Return the result of a query as a source: its rows, then the rows of each table that it read."""
    addresses = dict.fromkeys(table.source.url for table, _ in read)
    names = dict.fromkeys(_file_or_page(table.source) for table, _ in read)
    more = f"\n\nOnly the first {sql.MOST_ROWS} rows." if found["more"] else ""
    own = f" and the query's own {', '.join(found['numbers'])}" if found["numbers"] else ""
    result = _markdown(found["columns"], map(_cells, found["rows"])) if found["rows"] else f"No row fits: `{query}`"
    parts = [f"# Result of a query\n\n{result}{more}", *(_origin(table, names, found["rows"]) for table, names in read)]
    url = f"{COMPUTED}:{clean_line(query)}"
    return SourceText(
        source_id=source_ids([url])[url],
        url=url,
        title=f"Computed from {' and '.join(names)} ({_amount(read)}){own}",
        kind="document",
        fields={COMPUTED_FROM: ", ".join(addresses)},
        text="\n\n".join(parts),
    )


def _file_or_page(source: SourceText) -> str:
    scheme, _, path = source.url.partition(":")
    return clean_line(path.rpartition("/")[2] if scheme == "docs" else source.title)


def _amount(read: Sequence[tuple[RunTable, Sequence[str]]]) -> str:
    """Return how many cells with a value were read; how many rows, if the query only counts them."""
    columns = [column for table, names in read for column in table.columns if column.name in names]
    if not columns:
        return counted(sum(len(table.table.rows) for table, _ in read), "row")
    return counted(sum(value is not None for column in columns for value in column.values), "cell")


def _origin(table: RunTable, names: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """Return the rows of a table in the columns that were read: first those with a name that the result has."""
    numbers = [n for n, column in enumerate(table.columns) if n == 0 or column.name in names]
    results = {value for row in rows for value in row if isinstance(value, str)}
    cells = [[row[c] if c < len(row) else "" for c in numbers] for row in table.table.rows]
    has_name = [any(table.columns[c].values[n] in results for c in numbers) for n in range(len(cells))]
    named, others = ([n for n, has in enumerate(has_name) if has is wanted] for wanted in (True, False))
    part = "" if table.source.full else " Only an excerpt of the source was read: the table may have more rows."
    kinds = "; ".join(f"`{table.columns[c].name}`: {table.columns[c].kind}" for c in numbers)
    said = [
        f"## {clean_line(table.source.title)}, {clean_line(table.source.url)}",
        f"The query has this table as `{table.name}`, with {kinds}.{part}",
    ]
    for title, chosen in (("Rows with a name of the result:", named), ("Other rows:" if named else "", others)):
        shown = [cells[n] for n in chosen[:SHOWN_ROWS]]
        left = f"\n\n{len(chosen) - len(shown)} more rows." if len(chosen) > len(shown) else ""
        if chosen:
            said += [title, _markdown([table.table.header[n] for n in numbers], shown) + left]
    return "\n\n".join(filter(None, said))


def _cells(row: Sequence[Any]) -> list[str]:
    return [BAR.sub(r"\|", _said(value)) for value in row]


def _said(value: Cell) -> str:
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() and abs(value) < _INTEGERS else f"{value:.12g}"
    return "no value" if value is None else clean_line(str(value))


def _markdown(header: Sequence[str], rows: Any) -> str:
    lines = [_cells(header), ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)

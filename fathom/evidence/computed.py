"""Sentences computed from values that sources state: a difference, or what the rows of a table come to.

A comparison names each of its two operands by its value and, in brackets, its name: "Computed: 71 dB (Gannet) is 8 dB
more than 63 dB (Corvid)." It holds if each value stands in a cited source beside the name, in one sentence or row, or
below a heading or title that has the name, and if the same is computed again. The others say from what of a table they
are computed, "the lowest of the 10 values of “Quay”", and hold if that follows from a whole table of a cited source. So
whoever checks a report needs no more than the sentence and its sources.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from decimal import Decimal
from functools import lru_cache
from typing import NamedTuple

from fathom.evidence.passages import Search, SourcePassage
from fathom.evidence.stored import StoredText
from fathom.facts.dates import Date, find_dates
from fathom.facts.extraction import facts_of
from fathom.facts.numbers import UNITS, Number, numbers_of
from fathom.retrieval.ranking import path_words
from fathom.text.parsed import parse
from fathom.text.records import records_of
from fathom.text.sentences import Sentence
from fathom.text.tables import NOTHING, WholeTable, plain_cell, tables_of
from fathom.text.terms import terms

MARK = "Computed: "
"""Beginning of each computed sentence."""
_OPERAND = r"(?P<{0}>[^();]{{1,60}}) \((?P<{0}_of>[^()]{{1,80}})\)"
_DIFFERENCE = re.compile(
    rf"{_OPERAND.format('a')} is (?P<by>as much as|.{{1,60}} (?:more|less|earlier|later) than) {_OPERAND.format('b')}"
)
_WHERE = r"(?: where rows have “(?P<where>[^”]+)”)?"
_EXTREME = re.compile(
    rf"the (?P<end>lowest|highest|earliest|latest) of the \d+ values of “(?P<column>[^”]+)”{_WHERE} is .+"
)
_COUNT = re.compile(r"\d+ of the \d+ rows (?P<lack>do(?:es)? not )?ha(?:ve|s) “(?P<wanted>[^”]+)”(?:: .+)?")
_SUM = re.compile(rf"the (?P<what>sum|average) of the \d+ values of “(?P<column>[^”]+)”{_WHERE} is .+")
_MOST = re.compile(r"“[^”]+” is the most frequent value of “(?P<column>[^”]+)”, in \d+ of the \d+ rows(?:: .+)?")


_COMES_TO = re.compile(
    rf"{MARK}(?:the (?:lowest|highest|earliest|latest) of the \d+ values of [^.]*? is )?"
    r"[^();]{1,60} \((?P<name>[^()]{1,80})\)"
)
_READ = re.compile(r"of the (\d+) (?:values|rows)\b")


class Value(NamedTuple):
    """A number or date that a text states, as it is written, and in a comparable form."""

    text: str
    amount: Decimal  # in the dimension's own unit; of a date, YYYYMMDD
    kind: str  # the dimension, what is counted, or "date"
    unit: str  # as the text writes it
    loose: bool = False  # "1.200", which may be one or a thousand; read as the latter

    @property
    def is_date(self) -> bool:
        """Whether it is a date."""
        return self.kind == DATE


class Operand(NamedTuple):
    """A value, and the name of the thing that has it."""

    value: Value
    name: str

    def __str__(self) -> str:
        return f"{self.value.text} ({self.name})"


DATE = "date"
LEAST_ROWS = 3  # least rows of a table for naming its greatest value
LEAST_CHOSEN = 2  # least rows with what is asked, for their greatest value or sum
CENT = Decimal("0.01")
_NAMES = re.compile(r"(rows(?: (?:do(?:es)? not )?ha(?:ve|s) “[^”]+”)?): [^“”]+\.\Z")
ALSO = "; "
"""Between two conditions on the rows of a table."""


def without_names(sentence: str) -> str:
    """Return a sentence on the rows of a table without their names."""
    return _NAMES.sub(r"\1.", sentence)


def values_of(text: str) -> Iterator[Value]:
    """Yield the amounts and dates that a text states, in reading order."""
    facts = facts_of(text)
    found = [(number.start, _of_number(number, facts.text)) for number in facts.numbers]
    found += [(dated.start, _of_date(dated.date, dated.text)) for dated in facts.dates if dated.date.year]
    yield from (value for _, value in sorted(found, key=lambda pair: pair[0]) if value)


def _of_number(number: Number, text: str) -> Value | None:
    if number.unit in ("ordinal", "decade"):
        return None
    amount, loose = max(number.values), len(number.values) > 1
    unit = UNITS.get(number.unit.lower())
    if unit:
        return Value(number.text, amount * unit.factor, unit.dimension, number.unit, loose)
    behind = re.match(r"[\s\u00a0-]?([^\W\d_]+)", text[number.end :]) if number.counted else None
    written = f"{number.text}{behind[0]}" if behind else number.text
    return Value(written, amount, next(iter(number.counted), ""), behind[1] if behind else "", loose)


def _of_date(date: Date, text: str) -> Value:
    return Value(text, Decimal(date.year * 10_000 + date.month * 100 + date.day), DATE, "")


def winner_of(text: str) -> str:
    """Return the name to which the first computed sentence of a text comes, of a table or of two; empty without one."""
    found = _COMES_TO.search(text)
    return found["name"] if found else ""


def difference(a: Operand, b: Operand) -> str | None:
    """Return the sentence that compares two values; None if they cannot be compared."""
    said = _by(a.value, b.value)
    return f"{MARK}{a} is {said} {b}." if said else None


def _by(a: Value, b: Value) -> str:
    """Return the difference of a value from another: "8 dB more than"."""
    if not comparable(a, b):
        return ""
    if a.amount == b.amount:
        return "" if a.is_date else "as much as"
    if a.is_date:
        return _apart_in_time(a, b)
    return f"{_written(abs(a.amount - b.amount), a)} {'more' if a.amount > b.amount else 'less'} than"


def comparable(a: Value, b: Value) -> bool:
    """Whether two values are of one kind; numbers without a unit are, where only one tells what it counts.

    Beside a fraction, what may be one or a thousand is not clear.
    """
    if (a.loose and _is_fraction(b)) or (b.loose and _is_fraction(a)):
        return False
    plain = not (a.is_date or b.is_date or a.unit.lower() in UNITS or b.unit.lower() in UNITS)
    return a.kind == b.kind or (plain and "" in (a.kind, b.kind))


def _is_fraction(value: Value) -> bool:
    return not value.loose and bool(re.search(r"\d[.,]\d{1,2}(?!\d)", value.text))


_COMMA = re.compile(r",\d{1,2}(?!\d)")  # of a fraction
_CENTS = re.compile(r"[.,]\d\d\Z")
_FIGURE = re.compile(r"\d(?:[\d.,’' \u00a0\u202f]*\d)?|\w+")


def _written(amount: Decimal, like: Value) -> str:
    """Return an amount as a value is written: of "77 million crowns", "25 million crowns"."""
    figure = _FIGURE.search(like.text)
    [number] = numbers_of(figure[0]) if figure else [None]
    if not figure or not number:
        return ""
    scaled = amount / (like.amount / max(number.values))
    cents = _CENTS.search(figure[0]) and scaled % 1 and scaled == scaled.quantize(CENT)
    said = f"{scaled.quantize(CENT) if cents else scaled.normalize():,f}"
    if like.loose or _COMMA.search(figure[0]):
        said = said.translate(str.maketrans(",.", ".,"))
    return f"{like.text[: figure.start()]}{said}{like.text[figure.end() :]}".strip()


def _apart_in_time(a: Value, b: Value) -> str:
    (year, month, day), (other_year, other_month, other_day) = (_parts(value.amount) for value in (a, b))
    way = "later" if a.amount > b.amount else "earlier"
    if day and other_day:
        from datetime import date

        days = abs((date(year, month, day) - date(other_year, other_month, other_day)).days)
        return f"{days} {'day' if days == 1 else 'days'} {way} than"
    if month and other_month:
        months = abs(12 * (year - other_year) + month - other_month)
        return f"{months} {'month' if months == 1 else 'months'} {way} than"
    years = abs(year - other_year)
    return f"{years} {'year' if years == 1 else 'years'} {way} than" if years else ""


def _parts(amount: Decimal) -> tuple[int, int, int]:
    number = int(amount)
    return number // 10_000, number // 100 % 100, number % 100


def extreme(table: WholeTable, column: int, where: str = "", *, greatest: bool) -> tuple[str, Operand] | None:
    """Return the sentence that names the least or greatest value of a column, and the value; None if it is not clear.

    It is unclear, too, if a cell has words and no value, or several: the least may be there. With `where`, only the
    rows count that have it, at least two.
    """
    operands = _operands(table, column, where)
    if len(operands) < (LEAST_CHOSEN if where else LEAST_ROWS):
        return None
    first, second, *_ = sorted(operands, key=lambda operand: operand.value.amount, reverse=greatest)
    if first.value.amount == second.value.amount:
        return None
    word = (("earliest", "latest") if first.value.is_date else ("lowest", "highest"))[greatest]
    return f"{MARK}the {word} of the {_values(table, column, operands, where)} is {first}.", first


def total(table: WholeTable, column: int, where: str = "", *, average: bool) -> str | None:
    """Return the sentence with the sum or average of a column's values; None if a cell has no clear value."""
    operands = _operands(table, column, where)
    if len(operands) < LEAST_CHOSEN or any(operand.value.is_date for operand in operands):
        return None
    amount = sum((operand.value.amount for operand in operands), Decimal(0))
    if average:
        amount = (amount / len(operands)).quantize(CENT)
    written = _written(amount, operands[0].value)
    word = "average" if average else "sum"
    return f"{MARK}the {word} of the {_values(table, column, operands, where)} is {written}." if written else None


def _operands(table: WholeTable, column: int, where: str) -> list[Operand]:
    """Return the value of each row in a column with the row's name; nothing if one is not clear, or of another kind.

    A row whose cell is empty has no value.
    """
    operands = []
    for row in _counted(table):
        if (where and not meets(table, row, where)) or not is_filled(row, column):
            continue
        values = values_in(table, column, row)
        if len(values) != 1:
            return []
        operands.append(Operand(values[0], name_of_row(table, row)))
    return operands if all(comparable(operands[0].value, other.value) for other in operands) else []


def is_filled(row: Sequence[str], column: int) -> bool:
    """Whether a row has something in a column; a dash is nothing, but what is unknown or open is something."""
    return column < len(row) and bool(plain_cell(row[column]).strip("-–— "))


_OF_TIME = frozenset(
    terms(
        "year date day since joined founded built started opened established bought released born died published made "
        "from until jahr datum seit gegründet baujahr"
    )
)
_BARE_YEAR = re.compile(r"\d{4}")


def values_in(table: WholeTable, column: int, row: Sequence[str]) -> list[Value]:
    """Return the values of a row's cell; 1180 is no year where the column has other numbers and no name of a time."""
    cell = plain_cell(row[column]) if column < len(row) else ""
    if may_be_number(cell, table.header[column]) and _has_number(tuple(table.cells(column))):
        return [bare_number(cell)]
    return list(values_of(cell))


@lru_cache(maxsize=64)  # each cell of a column asks for it
def _has_number(cells: tuple[str, ...]) -> bool:
    return any(is_number(list(values_of(cell))) for cell in cells)


def may_be_number(cell: str, header: str) -> bool:
    """Whether a cell that reads as a year, such as 1180, is a number if its column has others."""
    return bool(_BARE_YEAR.fullmatch(cell)) and _OF_TIME.isdisjoint(terms(header))


def is_number(values: Sequence[Value]) -> bool:
    """Whether the values of a cell are one that is no date."""
    return len(values) == 1 and not values[0].is_date


def bare_number(cell: str) -> Value:
    """Return the value of a cell that is digits alone."""
    return Value(cell, Decimal(cell), "", "")


def _values(table: WholeTable, column: int, operands: Sequence[Operand], where: str) -> str:
    chosen = f" where rows have “{where}”" if where else ""
    return f"{len(operands)} values of “{plain_cell(table.header[column])}”{chosen}"


TOTAL = re.compile(
    r"\W*(?:(?:grand |sub)?totals?|sum|all|average|mean|median|gesamt\w*|summe|alle|durchschnitt)\b", re.I
)


def _counted(table: WholeTable) -> list[Sequence[str]]:
    """Return the rows of a table without totals and averages, and without those whose name is still open ("TBD")."""
    return [row for row in table.rows if not (TOTAL.match(row[0]) or (row[0] and row[0].lower() in NOTHING))]


def count(table: WholeTable, wanted: str, *, lacking: bool = False) -> str | None:
    """Return the sentence on the number of rows with, or without, what is wanted; None if all rows have it, or none."""
    counted = _counted(table)
    rows = [row for row in counted if meets(table, row, wanted) is not lacking]
    if not rows or len(rows) == len(counted):
        return None
    said = ("does not have" if lacking else "has") if len(rows) == 1 else ("do not have" if lacking else "have")
    return f"{MARK}{len(rows)} of the {len(counted)} rows {said} “{wanted}”: {_named(table, rows)}."


def most_frequent(table: WholeTable, column: int) -> str | None:
    """Return the sentence that names the value most rows have in a column; None if two are as frequent."""
    counted = _counted(table)
    cells = [plain_cell(row[column]) if column < len(row) else "" for row in counted]
    (value, most), *others = Counter(cells).most_common(2)
    if not value or not others or most == others[0][1]:
        return None
    rows = [row for row, cell in zip(counted, cells, strict=True) if cell == value]
    name = plain_cell(table.header[column])
    said = f"“{value}” is the most frequent value of “{name}”"
    return f"{MARK}{said}, in {most} of the {len(counted)} rows: {_named(table, rows)}."


def _named(table: WholeTable, rows: Sequence[Sequence[str]]) -> str:
    return "; ".join(name_of_row(table, row) for row in rows)


_CODES = frozenset(terms("code id no nr number sku key"))


def name_of_row(table: WholeTable, row: Sequence[str]) -> str:
    """Return the first cell of a row; behind a code also the second, which says what it stands for."""
    coded = len(row) > 1 and not _CODES.isdisjoint(terms(table.header[0]))
    return plain_cell(f"{row[0]} {row[1]}" if coded else row[0])


def meets(table: WholeTable, row: Sequence[str], condition: str) -> bool:
    """Whether a row has some words in whatever cells, a year also in its dates.

    Of "Pool: yes" it must have the words, and of "Rooms > 40" a value beyond the limit, in the column of that name; of
    "Delivered", if that is the name of a column, anything there; of "beginner; Days ≥ 2" it must meet both.
    """
    if ALSO in condition:
        return all(meets(table, row, each) for each in condition.split(ALSO))
    if limited := _LIMITED.fullmatch(condition):
        column = table.column(limited["column"])
        return column is not None and _is_beyond(values_in(table, column, row), limited["sign"], limited["limit"])
    name, _, value = condition.partition(": ")
    column = table.column(name) if value else None
    if column is not None:
        return column < len(row) and terms(row[column]) == terms(value)
    named = table.column(condition)
    if named is not None:
        return is_filled(row, named)
    text = " | ".join(row)
    years = {str(found.date.year) for found in find_dates(text)}
    return set(terms(condition)) <= {*terms(text), *years}


_LIMITED = re.compile(r"(?P<column>.+) (?P<sign>[<>≤≥]) (?P<limit>.+)")


def _is_beyond(values: Sequence[Value], sign: str, limit: str) -> bool:
    """Whether the only value of a cell is beyond a limit; of dates, as far as both are told."""
    limits = [Value(limit, Decimal(limit), "", "")] if _BARE_YEAR.fullmatch(limit) else list(values_of(limit))
    if values and values[0].is_date:
        limits = list(values_of(limit))
    if len(values) != 1 or len(limits) != 1 or not comparable(values[0], limits[0]):
        return False
    amount, other = values[0].amount, limits[0].amount
    if values[0].is_date:
        _, month, day = _parts(other)
        unit = 1 if day else 100 if month else 10_000
        amount, other = amount // unit, other // unit
    more, same = amount > other, amount == other
    return {">": more, "<": not more and not same, "≥": more or same, "≤": not more}[sign]


def cells_read(sentence: str) -> int:
    """Return from how many cells a sentence says that it is computed: two values are compared; 0 if it says nothing."""
    if not sentence.startswith(MARK):
        return 0
    found = _READ.search(sentence)
    return int(found[1]) if found else 2


def computed_from(sentence: str, search: Search, ids: Collection[str] | None) -> list[SourcePassage] | None:
    """Return the places where sources state the values of a computed sentence; nothing if they do not, or it is wrong.

    None for a sentence in none of the forms of this module: it is a claim like any other.
    """
    if not sentence.startswith(MARK):
        return None
    said = sentence.removeprefix(MARK).removesuffix(".")
    if found := _DIFFERENCE.fullmatch(said):
        a, b = _read(found["a"], found["a_of"]), _read(found["b"], found["b_of"])
        if not a or not b or difference(a, b) != sentence:
            return []
        places = [_standing(operand, search, ids) for operand in (a, b)]
        return [place for place in places if place] if all(places) else []
    again = _again(said)
    return _in_table(sentence, search, ids, again) if again else None


def _again(said: str) -> Callable[[WholeTable], str | None] | None:
    """Return what computes a sentence on a table again; None for a sentence in none of these forms."""
    if found := _COUNT.fullmatch(said):
        wanted, lacking = found["wanted"], bool(found["lack"])
        return lambda table: count(table, wanted, lacking=lacking)
    found = _EXTREME.fullmatch(said) or _SUM.fullmatch(said) or _MOST.fullmatch(said)
    if not found:
        return None
    parts = found.groupdict()
    name, where = parts["column"], parts.get("where") or ""

    def computed(table: WholeTable) -> str | None:
        column = table.column(name)
        if column is None:
            return None
        if end := parts.get("end"):
            named = extreme(table, column, where, greatest=end in ("highest", "latest"))
            return named[0] if named else None
        what = parts.get("what")
        return total(table, column, where, average=what == "average") if what else most_frequent(table, column)

    return computed


def _in_table(
    sentence: str, search: Search, ids: Collection[str] | None, again: Callable[[WholeTable], str | None]
) -> list[SourcePassage]:
    """Return the rows that a sentence names of the table from which it is computed; all rows if it names none."""
    for stored in _texts(search, ids):
        for table in tables_of(stored.text):
            computed = again(table)
            if computed and sentence in (computed, without_names(computed)):
                lines = list(zip(table.lines[1:], table.rows, strict=True))
                named = [line for line, row in lines if plain_cell(row[0]) in sentence]
                return [_row(stored, line) for line in named or [line for line, _ in lines]]
    texts = _texts(search, ids)
    for records in records_of([stored.text for stored in texts]):
        computed = again(records.table)
        if computed and sentence in (computed, without_names(computed)):
            rows = list(zip(records.table.rows, records.places, strict=True))
            told = [places for row, places in rows if plain_cell(row[0]) in sentence] or [places for _, places in rows]
            return [_row(texts[place.text], place.words) for places in told for place in places]
    return []


def _texts(search: Search, ids: Collection[str] | None) -> list[StoredText]:
    return [text for text in search.texts if ids is None or text.source.source_id in ids]


def _row(stored: StoredText, line: str) -> SourcePassage:
    start = stored.text.index(line)
    return SourcePassage(stored, start, start + len(line), Sentence(line, start, start + len(line), "table", 0))


def _read(text: str, name: str) -> Operand | None:
    values = list(values_of(text))
    return Operand(values[0]._replace(text=text), name) if len(values) == 1 else None


def _standing(operand: Operand, search: Search, ids: Collection[str] | None) -> SourcePassage | None:
    """Return a sentence or row that has a value, and its name in itself or in the heading or title above it."""
    written = re.compile(rf"(?<![\w.,]){re.escape(operand.value.text)}(?!\w)")
    for stored in _texts(search, ids):
        parsed = parse(stored.text)
        title = f"{stored.source.title} {path_words(stored.source.url)}"
        for found in written.finditer(stored.text):
            number = parsed.holding(found.start(), found.end())[0]
            sentence = parsed.sentence(number)
            heading = next((n for n in range(number, -1, -1) if parsed.kinds[n] == "heading"), None)
            above = parsed.sentence(heading).text if heading is not None else ""
            if any(is_named(operand.name, said) for said in (sentence.text, above, title)):
                return SourcePassage(stored, sentence.start, sentence.end, sentence)
    return None


def is_named(name: str, text: str) -> bool:
    """Whether a text has the words of a name in order, one behind the other."""
    wanted, said = terms(name), terms(text)
    return any(said[n : n + len(wanted)] == wanted for n in range(len(said) - len(wanted) + 1))

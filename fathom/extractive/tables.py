"""What the rows of a table come to: the least or greatest, how many are of a kind, a sum, an average, the commonest.

From all cells that matter, or not at all: a table is read whole, and of one that a search has cut nothing is computed.
A question's words are read as the table knows them: as names of its columns, as what some of its rows have and others
not, or as what each row stands for.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import NamedTuple

from fathom.evidence.computed import (
    ALSO,
    Value,
    comparable,
    count,
    extreme,
    is_filled,
    meets,
    most_frequent,
    name_of_row,
    total,
    values_in,
    values_of,
    without_names,
)
from fathom.extractive.asked_rows import WHO, AskedRows, asked_of_rows, is_person
from fathom.extractive.comparisons import FOUNDING, Grade, superlative_noun
from fathom.extractive.questions import families, is_verb, topic_terms
from fathom.facts.dates import find_dates
from fathom.facts.numbers import UNITS
from fathom.retrieval.asked import LIGHT_TERMS
from fathom.retrieval.expansion import is_family, stand_ins_of, states
from fathom.text.records import RowPlace, records_of
from fathom.text.tables import WholeTable, plain_cell, tables_of
from fathom.text.terms import language_of, terms

MOST_ROWS = 400  # of a table from which something is computed
MOST_SHOWN = 24  # rows that are quoted, and named in a sentence; of more the one that it comes to
FIRST_SHOWN = 3  # of more rows that come to no single one
LEAST_ON = 0.6  # share of the question's words that the table, its title and the lines before it must have
_NONE = re.compile(
    r"\b(?:no|not|other than|except|besides|apart from|außer|cannot|\w+n['’]t|without|lacks?|kein\w*|ohne)\b",
    re.IGNORECASE,
)
_YES = frozenset(("yes", "y", "true", "x", "✓", "✔", "ja"))
_NO = frozenset(("no", "n", "false", "-", "–", "✗", "nein"))
_NAMED = frozenset(terms("name person employee member colleague staff mitarbeiter"))
_FOUNDING = frozenset(terms(FOUNDING))
_NAME = re.compile(r"[A-ZÄÖÜ][\w'’&-]*(?: [A-ZÄÖÜ][\w'’&-]*)+")
_IN_QUOTES = re.compile(r"“([^”]+)”")
_GERMAN_ENDING = re.compile(r"e[mnrs]?\Z")


class FromTable(NamedTuple):
    """What is computed from a table, the rows that it is computed from, also as Markdown, and the one it comes to."""

    sentence: str
    markdown: str
    rows: Sequence[Sequence[str]]
    name: str = ""
    share: float = 1.0  # of the question's words that the table has
    held: int = 0  # how many of them


def from_tables(question: str, titles: Sequence[str], texts: Sequence[str]) -> tuple[int, FromTable] | None:
    """Return what is computed from the table that has most of a question's words, with the number of its text."""
    asked = asked_of_rows(question)
    tables = (
        (number, table, f"{title} {table.above}")
        for number, (title, text) in enumerate(zip(titles, texts, strict=True) if asked else ())
        for table in tables_of(text)
    )
    return _of_best(asked, tables)


class FromRecords(NamedTuple):
    """What is computed from texts of one form, the places that it is read from, and all texts that it needs."""

    sentence: str
    places: Sequence[RowPlace]
    texts: Sequence[int]
    name: str
    share: float


def from_records(question: str, titles: Sequence[str], texts: Sequence[str]) -> FromRecords | None:
    """Return what is computed from the pages, sections or sentences of one form with most of a question's words."""
    asked = [each for each in asked_of_rows(question) if not each.only_lists]
    records = list(records_of(texts)) if asked else []
    needed = [sorted({place.text for places in each.places for place in places}) for each in records]
    above = [" ".join(titles[number] for number in each) for each in needed]
    tables = ((n, each.table, f"{above[n]} {each.table.above}") for n, each in enumerate(records))
    best = _of_best(asked, tables)
    if not best:
        return None
    number, made = best
    table, rows = records[number].table, records[number].places
    chosen = [place for row, places in zip(table.rows, rows, strict=True) if row in made.rows for place in places]
    said = [place for place in chosen if any(name in place.words for name in _IN_QUOTES.findall(made.sentence))]
    return FromRecords(made.sentence, said or chosen, needed[number], made.name, made.share)


def _of_best(asked: Sequence[AskedRows], tables: Iterable[tuple[int, WholeTable, str]]) -> tuple[int, FromTable] | None:
    """Return what is computed of the table that has most of a question's words, with its number."""
    best: tuple[int, FromTable] | None = None
    best_fit = (0.0, 0)  # of a table from which nothing may be computable: another that fits less is not meant
    rows: Sequence[Sequence[str]] = ()  # of that table
    for number, table, above in tables:
        if len(table.rows) > MOST_ROWS:
            continue
        tried = [_AskedTable(each, table, above) for each in asked]
        fit = max(each.fit for each in tried)
        if fit[0] < LEAST_ON or fit < best_fit:
            continue
        if fit == best_fit and not fit[1] and table.rows != rows:  # no word tells which of the two is meant
            best = None
            continue
        found = next(filter(None, (each.computed() for each in tried)), None)
        if fit > best_fit or not best:
            best = (number, found) if found else None
        best_fit, rows = fit, table.rows
    return best


def _words_of_name(column: str) -> list[str]:
    """Return the words of a column's name: "price_gbp" has two."""
    return plain_cell(column).replace("_", " ").split()


def _is_in_time(grade: Grade | None, limited: Value | None) -> bool:
    return limited.is_date if limited else bool(grade and grade.is_in_time)


def _is_in_unit(limit: Value | None, column: Iterable[str]) -> bool:
    """Whether a bound has a unit of measurement, or counts what a column says: 20 seats are no customers."""
    if not limit or not limit.unit:
        return False
    return limit.unit.lower() in UNITS or set(terms(limit.unit)) <= set(terms(" ".join(column)))


class _AskedTable:
    """A table, and what a question's words are in it."""

    def __init__(self, asked: AskedRows, table: WholeTable, above: str) -> None:
        self._asked = asked
        self._table = table
        self._said = set(terms(f"{above} {' '.join(table.header)}"))
        named = Counter(term for row in table.rows for term in {*terms(row[0])})
        self._subjects = {term for term, rows in named.items() if rows in (1, len(table.rows))}
        self._known = self._said | self._subjects
        self._of_people = not _NAMED.isdisjoint(terms(table.header[0]))
        self._conditions = dict(self._each_condition())
        self.fit = self._share()
        """The share of the question's words that the table has, and how many."""

    def computed(self) -> FromTable | None:
        """Return what is asked of the table; None if it cannot be computed."""
        share, held = self.fit
        where = self._where()
        if where is not None and self._asked.limit:
            limited = self._limited()
            where = ALSO.join(filter(None, [where, limited])) if limited else None
        if share < LEAST_ON or where is None:
            return None
        found = self._by_form(where)
        return found._replace(share=share, held=held) if found else None

    def _by_form(self, where: str) -> FromTable | None:
        asked, table = self._asked, self._table
        lacking = bool(where) and self._is_negated(where)
        if lacking and (asked.grade or asked.is_average or asked.is_sum):
            return None
        if asked.grade:
            return self._extreme(asked.grade, where) or self._most_frequent()
        if asked.is_average or (asked.is_sum and self._column() is not None):
            column = self._column()
            sentence = total(table, column, where, average=asked.is_average) if column is not None else None
            return self._of_rows(sentence, where)
        if not where or (asked.counted and not asked.limit and self._has_numbers()):
            return None
        if asked.counted or (asked.lists and (asked.limit or lacking or ": " in where)):
            return self._of_rows(count(table, where, lacking=lacking), where, lacking=lacking)
        return None

    def _each_condition(self) -> Iterator[tuple[str, str]]:
        """Yield the words of the question that only some rows have, each with what these rows have.

        Of a column of yes and no the name is such a word, too, and of one in which only some rows have anything. The
        name of a row is none.
        """
        for word in self._asked.words:
            column = self._column_of_yes(word)
            if column is not None:
                value = self._answer(column, _NO if _NONE.search(self._asked.question) else _YES)
                if value:
                    yield word, f"{plain_cell(self._table.header[column])}: {value}"
                continue
            own = set(terms(word))
            if filled := self._partly_filled(own):
                yield word, filled
                continue
            if own & self._said or own & self._subjects:
                continue
            if named := self._in_named_column(word) or self._inflected(word):
                yield word, named
                continue
            held = [row for row in self._table.rows if meets(self._table, row, word)]
            if len(held) == 1 and self._is_name(word, held[0]):
                self._subjects |= own
            elif 0 < len(held) < len(self._table.rows) and not all(self._is_in_name(word, row) for row in held):
                yield word, word

    def _partly_filled(self, own: set[str]) -> str:
        """Return the name of the column with one of these terms in which some rows have something, and others not."""
        for number, name in enumerate(self._table.header):
            filled = {is_filled(row, number) for row in self._table.rows} if number and own & set(terms(name)) else ()
            if len(filled) == 2:
                return plain_cell(name)
        return ""

    def _in_named_column(self, word: str) -> str:
        """Return the condition on a column that the question names, as "Team: Engineering", if a word is its value."""
        for number in self._named_columns():
            for cell in self._table.cells(number):
                if terms(cell) == terms(word):
                    return f"{plain_cell(self._table.header[number])}: {plain_cell(cell)}"
        return ""

    def _is_in_name(self, word: str, row: Sequence[str]) -> bool:
        """Whether a word in small letters is only a part of a name in a row: a yard, of the "Holt Yard"."""
        cells = [plain_cell(cell) for cell in row if set(terms(word)) & set(terms(cell))]
        asked = set(terms(self._asked.question))
        return word.islower() and all(_NAME.fullmatch(cell) and not set(terms(cell)) <= asked for cell in cells)

    def _inflected(self, word: str) -> str:
        """Return the condition on a column of which some cells say nothing but a word without its German ending."""
        is_german = language_of([self._asked.question]) == "german"
        stem = _GERMAN_ENDING.sub("", word.lower()) if is_german else word.lower()
        for number, name in enumerate(self._table.header):
            cells = {plain_cell(cell) for cell in self._table.cells(number)} if number and stem != word.lower() else ()
            if cell := next((cell for cell in cells if cell.lower() == stem), ""):
                return f"{plain_cell(name)}: {cell}"
        return ""

    def _is_name(self, word: str, row: Sequence[str]) -> bool:
        """Whether a word names a row: it stands in a column without dates of which no two cells are the same."""
        columns = (n for n, cell in enumerate(row) if set(terms(word)) & set(terms(cell)) and not find_dates(cell))
        cells = ([other[n] for other in self._table.rows if n < len(other)] for n in columns)
        return any(len(set(column)) == len(column) for column in cells)

    def _column_of_yes(self, word: str) -> int | None:
        """Return the column that a word names, if its cells say nothing but yes and no."""
        for number, name in enumerate(self._table.header):
            cells = {plain_cell(cell).lower() for cell in self._table.cells(number)}
            if number and set(terms(word)) & set(terms(name)) and cells & _YES and cells <= _YES | _NO | {""}:
                return number
        return None

    def _answer(self, column: int, wanted: frozenset[str]) -> str:
        """Return the cell of a column that says yes, or no, as the table writes it."""
        cells = Counter(map(plain_cell, self._table.cells(column)))
        return next((cell for cell in cells if cell.lower() in wanted and terms(cell)), "")

    def _share(self) -> tuple[float, int]:
        """Return the share of the question's words that the table has, and how many; light ones need not be there.

        A verb must where rows are counted or dates compared: who left in 2021 is not who joined then. Where nothing
        else is asked ("Who joined last?"), its rows must be people if "who" is asked.
        """
        if self._asked.grade and not self._asked.words:
            return float(self._column(self._asked.grade) is not None), 0
        wanted = [word for word in self._asked.words if not self._is_of_rows(word)]
        held = sum(map(self._held, wanted))
        lacked = [word for word in wanted if not self._held(word) and LIGHT_TERMS.isdisjoint(terms(word))]
        verbs = sum(is_verb(word.lower()) for word in lacked)
        if held or lacked:
            return (0.0 if verbs and self._asked.tells_rows else held / ((held + len(lacked) - verbs) or 1)), held
        asks_people = WHO.search(self._asked.question) or len(wanted) < len(self._asked.words)
        return float(self._of_people and bool(asks_people)), 0

    def _held(self, word: str) -> bool:
        if word in self._conditions:
            return True
        own = [{term} for term in terms(word)] if is_person(word) else families(terms(word), self._asked.instead)
        return all(self._known & family for family in own) or self._is_kindred(word)

    def _is_kindred(self, word: str) -> bool:
        """Whether the table has a word of the same family, as "Driver" for "drives", or a unit: days, for "time"."""
        own = terms(word)
        units = [f"1 {words[-1]}" for name in self._table.header if (words := _words_of_name(name))]
        measured = any(states(each, unit) for term in own for each in stand_ins_of(term) for unit in units)
        return measured or any(is_family(term, other) for term in own for other in self._said)

    def _is_of_rows(self, word: str) -> bool:
        """Whether a word is for what each row stands for: people, in a table of names."""
        return self._of_people and is_person(word)

    def _where(self) -> str | None:
        """Return what the rows must have that are asked for; None if a word names a row."""
        found = list(dict.fromkeys(self._conditions.values()))
        columns = [condition for condition in found if ": " in condition]
        words = " ".join(condition for condition in found if ": " not in condition)
        own = self._asked.words
        if any(set(terms(word)) & self._subjects and not set(terms(word)) & self._said for word in own):
            return None
        where = ALSO.join(filter(None, [words, *columns]))
        denies = words and not columns and _NONE.search(self._asked.question)
        return None if denies and not self._is_negated(where) else where

    def _is_negated(self, where: str) -> bool:
        """Whether the rows are asked for that do not have some words: "not in Berlin"."""
        return bool(re.search(rf"{_NONE.pattern}(?:\W+\w+){{0,2}}?\W+{re.escape(where)}\b", self._asked.question, re.I))

    def _limited(self) -> str | None:
        """Return the bound on the values of a column that is asked for; None if there is not one such column."""
        limit = self._asked.limit
        if not limit:
            return None
        column = self._column(limited=limit.value)
        if column is None:
            return None
        return f"{plain_cell(self._table.header[column])} {limit.sign} {limit.value.text}"

    def _of_rows(self, sentence: str | None, where: str, name: str = "", *, lacking: bool = False) -> FromTable | None:
        if not sentence:
            return None
        table = self._table
        rows = [row for row in table.rows if meets(table, row, where) is not lacking] if where else table.rows
        if len(rows) > MOST_SHOWN:
            sentence = without_names(sentence)
            rows = [row for row in rows if name == name_of_row(table, row)] or rows[:FIRST_SHOWN]
        return FromTable(sentence, table.markdown(rows) if table.lines else "", rows, name)

    def _extreme(self, grade: Grade, where: str) -> FromTable | None:
        """Return the row with the least or greatest cell of the column that is asked for."""
        column = self._column(grade)
        if column is None or self._asks_groups(column, where) or not self._has_graded():
            return None
        dated = any(value.is_date for value in values_in(self._table, column, self._table.rows[0]))
        greatest = not grade.earlier if dated else grade.greater
        found = extreme(self._table, column, where, greatest=greatest)
        return self._of_rows(found[0], where, found[1].name) if found else None

    def _has_graded(self) -> bool:
        """Whether the table has what a superlative is said of: the churn of "the lowest churn"."""
        named = [word for word in superlative_noun(self._asked.question) if LIGHT_TERMS.isdisjoint(terms(word))]
        graded = [word for word in named if word in self._asked.words]
        related = (family for word in graded for family in families(terms(word), self._asked.instead))
        return not graded or any(map(self._held, graded)) or any(family & self._known for family in related)

    def _asks_groups(self, column: int, where: str) -> bool:
        """Whether a question asks for one of the values that several rows share: "which team earns the most"."""
        for number in self._named_columns():
            cells = self._table.cells(number)
            name = plain_cell(self._table.header[number])
            given = any(re.match(rf"{re.escape(name)}(?:\Z|: | [<>≤≥] )", each) for each in where.split(ALSO))
            same = set(terms(name)) & set(terms(self._table.header[column]))  # "price_gbp", and the plan's price
            if number != column and not given and not same and len(set(cells)) < len(cells):
                return True
        return False

    def _named_columns(self) -> list[int]:
        """Return the columns but the first whose name has a word of the question."""
        words = {term for word in self._asked.words for term in terms(word)}
        return [number for number, name in enumerate(self._table.header) if number and words & set(terms(name))]

    def _most_frequent(self) -> FromTable | None:
        """Return the value that most rows have in the column that is asked for: "which office has the most people"."""
        grade, asked = self._asked.grade, self._asked
        if not grade or grade.words or not grade.greater or self._conditions:
            return None
        if not any(self._is_of_rows(word) for word in asked.words):
            return None
        named = self._named_columns()
        return self._of_rows(most_frequent(self._table, named[0]), "") if len(named) == 1 else None

    def _column(self, grade: Grade | None = None, limited: Value | None = None) -> int | None:
        """Return the column of what is asked, not the first; None if no name or unit tells it from the others."""
        held = [
            self._worth(number, grade, limited) if number and self._fits(number, grade, limited) else 0.0
            for number in range(len(self._table.header))
        ]
        best = max(held, default=0.0)
        nearest = [number for number, worth in enumerate(held) if best > 0 and worth == best]
        beside = [len(terms(self._table.header[number])) for number in nearest]  # a price, beside the plan's price
        return nearest[beside.index(min(beside))] if beside and beside.count(min(beside)) == 1 else None

    def _fits(self, number: int, grade: Grade | None, limited: Value | None) -> bool:
        """Whether each cell of a column that is not empty has one value, a date where one is asked for."""
        rows = [row for row in self._table.rows if is_filled(row, number)]
        values = [values_in(self._table, number, row) for row in rows]
        if not rows or not all(len(each) == 1 and (not limited or comparable(each[0], limited)) for each in values):
            return False
        if _is_in_time(grade, limited):
            return all(find_dates(row[number]) for row in rows)
        return bool(limited) or not any(each[0].is_date for each in values)

    def _worth(self, number: int, grade: Grade | None, limited: Value | None) -> float:
        """Return how much a column's name, units and cells have of what is asked."""
        name, cells = self._table.header[number], list(filter(None, self._table.cells(number)))
        words = grade.words if grade else ()
        asked = topic_terms(" ".join([*words, self._asked.question]))
        own = [term for word in words for term in terms(word)]
        said = set(terms(name))
        exact = sum(term in said for term in asked)
        related = sum(bool(said & family) for family in families([*asked, *own], self._asked.instead))
        dated = _is_in_time(grade, limited)
        founding = dated and "date" not in words and not said.isdisjoint(_FOUNDING)
        in_unit = _is_in_unit(limited, [name, *cells]) or (self._asked.is_sum and self._is_money(number))
        measured = self._measured(number, {each for term in asked for each in stand_ins_of(term)})
        return 2.0 * exact + related + measured + 2.0 * dated + founding + 0.5 * in_unit

    def _measured(self, number: int, quantities: Collection[str]) -> float:
        """Return the share of a column's cells that state one of the quantities, by themselves or in its unit."""
        cells = list(filter(None, self._table.cells(number)))
        units = "".join(f" 1 {word}" for word in _words_of_name(self._table.header[number]))
        return sum(any(states(each, f"{cell}{units}") for each in quantities) for cell in cells) / (len(cells) or 1)

    def _is_money(self, column: int) -> bool:
        """Whether all cells of a column state sums of money: what the total of invoices or orders is of."""
        return all(states("<money>", cell) for cell in self._table.cells(column))

    def _has_numbers(self) -> bool:
        """Whether a column that the question names has numbers: what is counted stands there, as pieces in stock."""
        asked = [family for word in (self._asked.counted, *self._asked.words) for family in families(terms(word))]
        for number, name in enumerate(self._table.header):
            cells = self._table.cells(number) if number else []
            numbers = cells and all(any(not value.is_date for value in values_of(cell)) for cell in cells)
            if numbers and any(family & set(terms(name)) for family in asked) and not all(map(find_dates, cells)):
                return True
        return False

"""The least or the greatest of the rows of a table, and how many rows are of a kind: from all its cells, or not at all.

A table is read whole; of one that a search has cut nothing is computed, nor of one that is too long to be quoted whole.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from fathom.evidence.computed import count, extreme, row_has, values_of
from fathom.extractive.comparisons import SUPERLATIVE, Grade, comparison_of, grade_of, grade_words
from fathom.extractive.questions import families, keywords, topic_terms
from fathom.facts.dates import find_dates
from fathom.retrieval.expansion import quantities_of, states
from fathom.text.tables import WholeTable, tables_of
from fathom.text.terms import terms

MOST_ROWS = 24
LEAST_ON = 0.6  # share of the question's words that the table, its title and the lines before it must have
_HOW_MANY = re.compile(r"\b(?:how many|wie ?viele)\s+(?P<what>[\w-]+)", re.IGNORECASE)
_COUNTING = frozenset(terms("name list which what give there"))


class FromTable(NamedTuple):
    """What is computed from a table, the rows that it is computed from as Markdown, and the one it comes to."""

    sentence: str
    markdown: str
    name: str = ""
    share: float = 1.0  # of the question's words that the table has


def from_tables(question: str, titles: Sequence[str], texts: Sequence[str]) -> tuple[int, FromTable] | None:
    """Return what is computed from the table that has most of a question's words, with the number of its text."""
    superlative, counted = _superlative(question), _HOW_MANY.search(question)
    if not superlative and not counted:
        return None
    graded = set(terms(" ".join(grade_words(question))))
    wanted = [term for term in topic_terms(question) if term not in graded]
    best: tuple[float, int, FromTable] | None = None
    for number, (title, text) in enumerate(zip(titles, texts, strict=True)):
        for table in tables_of(text):
            said = f"{title} {table.above} {' '.join(table.header)} {_column(table, 0)}"
            named = said if superlative else f"{said} {_conditions(table, wanted)}"
            share = _share(wanted, named)
            if len(table.rows) > MOST_ROWS or share < LEAST_ON or (best and best[0] >= share):
                continue
            if superlative and _names_some_rows(table, wanted, f"{title} {table.above}"):
                continue
            found = _extreme(table, question, superlative) if superlative else _count(table, question, said)
            if found:
                best = (share, number, found._replace(share=share))
    return best[1:] if best else None


def _superlative(question: str) -> Grade | None:
    """Return what the superlative of a question asks for."""
    said = [found for found in SUPERLATIVE.findall(question) if grade_words(found)]
    return grade_of(" ".join(said)) if said else None


def words_of_superlative(question: str) -> str:
    """Return the words of a question for the greatest or least of a kind, without the superlative; empty for others."""
    if not _superlative(question) or comparison_of(question):
        return ""
    graded = {word.lower() for word in grade_words(question)}
    return " ".join(word for word in keywords(question) if word.lower() not in graded)


def _column(table: WholeTable, number: int) -> str:
    return " ".join(row[number] for row in table.rows if number < len(row))


def _conditions(table: WholeTable, wanted: Sequence[str]) -> str:
    """Return the words by which some rows can be told from others: only rows that have them are counted."""
    return " ".join(word for word in wanted if any(row_has(row, word) for row in table.rows))


def _names_some_rows(table: WholeTable, wanted: Sequence[str], title: str) -> bool:
    """Whether a question asks only for some rows: the greatest of all rows need not be one of them."""
    known = set(terms(f"{title} {' '.join(table.header)}"))
    held = ([row_has(row, word) for row in table.rows] for word in wanted if word not in known)
    return any(any(found) and not all(found) for found in held)


def _share(wanted: Sequence[str], text: str) -> float:
    said = set(terms(text))
    return sum(bool(said & family) for family in families(wanted)) / (len(wanted) or 1)


def _extreme(table: WholeTable, question: str, grade: Grade) -> FromTable | None:
    """Return the row with the least or greatest cell of the column that is asked for."""
    column = _asked_column(table, question, grade)
    if column is None:
        return None
    dated = any(value.is_date for value in values_of(table.rows[0][column]))
    found = extreme(table, column, greatest=not grade.earlier if dated else grade.greater)
    return FromTable(found[0], table.markdown(table.rows), found[1].name) if found else None


def _asked_column(table: WholeTable, question: str, grade: Grade) -> int | None:
    """Return the column of what is asked, not the first; None if no name or unit tells it from the others."""
    asked = topic_terms(" ".join([*grade.words, question]))
    own = [term for word in grade.words for term in terms(word)]
    quantities = {quantity for term in asked for quantity in quantities_of(term)}
    held = []
    for number, name in enumerate(table.header):
        cells = [row[number] for row in table.rows if number < len(row)]
        said = set(terms(name))
        exact = sum(term in said for term in asked)
        related = sum(bool(said & family) for family in families([*asked, *own]))
        measured = sum(any(states(quantity, cell) for quantity in quantities) for cell in cells) / (len(cells) or 1)
        dated = grade.is_in_time and all(find_dates(cell) for cell in cells)
        valued = all(len(list(values_of(cell))) == 1 for cell in cells)
        fits = valued and number > 0 and dated is grade.is_in_time
        held.append(fits * (2.0 * exact + related + measured + 2.0 * dated))
    best = max(held, default=0.0)
    return held.index(best) if best > 0 and held.count(best) == 1 else None


def _count(table: WholeTable, question: str, said: str) -> FromTable | None:
    """Return how many rows have the words of a question that neither the table's names nor its first column have."""
    counted = _HOW_MANY.search(question)
    [what] = families(terms(counted["what"])[:1]) if counted else [set[str]()]
    if any(what & set(terms(name)) for name in table.header[1:]):
        return None  # a column has the numbers
    known = {*terms(said), *_COUNTING}
    wanted = " ".join(word for word in keywords(question) if set(terms(word)) - known)
    sentence = count(table, wanted) if wanted else None
    return FromTable(sentence, table.markdown([r for r in table.rows if row_has(r, wanted)])) if sentence else None

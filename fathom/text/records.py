"""Texts of one form, read as the rows of a table: pages with the same fields, sentences that differ in their numbers.

Pages on four ships each say "Length: 82 m"; the sections of a changelog each begin "Released 2025-02-11.", or have the
date in their heading; three paragraphs each say when an office opened. What is computed of a table can be computed of
these, too. Nothing is read from a text that was cut: the greatest may be in what is left out.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import takewhile
from typing import NamedTuple

from fathom.text.sentences import split_sentences
from fathom.text.tables import WholeTable
from fathom.text.terms import ENGLISH, GERMAN

LEAST = 3  # records of a form
MOST_CHARS = 100_000  # of all texts that are read
LABEL_WORDS = 4
HEADER_WORDS = 5  # before a number
_SMALL = ENGLISH | GERMAN
_CUT = re.compile(r"(?:\.\.\.|…)\s*$", re.MULTILINE)
_PLACE = re.compile(r"\[\d+\]")
_FENCE = re.compile(r"^(`{3,}|~{3,}).*?^\1", re.MULTILINE | re.DOTALL)
_HEADING = re.compile(r"#{1,6}\s+(?P<name>.+?)\s*#*\Z")
_FIELD = re.compile(r"(?:[-*+]\s+)?(?:\*\*)?(?P<label>[^\W\d][^\d:|*`]{0,40}?)(?:\*\*)?:(?:\*\*)?\s+(?P<value>\S.*)")
_VALUE = re.compile(r"- (?P<record>[^\s:]+\[\d+\])\.(?P<label>[^\s:.\[\]]+): (?P<value>\S.*?)(?: # .*)?")
"""A value of a record of a list in a data file: "loans[0].object: Punt gun"."""
_NAMING = frozenset(("name", "title", "titel"))  # fields that say what a page without a heading is about
_MONTH = r"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]*\.?"
_DATE = rf"\d{{1,2}}\.? {_MONTH},? \d{{4}}|{_MONTH} \d{{1,2}},? \d{{4}}|{_MONTH} \d{{4}}|\d{{4}}-\d\d-\d\d"
_DATED = re.compile(rf"(?P<name>.+?)(?:\s*[–—:,-]\s+|\s*[(\[]\s*|\s+)(?P<date>{_DATE})\s*[)\]]?")
_VERSION = re.compile(r"\W*(?:\w+ )?v?\d+(?:\.\d+)+[\w.-]*\W*")
_CAPITAL = r"[A-ZÄÖÜ][\w'’&-]*"
_SLOT = re.compile(
    rf"(?P<number>{_DATE}|[$€£]?\d(?:[\d.,:/’'-]*\d)?%?)"
    rf"|(?P<name>\b{_CAPITAL}(?:[ ](?:{_CAPITAL}|(?!(?:19|20)\d\d)\d+\b(?![-./:,]\d)))*)|[^\W\d]+|[^\w\s]"
)


class RowPlace(NamedTuple):
    """Words of a text that a row is read from."""

    text: int  # its number
    words: str  # as the text has them
    name: str  # of the row; empty where the words have it


class Records(NamedTuple):
    """A table made of texts of one form, and for each of its rows the places that it is read from."""

    table: WholeTable
    places: Sequence[Sequence[RowPlace]]


class _Record(NamedTuple):
    """A row that is not yet in a table: the cells by the names of their columns."""

    name: str
    cells: Mapping[str, str]
    places: Sequence[RowPlace]
    words: frozenset[str]  # that say what it is about


def records_of(texts: Sequence[str]) -> Iterator[Records]:
    """Yield what some texts have in one form, at least three times, each time under another name."""
    if sum(map(len, texts)) > MOST_CHARS:
        return
    forms: defaultdict[tuple[str, ...], list[_Record]] = defaultdict(list)
    for number, text in enumerate(texts):
        if not _CUT.search(text):
            for form, record in (*_read(number, _FENCE.sub("", text)), *_listed(number, text)):
                forms[form].append(record)
    for found in forms.values():
        records = list({(each.name, *each.cells.values()): each for each in found}.values())
        names = {each.name for each in records}
        if LEAST <= len(records) == len(names) and "" not in names:
            yield _made(records)


def _made(records: Sequence[_Record]) -> Records:
    columns = list(dict.fromkeys(column for each in records for column in each.cells))
    first = "Version" if all(_VERSION.fullmatch(each.name) for each in records) else ""
    rows = [[each.name, *(each.cells.get(column, "") for column in columns)] for each in records]
    shared = frozenset.intersection(*(each.words for each in records))
    table = WholeTable([first, *columns], rows, " ".join(sorted(shared)), [])
    return Records(table, [each.places for each in records])


def _read(number: int, text: str) -> Iterator[tuple[tuple[str, ...], _Record]]:
    """Yield the records of a text, each with its form."""
    for heading, body in _sections(text):
        words = frozenset(re.findall(r"[^\W\d]{2,}", f"{heading} {body}".lower()))
        if dated := _DATED.fullmatch(heading):
            yield ("heading",), _Record(dated["name"], {"Date": dated["date"]}, [RowPlace(number, heading, "")], words)
        lines = (line.strip() for line in body.split("\n"))
        fields = {found["label"]: (found["value"], found[0]) for line in lines if (found := _FIELD.fullmatch(line))}
        name = heading or next((value for label, (value, _) in fields.items() if label.lower() in _NAMING), "")
        labels = [label for label in fields if len(label.split()) <= LABEL_WORDS and label.lower() not in _NAMING]
        if labels:
            cells = {label: fields[label][0] for label in labels}
            places = [RowPlace(number, fields[label][1], name) for label in labels]
            yield ("fields", *labels), _Record(name, cells, places, words)
        for paragraph in re.split(r"\n\s*\n", body):
            if not paragraph.lstrip().startswith(("|", "- ", "* ", "+ ", ">")):
                yield from _of_paragraph(number, heading, paragraph)


def _listed(number: int, text: str) -> Iterator[tuple[tuple[str, ...], _Record]]:
    """Yield the records of the lists in a data file, each under its first value."""
    found: defaultdict[str, list[re.Match[str]]] = defaultdict(list)
    for line in text.split("\n"):
        if value := _VALUE.fullmatch(line):
            found[value["record"]].append(value)
    for record, values in found.items():
        path = _PLACE.sub("", record)
        labels = " ".join([path, *(each["label"] for each in values)]).lower()
        words = frozenset(re.findall(r"[^\W\d_]{2,}", labels))
        places = [RowPlace(number, each[0].removeprefix("- "), "") for each in values]
        cells = {each["label"]: each["value"] for each in values}
        yield ("list", path), _Record(values[0]["value"], cells, places, words)


def _sections(text: str) -> Iterator[tuple[str, str]]:
    """Yield the headings of a text, each with what stands below it, before the next; what is above has none."""
    heading, lines = "", list[str]()
    for line in text.split("\n"):
        if found := _HEADING.fullmatch(line):
            yield heading, "\n".join(lines)
            heading, lines = found["name"], []
        else:
            lines.append(line)
    yield heading, "\n".join(lines)


def _of_paragraph(number: int, heading: str, paragraph: str) -> Iterator[tuple[tuple[str, ...], _Record]]:
    """Yield the records of a paragraph's sentences, under the name in the first one, else under its heading."""
    name = heading
    for position, sentence in enumerate(split_sentences(paragraph)):
        form, names, cells = _form(sentence.clean)
        named = not position and bool(names)
        name = names[0] if named else name
        if cells:
            words = frozenset(word.lower() for word in form if word.isalpha())
            yield (
                ("sentence", *form),
                _Record(name, cells, [RowPlace(number, sentence.text, "" if named else name)], words),
            )


def _form(sentence: str) -> tuple[list[str], list[str], dict[str, str]]:
    """Return a sentence with slots for its names and numbers; the names; and the numbers by the words around them."""
    form: list[str] = []
    names: list[str] = []
    numbers: list[tuple[int, str]] = []
    for found in _SLOT.finditer(sentence):
        first, _, rest = found[0].partition(" ")
        if found["number"]:
            numbers.append((len(form), found[0]))
            form.append("#")
        elif found["name"] and first.lower() in _SMALL:  # "The Oslo" office
            form += [first, "@"] if rest else [first]
            names += [rest] if rest else []
        elif found["name"] and (found.start() or rest):
            names.append(found[0])
            form.append("@")
        else:
            form.append(found[0])
    cells: dict[str, str] = {}
    start = 0
    for at, number in numbers:
        behind = list(takewhile(lambda word: word.isalpha() and word.lower() not in _SMALL, form[at + 1 : at + 3]))
        before = [word for word in form[start:at] if word.isalpha() and word.lower() not in _SMALL]
        cells[" ".join([*before[-HEADER_WORDS:], *behind])] = " ".join([number, *behind[:1]])
        start = at + 1 + len(behind)
    return form, names, {} if "" in cells else cells

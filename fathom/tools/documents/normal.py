"""A document after reading: a title and sections of Markdown, one form for each table, code, list and definition.

docs/documents.md describes the form. A block is a string of one or more lines; blocks are separated by blank lines.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from textwrap import dedent
from typing import NamedTuple

from fathom.text.blocks import object_in, open_fence
from fathom.text.plain import clean_line, clean_text, shortened

MAX_HEADING_CHARS = 160
LONGEST_TITLE = 300  # characters of a title or heading that are repeated beside the text, which has it whole
_ATX = re.compile(r" {0,3}(#{1,6})[ \t]+(\S.*?)[ \t#]*\Z")
_UNDERLINE = re.compile(r"([=\-~^*#\"'`+.:_])\1{2,}\s*\Z")


@dataclass(frozen=True)
class DocumentSection:
    """The part of a document under one heading, or one page of it."""

    text: str  # without the heading
    heading: str = ""  # empty before the first heading and on pages
    level: int = 0  # depth of the heading, from 1
    page: int = 0  # counted from 1; 0 where there are no pages


@dataclass(frozen=True)
class ReadDocument:
    """A document's title, empty if it has none, and its sections in reading order."""

    title: str
    sections: list[DocumentSection]
    date: str = ""  # when it was written or changed: YYYY-MM-DD, YYYY-MM, or empty if not stated
    fields: dict[str, str] = field(default_factory=dict)  # fields of its header, in order: Status, Author
    unread: str = ""  # what of the file was not read, and why
    of_parts: bool = False  # its highest headings are of things of their own, as sheets are: several do not name it


_Heading = tuple[int, int, str, int]  # its line, level, text, and the lines it takes


def markdown_sections(text: str) -> list[DocumentSection]:
    """Split Markdown at its headings, `# ...` and underlined ones; code blocks have none."""
    return _split(text, _markdown_headings)


def underlined_sections(text: str) -> list[DocumentSection]:
    """Split reST and plain text at lines that are fully underlined, with or without a line above, and at signatures.

    As in reST, each kind of line is a level; levels are numbered in the order in which they first appear. What is
    indented below the signature of a function or the dotted name of an attribute describes that: it is a section of
    its own, as an object of reST is.
    """
    return [part for section in _split(text, _underlined_headings) for part in _with_objects(section)]


def _with_objects(section: DocumentSection) -> Iterator[DocumentSection]:
    lines, start = section.text.split("\n"), 0
    for first, below, end in _described(lines):
        before = _joined(lines[start:first])
        if before or (not start and section.heading):
            yield replace(section, text=before)
        name = ", ".join(map(object_in, lines[first:below]))
        text = _joined(dedent("\n".join(lines[below:end])).split("\n"))
        yield from _with_objects(DocumentSection(text, shortened(name, MAX_HEADING_CHARS), section.level + 1))
        start = end
    if (rest := _joined(lines[start:])) or not start:
        yield replace(section, text=rest)


def _described(lines: list[str]) -> Iterator[tuple[int, int, int]]:
    """Yield the first line of each run of signatures with a description, of the description, and the line after it."""
    at = 0
    while at < len(lines):
        below, indent = at, _indent(lines[at])
        while below < len(lines) and object_in(lines[below]) and _indent(lines[below]) == indent:
            below += 1
        end = below
        if below > at and (not at or not lines[at - 1].strip()):
            end = _end_of_description(lines, below, indent)
        if end > below:
            yield at, below, end
        at = max(end, at + 1)


def _end_of_description(lines: list[str], start: int, indent: int) -> int:
    """Return the line after the text that is indented more than `indent`; `start` if the next text is not."""
    first = next((n for n in range(start, len(lines)) if lines[n].strip()), len(lines))
    if first == len(lines) or not _READS.match(lines[first]):
        return start
    end = first
    while end < len(lines) and (not lines[end].strip() or _indent(lines[end]) > indent):
        end += 1
    return end if end > first else start


_READS = re.compile(r"\s*[\w\"“‘'*`(\[]")  # not the next call of a chain, nor a comment


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _split(text: str, find_headings: Callable[[list[str]], Iterator[_Heading]]) -> list[DocumentSection]:
    lines, sections = text.split("\n"), list[DocumentSection]()
    start, heading, level = 0, "", 0
    for at, next_level, next_heading, taken in find_headings(lines):
        sections.append(DocumentSection(_joined(lines[start:at]), heading, level))
        start, heading, level = at + taken, next_heading, next_level
    sections.append(DocumentSection(_joined(lines[start:]), heading, level))
    return [section for section in sections if section.text or section.heading]


def _joined(lines: list[str]) -> str:
    return re.sub(r"\A(?:[^\S\n]*\n)+", "", "\n".join(lines).rstrip())


def _markdown_headings(lines: list[str]) -> Iterator[_Heading]:
    fence = ""
    for at, line in enumerate(lines):
        before, fence = fence, open_fence(fence, line)
        if before or fence:
            continue
        if atx := _ATX.match(line):
            yield at, len(atx[1]), atx[2], 1
        elif _is_heading(lines, at) and ((under := lines[at + 1][0]) == "=" or (under == "-" and "|" not in line)):
            yield at, 1 if under == "=" else 2, line.strip(), 2


def _underlined_headings(lines: list[str]) -> Iterator[_Heading]:
    levels: dict[str, int] = {}
    for at in (at for at in range(len(lines) - 1) if _is_heading(lines, at)):
        under = lines[at + 1].rstrip()
        over = at > 0 and lines[at - 1].rstrip() == under
        level = levels.setdefault(under[0] + ("=" if over else ""), len(levels) + 1)
        yield at - over, level, lines[at].strip(), 2 + over


def _is_heading(lines: list[str], at: int) -> bool:
    """Return whether a line is separate from the text above and underlined in full (or by 8 characters)."""
    title = lines[at].strip()
    if not title or len(title) > MAX_HEADING_CHARS or at + 1 >= len(lines) or not any(c.isalnum() for c in title):
        return False
    under = lines[at + 1].rstrip()
    if not _UNDERLINE.match(under) or len(under) < min(len(title), 8):
        return False
    above = lines[at - 1].rstrip() if at else ""
    return not above or above == under


_BACKTICKS = re.compile(r"`+")
_LIST = re.compile(r"(?:-|\d+\.) ")
_LANGUAGE = re.compile(r"[\w+#.-]{1,30}\Z")

MAX_SPANNED = 10_000  # cells that the spans of one table may add: a short page can ask for millions


class SpanningCell(NamedTuple):
    """A cell that spans columns and rows; its text is in each of the rows, and in the first of the columns."""

    text: str
    across: int = 1
    down: int = 1
    everywhere: bool = False  # its text is in all of the columns, as for a header


def cell(text: str) -> str:
    """Return the text of a table's cell on one line, each `|` in it escaped."""
    return clean_line(text).replace("|", "\\|")


def table(rows: Sequence[Sequence[str]], caption: str = "") -> str:
    """Return a table whose first row is its header, with a cell for each column; empty rows are left out."""
    filled = [cells for row in rows if any(cells := [cell(text) for text in row])]
    if not filled:
        return clean_line(caption)
    width = max(map(len, filled))
    filled[0] += [""] * (width - len(filled[0]))
    lines = ["| " + " | ".join(cells) + " |" for cells in filled]
    lines.insert(1, "|" + "---|" * width)
    return joined([clean_line(caption), "\n".join(lines)])


def spread(rows: Iterable[Sequence[SpanningCell]]) -> list[list[str]]:
    """Return the texts of cells in the columns and rows that they span."""
    spread_rows: list[list[str]] = []
    above: dict[int, tuple[int, str]] = {}  # column: how many more rows a cell reaches down, and its text
    spare = MAX_SPANNED

    def take(cells: list[str]) -> None:
        nonlocal spare
        while spare > 0 and len(cells) in above:
            left, text = above.pop(len(cells))
            if left > 1:
                above[len(cells)] = (left - 1, text)
            cells.append(text)
            spare -= 1

    for row in rows:
        cells: list[str] = []
        for one in row:
            take(cells)
            more = max(0, min(one.across - 1, spare))
            spare -= more
            for text in (one.text, *[one.text if one.everywhere else ""] * more):
                if one.down > 1 and spare > 0:
                    above[len(cells)] = (one.down - 1, text)
                cells.append(text)
        take(cells)
        spread_rows.append(cells)
    return spread_rows


def with_one_header(rows: Sequence[Sequence[str]], heads: int) -> list[Sequence[str]]:
    """Return rows with the first `heads` rows merged into one: each column has their words, repeated words once."""
    if heads < 2:
        return list(rows)
    width = max(map(len, rows[:heads]))
    columns = [[row[n] for row in rows[:heads] if n < len(row) and row[n]] for n in range(width)]
    return [[" ".join(dict.fromkeys(column)) for column in columns], *rows[heads:]]


def fence(code: str, language: str = "") -> str:
    """Return code verbatim in a fence that is longer than any run of backticks in it."""
    code = re.sub(r"\A(?:[^\S\n]*\n)+", "", clean_text(code).rstrip())
    marks = "`" * max(3, 1 + max(map(len, _BACKTICKS.findall(code)), default=0))
    return f"{marks}{language if _LANGUAGE.match(language) else ''}\n{code}\n{marks}" if code else ""


def inline_code(text: str) -> str:
    """Return a span of code, on one line."""
    line = clean_line(text)
    if not line:
        return ""
    marks = "`" * (1 + max(map(len, _BACKTICKS.findall(line)), default=0))
    return f"{marks} {line} {marks}" if "`" in line else f"`{line}`"


def item(marker: str, blocks: Sequence[str]) -> str:
    """Return a list item: the first block behind the marker, the others indented below it."""
    indent = " " * (len(marker) + 1)
    text = ""
    for block in filter(None, blocks):
        text += (("\n" if _LIST.match(block) else "\n\n") if text else "") + block  # a list needs no blank line
    lines = [indent + line if line else "" for line in text.split("\n")]
    return f"{marker} " + "\n".join(lines).lstrip() if text else ""


def definition(term: str, blocks: Sequence[str]) -> str:
    """Return a term and its definition as an item: `- **term**: definition`."""
    term, texts = clean_line(term), list(filter(None, blocks))
    if not term:
        return item("-", texts)
    if texts and not is_structure(texts[0]):
        return item("-", [f"**{term}**: {texts[0]}", *texts[1:]])
    return item("-", [f"**{term}**" + (":" if texts else ""), *texts])


def is_structure(block: str) -> bool:
    """Return whether a block is a list, a table or code: it cannot stand behind other words on a line."""
    return block.startswith(("| ", "```")) or bool(_LIST.match(block))


def led(lead: str, blocks: Sequence[str]) -> list[str]:
    """Return blocks with a lead-in such as "Note:" at the start of the first."""
    if blocks and not is_structure(blocks[0]):
        return [f"{lead}: {blocks[0]}", *blocks[1:]]
    return [f"{lead}:" if blocks else f"{lead}.", *blocks]


def indented(blocks: Iterable[str]) -> str:
    """Return blocks indented below an item."""
    return "\n".join("  " + line if line else "" for line in joined(blocks).split("\n"))


def joined(blocks: Iterable[str]) -> str:
    """Return blocks as one text."""
    return "\n\n".join(filter(None, blocks))


class Outline:
    """The sections of a document while it is read from beginning to end."""

    def __init__(self) -> None:
        self._parts: list[tuple[str, int, list[str]]] = [("", 0, [])]

    def heading(self, text: str, level: int) -> None:
        """Begin a section; a heading without text begins none."""
        if line := clean_line(text):
            self._parts.append((line, level, []))

    def add(self, *blocks: str) -> None:
        """Add blocks to the section."""
        self._parts[-1][2].extend(filter(None, blocks))

    @property
    def place(self) -> tuple[str, int]:
        """The heading of the section and its level."""
        return self._parts[-1][:2]

    def sections(self) -> list[DocumentSection]:
        """Return the sections that were read."""
        parts = [(clean_text(joined(blocks)), heading, level) for heading, level, blocks in self._parts]
        return [DocumentSection(text, heading, level) for text, heading, level in parts if text or heading]

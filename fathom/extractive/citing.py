"""Excerpts as Markdown with citations, in the form of their blocks: paragraphs, lists, tables and code."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import takewhile
from textwrap import shorten
from typing import NamedTuple

from fathom.text.citations import cited_ids, without_citations
from fathom.text.plain import clean_line
from fathom.text.sentences import split_sentences
from fathom.text.tables import WholeTable, cells_of_row, omission_row, plain_cell, tables_of
from fathom.text.wording import Wording

_ENDS_WITH_COLON = re.compile(r"[:：?]\s*\Z")
ITEM = re.compile(r"\s*- ")
_TABLE = re.compile(r"\|[^\n]*\n\|(?:\s*:?-+:?\s*\|)+")  # a snippet of a search may begin in the middle of one
_ROW_END = re.compile(r"(?:(?<!\\)\|\s*)+\Z")  # with the empty cells before it

NAME_CHARS = 80
_ENDS = re.compile(r"[.?!:;。？！：]+(?=\s|\Z)")  # of sentences, in a title
Sources = tuple[str, ...]


class Superseded(NamedTuple):
    """That something later replaces an excerpt, or a part of it."""

    date: str  # of what replaces it first
    name: str  # of the source that says that
    in_part: bool

    def line(self, words: Wording) -> str:
        """Return the line that says so, with a colon at its end and no other end of a sentence."""
        name = shorten(_ENDS.sub("", clean_line(self.name)), NAME_CHARS, placeholder=" …")
        if self.in_part:
            return words("Superseded in part on {date} by “{name}”:", date=self.date, name=name)
        return words("Superseded on {date} by “{name}”:", date=self.date, name=name)


class Quoted(NamedTuple):
    """An excerpt as it is shown."""

    number: int  # of its text
    markdown: str
    superseded: Superseded | None = None


def below_lines(shown: Iterable[Quoted], words: Wording) -> Iterator[Quoted]:
    """Yield excerpts, each below the line that says what superseded it; what holds behind it has its own."""
    before = False
    for each in shown:
        line = each.superseded.line(words) if each.superseded else words("Not superseded:") if before else ""
        yield each._replace(markdown=f"{line}\n\n{each.markdown}") if line else each
        before = bool(each.superseded)


def quoted(excerpts: Iterable[tuple[Sources, str]]) -> str:
    """Return excerpts, each with its sources, as Markdown with citations; a header or lead-in stands only once."""
    groups: dict[tuple[object, ...], tuple[Sources, list[str]]] = {}
    for number, (sources, markdown) in enumerate(excerpts):
        blocks = list(split_blocks(markdown))
        lead = list(takewhile(announces, blocks))
        rest = blocks[len(lead) :]
        header = tuple(rest[0].split("\n")[:2]) if rest and _TABLE.match(rest[0]) else ()
        key = (sources, *lead, *header) if lead or header else (number,)
        if key not in groups:
            groups[key] = (sources, blocks)
        else:
            _add(groups[key][1], rest)
    return "\n\n".join(cited(blocks, sources) for sources, blocks in _led_once(groups.values()))


def _led_once(groups: Iterable[tuple[Sources, list[str]]]) -> Iterator[tuple[Sources, list[str]]]:
    """Yield groups, those that follow one with the same sources without the lead-ins that both have.

    Not where the one before has further lead-ins: what follows does not stand below them.
    """
    before: tuple[Sources, list[str]] = ((), [])
    for sources, blocks in groups:
        lead = list(takewhile(announces, blocks))
        both = zip(lead, before[1] if sources == before[0] else (), strict=False)
        shared = sum(1 for _ in takewhile(lambda each: each[0] == each[1], both))
        yield sources, blocks[shared:] if shared < len(lead) or lead == before[1] else blocks
        before = (sources, lead)


def _add(blocks: list[str], more: Sequence[str]) -> None:
    """Add blocks to others with the same lead-in; rows and items join those before."""
    first, *others = more
    if _TABLE.match(first) and _TABLE.match(blocks[-1]):
        blocks[-1] = "\n".join([blocks[-1], *first.split("\n")[2:]])
    elif ITEM.match(first) and ITEM.match(blocks[-1]):
        blocks[-1] = f"{blocks[-1]}\n{first}"
    else:
        blocks.append(first)
    blocks.extend(others)


def cited(blocks: Iterable[str], sources: Sources) -> str:
    """Return the blocks of an excerpt with the citation of its sources wherever their form needs one."""
    return "\n\n".join(_cited_blocks(blocks, "".join(f"[{source}]" for source in sources)))


def with_omissions(markdown: str, texts: Mapping[str, str]) -> str:
    """Return cited excerpts with a row of dots in each table that shows only some of its source's rows.

    The dots stand last, or first where the last row is shown.

    Args:
        texts: what the sources say, by id.
    """

    @cache
    def tables(source: str) -> list[list[tuple[str, ...]]]:
        return list(map(_rows, tables_of(texts.get(source, ""))))

    blocks = split_blocks(markdown)
    return "\n\n".join(_with_dots(block, tables) if _TABLE.match(block) else block for block in blocks)


def _with_dots(block: str, tables: Callable[[str], list[list[tuple[str, ...]]]]) -> str:
    shown = [row for table in tables_of(without_citations(block)) for row in _rows(table)]
    held, whole = set(shown), (rows for source in cited_ids(block) for rows in tables(source))
    cut = next((rows for rows in whole if not held.isdisjoint(rows) and not held.issuperset(rows)), None)
    if not cut:
        return block
    header, rule, *rows = block.split("\n")
    dots = omission_row(len(cells_of_row(header)))
    return "\n".join([header, rule, *([dots, *rows] if shown[-1] == cut[-1] else [*rows, dots])])


def _rows(table: WholeTable) -> list[tuple[str, ...]]:
    """Return the rows of a table as they can be compared, each behind the names of the columns."""
    return [tuple(map(plain_cell, [*table.header, *row])) for row in table.rows]


def announces(block: str) -> bool:
    """Whether a block is a heading or a line that introduces what follows."""
    return bool(_ENDS_WITH_COLON.search(block)) and not block.startswith(("|", "```"))


def split_blocks(markdown: str) -> Iterator[str]:
    """Yield the blocks of an excerpt; blank lines inside a fence are part of it."""
    block: list[str] = []
    fence = ""
    for line in markdown.split("\n"):
        marker = re.match(r"`{3,}", line)
        if not line.strip() and not fence:
            if block:
                yield "\n".join(block)
            block = []
            continue
        block.append(line)
        if marker and (not fence or line.strip() == fence):
            fence = "" if fence else marker[0]
    if block:
        yield "\n".join(block)


def _cited_blocks(blocks: Iterable[str], citation: str) -> Iterator[str]:
    waiting = ""  # a line that introduces what follows
    for block in blocks:
        if block.startswith("```"):
            yield f"{waiting or 'The source reads:'} {citation}"
            yield block
            waiting = ""
            continue
        if waiting:
            yield waiting
            waiting = ""
        if _TABLE.match(block):
            yield _cited_table(block, citation)
        elif ITEM.match(block):
            yield "\n".join(f"{line} {citation}" for line in block.split("\n"))
        else:
            *said, last = [sentence.clean for sentence in split_sentences(block)]
            if not _ENDS_WITH_COLON.search(last):
                said.append(last)
            elif not said:
                waiting = last
            text = " ".join(f"{_closed(sentence)} {citation}" for sentence in said)
            if said and _ENDS_WITH_COLON.search(last):
                waiting = f"{text} {last}"
            elif said:
                yield text
    if waiting:
        yield f"{waiting} {citation}"


def _cited_table(table: str, citation: str) -> str:
    header, rule, *rows = table.split("\n")
    return "\n".join([header, rule, *(_cited_row(row, citation) for row in rows)])


def _cited_row(row: str, citation: str) -> str:
    """Return a row with a citation in its last cell that is not empty: alone in a cell, it looks like a value."""
    end = _ROW_END.search(row)
    said, bars = (row[: end.start()], end[0].count("|")) if end and end.start() else (row.rstrip("| "), 1)
    return f"{said.rstrip()} {citation}{' |' * bars}"


def _closed(sentence: str) -> str:
    return f"{sentence}." if sentence[-1].isalnum() else sentence

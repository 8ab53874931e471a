"""What of a text stands together: where it may be cut, and what must then be shown beside a part of it.

A heading stands together with what follows it, a sentence that announces something with what it announces, the items
of a list with each other, and so do the rows of a table and the lines of code. What is longer than its room is cut
between items, rows or lines, and what these need is said again: the lead-in, the item around, the header, the fence.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import groupby, pairwise
from typing import NamedTuple

from fathom.text.blocks import Block, open_fence, split_blocks
from fathom.text.parsed import ParsedText, introduces
from fathom.text.sentences import Sentence

OMISSION = "[...]"
GAP = f"\n\n{OMISSION}\n\n"
MAX_INDENT = 40
LONGEST_AGAIN = 600  # characters of a lead-in or header that is said again
_LONGEST = 1_000  # characters of what is shown beside a part, each, and of front matter
_ROWS = ("table", "rule")
_HEADER_LINES = 4  # of a table: the row that names the columns, the rules above and below it, and the first row
_HEADINGS = 3  # in a row, of one unit at most: menus have many
_OPENING = 60  # sentences of front matter at most
_TAG = re.compile(r"<h([1-6])\b", re.IGNORECASE)
_MARKS = re.compile(r"(#{1,6})\s")
KEPT = 8  # texts whose chunks are kept: a tool's output has some five, and is cut until it fits
_PLAIN = 7  # level of a heading that nothing marks: below all others
_FIELD = re.compile(r":?[^\W\d_][\w -]{0,40}:(?:\s|\Z)")  # `Name: value` or `:Name: value`


class ChunkPart(NamedTuple):
    """A block, as character offsets, with what it stands in.

    A fence is of one part with the line of code next to it, and the rule below a table's header with that.
    """

    start: int  # with the indentation of its line
    stop: int
    group: int  # the same for blocks that stand together
    unit: int  # the same for the blocks of one item, row, fence or run of code, for a heading and what follows it
    blocks: range  # their numbers in the text
    needs: tuple[int, ...] = ()  # numbers of the blocks to be shown with it: lead-in, items around, header, fences
    opening: str = ""  # what is said again where a text begins with this part
    closing: str = ""  # what ends a text that stops before this part: a fence


def parts_of(text: str) -> list[ChunkPart]:
    """Return the parts of a text in order; together they hold every character that is not whitespace."""
    return _Reading(text, list(split_blocks(text))).parts


class _Reading:
    """Reads a text from top to bottom and remembers what is open."""

    def __init__(self, text: str, blocks: Sequence[Block]) -> None:
        self._text = text
        self.parts: list[ChunkPart] = []
        self._blocks = blocks
        self._starts: list[int] = []  # of the blocks read, with the indentation of their lines
        self._number = 0  # of the block that is read
        self._before: Block | None = None
        self._announces = False  # whether the block before stands together with what follows
        self._begun = 0  # the first block of the unit that is open
        self._items: list[tuple[int, int]] = []  # of the list that is open: indentation and number of each item around
        self._lead: tuple[int, ...] = ()  # what introduces the list
        self._fence = ""  # that is open, and its first part
        self._fenced = 0
        self._closed = False  # whether the block before ends fenced code
        self._top = 0  # the first block of the table that is open
        self._header: tuple[int, ...] = ()  # the rows that name its columns
        for number, block in enumerate(blocks):
            self._number = number
            self._read(block)
            self._before = block

    def _read(self, block: Block) -> None:
        line = self._text.rfind("\n", 0, block.start) + 1
        start = block.start if self._text[line : block.start].strip() else line
        self._starts.append(start)
        if self._fence:
            self._read_code(start, block.end)
            return
        indent = block.start - start
        before, self._closed = self._closed, False
        if self._items and (block.kind == "item" or indent > self._items[0][0]):
            self._read_in_list(start, block, indent)
        elif self._before and self._before.kind in _ROWS and block.kind in _ROWS and self._is_next(self._number):
            self._read_row(start, block)
        else:
            self._read_apart(start, block, closed=before)
        said = self._text[block.start : block.end]
        self._announces = block.kind == "heading" or (block.kind in ("prose", "item") and introduces(said))
        self._fence = open_fence("", self._text[start : block.end].split("\n", 1)[0])
        self._fenced = len(self.parts) - 1

    def _read_code(self, start: int, stop: int) -> None:
        """Read a line in a fence; the lines that open and close it are never alone."""
        fence, self._fence = self._fence, open_fence(self._fence, self._text[start:stop])
        first, last = self.parts[self._fenced], self.parts[-1]
        opener = first.blocks[0]
        if not self._fence or self._number == opener + 1:
            self.parts[-1] = last._replace(stop=stop, blocks=range(last.blocks.start, self._number + 1))
        else:
            opening = self._text[first.start : self._blocks[opener].end] + "\n"
            self._add(start, stop, needs=(*first.needs, opener), opening=opening, closing=f"\n{fence}")
        if not self._fence:
            self._announces, self._closed = False, True
            for at in range(self._fenced, len(self.parts)):
                self.parts[at] = self.parts[at]._replace(needs=(*self.parts[at].needs, self._number))

    def _read_in_list(self, start: int, block: Block, indent: int) -> None:
        """Read an item that is not the first of its list, or what is indented below one."""
        while self._items and self._items[-1][0] >= indent:
            self._items.pop()
        around = (*self._lead, *(number for _, number in self._items))
        self._add(start, block.end, in_unit=block.kind != "item", needs=around, opening=self._again(around))
        if block.kind == "item":
            self._items.append((indent, self._number))

    def _read_row(self, start: int, block: Block) -> None:
        """Read a row that is not the first; the rule below the first makes that a header."""
        last, below = self.parts[-1], self._before is not None and self._before.kind == "rule"
        if block.kind == "rule" and not self._header and not below:
            self._header = (self._number - 1, self._number)
            self.parts[-1] = last._replace(stop=block.end, blocks=range(last.blocks.start, self._number + 1))
            return
        header = (
            f"{self._text[self._starts[self._header[0]] : self._blocks[self._header[1]].end]}\n" if self._header else ""
        )
        self._add(
            start,
            block.end,
            in_unit=block.kind == "rule" or (below and self._number - self._top < _HEADER_LINES),
            needs=self._header,
            opening=header if len(header) <= LONGEST_AGAIN else "",
        )

    def _read_apart(self, start: int, block: Block, *, closed: bool) -> None:
        """Read a block that no list holds, and that may begin one."""
        before, kind = self._before, block.kind
        announced = self._announces and (not self._items or kind in ("code", "table"))
        code = kind == "code" and before is not None and before.kind == "code" and not closed
        headed = before is not None and before.kind == "heading"
        headed = headed and (kind != "heading" or self._number - self._begun < _HEADINGS)
        leads = before is not None and before.kind in ("prose", "item") and (announced or kind == "code")
        lead = (self._number - 1,) if leads else self.parts[-1].needs if code else ()
        self._items = [(block.start - start, self._number)] if kind == "item" else []
        self._lead, self._header, self._top = lead if kind == "item" else (), (), self._number
        self._add(
            start,
            block.end,
            in_group=announced or code,
            in_unit=headed or (code and self._is_next(self._number)),
            needs=lead,
            opening=self._again(lead) if announced else "",
        )

    def _again(self, numbers: Sequence[int]) -> str:
        """Return what is said again of some blocks before the one that is read, with a mark where text is left out."""
        said = ""
        for number, after in pairwise((*numbers, self._number)):
            start, stop = self._starts[number], self._blocks[number].end
            if stop - start <= LONGEST_AGAIN:
                beside = "\n" if self._is_next(after) else "\n\n"
                said += self._text[start:stop] + (beside if after == number + 1 else GAP)
        return said

    def _is_next(self, number: int) -> bool:
        """Whether a block stands on the line below the block before it."""
        return self._text.count("\n", self._blocks[number - 1].end, self._blocks[number].start) == 1

    def _add(
        self,
        start: int,
        stop: int,
        *,
        in_group: bool = True,
        in_unit: bool = True,
        needs: tuple[int, ...] = (),
        opening: str = "",
        closing: str = "",
    ) -> None:
        group, unit = (self.parts[-1].group, self.parts[-1].unit) if self.parts else (0, 0)
        self._begun = self._begun if in_unit else self._number
        blocks = range(self._number, self._number + 1)
        self.parts.append(
            ChunkPart(start, stop, group + (not in_group), unit + (not in_unit), blocks, needs, opening, closing)
        )


@lru_cache(maxsize=KEPT)
def chunks_of(parsed: ParsedText) -> Chunks:
    """Return the chunks of a text; of one that was cut lately, the same object."""
    return Chunks(parsed.text, parsed.sentences)


class Chunks:
    """The sentences of a text, by what of them stands together; a sentence goes by its number in the text."""

    def __init__(self, text: str, sentences: Sequence[Sentence]) -> None:
        self.sentences = sentences
        self._firsts = [0]  # number of each block's first sentence; at the end, the number of sentences
        self._firsts += (n for n in range(1, len(sentences)) if sentences[n].paragraph != sentences[n - 1].paragraph)
        self._firsts.append(len(sentences))
        blocks = [
            Block(sentences[first].start, sentences[end - 1].end, sentences[first].kind)
            for first, end in pairwise(self._firsts)
            if end
        ]
        self._parts = _Reading(text, blocks).parts
        self._begins = frozenset(part.blocks.start for part in self._parts)

    def units(self) -> list[range]:
        """Return, in order, the runs of sentences that a cut would spoil, and prose by its paragraphs.

        These are a row, the header of a table with its first row, a fence with its code, lines of code without a blank
        one between them, and an item of a list with what is indented below it. A heading is of one run with what
        follows, but of many in a row, as menus have them, only a few are.
        """
        units = (list(parts) for _, parts in groupby(self._parts, key=lambda part: part.unit))
        return [range(self._of(unit[0]).start, self._of(unit[-1]).stop) for unit in units]

    def lines(self, unit: range) -> list[range]:
        """Return the sentences of a run one by one, of rows and code the lines; a heading and a fence with the next."""
        firsts = [n for n in unit if n == unit[0] or self._may_begin(n)]
        return [range(first, end) for first, end in zip(firsts, [*firsts[1:], unit.stop], strict=True)]

    def companions(self) -> list[tuple[int, ...]]:
        """Return, for each sentence, the numbers of those that must be shown with it.

        For a row of a table: the row that names the columns, and the rule below it. For an item of a list: the sentence
        that introduces the list, and the items around. For a line of code: the sentence before the code, and its
        fences.
        """
        found: list[tuple[int, ...]] = []
        for part in self._parts:
            needed = tuple(n for block in part.needs for n in self._needed(block))
            own = self._of(part)
            found += [tuple(n for n in needed if n not in own)] * len(own)
        return found

    def is_opener(self, number: int) -> bool:
        """Whether a sentence is the line that opens a fence."""
        return bool(open_fence("", self.sentences[number].text))

    def _needed(self, block: int) -> Iterator[int]:
        own = range(self._firsts[block], self._firsts[block + 1])
        own = own[-1:] if self.sentences[own[0]].kind == "prose" else own
        return (n for n in own if len(self.sentences[n].text) <= _LONGEST)

    def _may_begin(self, number: int) -> bool:
        before, sentence = self.sentences[number - 1], self.sentences[number]
        merged = before.paragraph != sentence.paragraph and sentence.paragraph not in self._begins
        return before.kind != "heading" and not merged

    def _of(self, part: ChunkPart) -> range:
        return range(self._firsts[part.blocks.start], self._firsts[part.blocks.stop])


def opening_of(sentences: Sequence[Sentence]) -> tuple[int, ...]:
    """Return the numbers of the sentences at a text's top that say what it is: its front matter, and its title."""
    end = title = _front_matter(sentences)
    while title < len(sentences) and sentences[title].kind == "rule":
        title += 1  # the line above a title
    if title < len(sentences) and sentences[title].kind == "heading":
        end = title + 1
    while end and sentences[end - 1].end - sentences[0].start > _LONGEST:
        end -= 1
    return tuple(range(end))


def _front_matter(sentences: Sequence[Sentence]) -> int:
    """Return the number of the first sentence behind the front matter; 0 if there is none."""
    top = sentences[:_OPENING]
    if top and top[0].text in ("---", "+++"):
        return next((n + 1 for n, sentence in enumerate(top) if n and sentence.text == top[0].text), 0)
    end = lines = 0
    while end < len(top) and all(_FIELD.match(line) or line[:1].isspace() for line in top[end].text.split("\n")):
        lines += top[end].text.count("\n") + 1
        end += 1
    return end if lines > 1 else 0


def headings_above(sentences: Sequence[Sentence]) -> list[tuple[int, ...]]:
    """Return, for each sentence, the numbers of the headings that it stands under, the highest first."""
    found: list[tuple[int, ...]] = []
    stack: list[tuple[int, int]] = []  # level and number
    above: tuple[int, ...] = ()
    underlines: dict[str, int] = {}
    for number, sentence in enumerate(sentences):
        if sentence.kind == "heading":
            level = _level(sentence.text, underlines)
            while stack and stack[-1][0] >= level:
                stack.pop()
            found.append(tuple(n for _, n in stack))
            stack.append((level, number))
            above = tuple(n for _, n in stack)
        else:
            found.append(above)
    return found


def _level(heading: str, underlines: dict[str, int]) -> int:
    """Return the level of a heading from 1; of underlined ones, it is the order in which the underlines first occur."""
    if marked := _MARKS.match(heading):
        return len(marked[1])
    if tag := _TAG.match(heading):
        return int(tag[1])
    _, newline, underline = heading.rpartition("\n")
    return underlines.setdefault(underline.strip()[:1], len(underlines) + 1) if newline else _PLAIN

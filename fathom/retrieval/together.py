"""What of a text stands together: where an excerpt may begin and end without losing what its lines need.

A heading stands together with what follows it, a sentence that announces something with what it announces, the items
of a list with each other, and so do the rows of a table and the lines of code. What is longer than its room is cut
between items, rows or lines, and what these need is said again: the lead-in, the header, the fence.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from fathom.retrieval.narrowing import GAP
from fathom.text.blocks import Block, split_blocks
from fathom.text.units import introduces

LONGEST_AGAIN = 600  # characters of a lead-in or header that is said again
_FENCE = re.compile(r"(?:(?:[-*+]|\d{1,3}[.)])\s+)?(`{3,}(?=[^`]*\Z)|~{3,})")
_ROWS = ("table", "rule")


class Part(NamedTuple):
    """A block, as character offsets, with what it stands in."""

    start: int  # with the indentation of its line
    stop: int
    group: int  # the same for blocks that stand together
    item: int  # the same for the blocks of one list item; other blocks have one of their own
    opening: str = ""  # what is said again where a text begins with this part
    closing: str = ""  # what ends a text that stops before this part: a fence


def parts_of(text: str) -> list[Part]:
    """Return the parts of a text in order; together they hold every character that is not whitespace."""
    return _Reading(text).parts


class _Reading:
    """Reads a text from top to bottom and remembers what is open."""

    def __init__(self, text: str) -> None:
        self._text = text
        self.parts: list[Part] = []
        self._before: Block | None = None
        self._announces = False  # whether the block before stands together with what follows
        self._indent: int | None = None  # of the list that is open
        self._lead = ""  # what introduces the list
        self._fence = ""  # marks of the fence that is open
        self._opening = self._closing = ""  # line that opened the fence, and the one that would close it
        self._header = ""  # of the table that is open
        for block in split_blocks(text):
            self._read(block)
            self._before = block

    def _read(self, block: Block) -> None:
        line = self._text.rfind("\n", 0, block.start) + 1
        start = block.start if self._text[line : block.start].strip() else line
        said = self._text[block.start : block.end]
        if self._fence:
            self._read_code(start, block.end, said)
            return
        if self._indent is not None and (block.kind == "item" or block.start - start > self._indent):
            begins = block.kind == "item" and block.start - start <= self._indent
            self._add(start, block.end, in_group=True, in_item=not begins, opening=self._lead)
        elif self._before and self._before.kind in _ROWS and block.kind in _ROWS and self._is_next(block):
            self._read_row(start, block)
        else:
            self._read_apart(start, block)
        self._announces = block.kind == "heading" or (block.kind in ("prose", "item") and introduces(said))
        if marks := _FENCE.match(opening := said.split("\n", 1)[0]):
            self._fence, self._opening = marks[1], f"{self._text[start : block.start]}{opening}\n"
            self._closing = f"\n{' ' * (block.start - start + marks.start(1))}{marks[1]}"

    def _read_code(self, start: int, stop: int, said: str) -> None:
        """Read a line in a fence; the lines that open and close it are never alone."""
        last = self.parts[-1]
        closes = said.startswith(self._fence) and not said.strip(self._fence[0])
        if closes or self._text[last.start : last.stop] + "\n" == self._opening:
            self.parts[-1] = last._replace(stop=stop)
        else:
            self._add(start, stop, in_group=True, in_item=True, opening=self._opening, closing=self._closing)
        if closes:
            self._fence, self._announces = "", False

    def _read_row(self, start: int, block: Block) -> None:
        """Read a row that is not the first; the rule below the first makes that a header."""
        last = self.parts[-1]
        if block.kind == "rule" and not self._header:
            self._header = self._text[last.start : block.end] + "\n"
            self._header = self._header if len(self._header) <= LONGEST_AGAIN else ""
            self.parts[-1] = last._replace(stop=block.end)
        else:
            self._add(start, block.end, in_group=True, in_item=False, opening=self._header)

    def _read_apart(self, start: int, block: Block) -> None:
        """Read a block that no list holds, and that may begin one."""
        before, kind = self._before, block.kind
        announced = self._announces and (self._indent is None or kind in ("code", "table"))
        code = kind == "code" and before is not None and before.kind == "code" and not self._closed(before)
        lead = self._text[before.start : before.end] if before and announced and before.kind == "prose" else ""
        lead = lead if len(lead) <= LONGEST_AGAIN else ""
        self._indent = block.start - start if kind == "item" else None
        self._lead, self._header = lead and f"{lead}{GAP}", ""
        self._add(start, block.end, in_group=announced or code, in_item=False, opening=lead and f"{lead}\n\n")

    def _closed(self, before: Block) -> bool:
        return bool(_FENCE.match(self._text, before.start, before.end))

    def _is_next(self, block: Block) -> bool:
        return self._before is not None and self._text.count("\n", self._before.end, block.start) == 1

    def _add(
        self, start: int, stop: int, *, in_group: bool, in_item: bool, opening: str = "", closing: str = ""
    ) -> None:
        group, item = (self.parts[-1].group, self.parts[-1].item) if self.parts else (0, 0)
        self.parts.append(Part(start, stop, group + (not in_group), item + (not in_item), opening, closing))

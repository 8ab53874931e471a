"""Tags of HTML in a text: where its paragraphs, items and rows begin and end although no line does."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal

ROW_CHARS = 300  # a longer row of a table lays out a page: each of its cells is a block

_BLOCKS = "p|h[1-6]|[uod]l|li|d[dt]|table|caption|t[rdh]"
_TAG = re.compile(rf"<(/?)({_BLOCKS})(?:[\s_][^<>]*)?>", re.IGNORECASE)
_LEADING = re.compile(rf"(?:<(?:{_BLOCKS})(?:[\s_][^<>]*)?>\s*)+", re.IGNORECASE)
_ITEM = re.compile(r"(?:<[uo]l>\s*)?<(?:li|d[dt])\b", re.IGNORECASE)
_TRAILING = re.compile(rf"(?:\s*</(?:{_BLOCKS})>)+\Z", re.IGNORECASE)
_ROW_END = re.compile(r"</?tr\b|</table\b", re.IGNORECASE)
_CLOSING_CHARS = 40  # of the closing tags at the end of a block
_CELLS = frozenset(("td", "th"))
_KINDS: dict[str, Literal["heading", "item", "table"]] = {
    "h": "heading", "li": "item", "dd": "item", "dt": "item", "tr": "table", "td": "table", "th": "table",
}  # fmt: skip


def has_blocks(line: str) -> bool:
    """Whether a line is of several blocks: it begins or ends with a tag, opens two at least and closes one."""
    if "</" not in line or not (_TAG.match(line) or ends_before_tags(line, 0, len(line)) < len(line)):
        return False
    tags = list(_TAG.finditer(line))
    about = any(line[tag.start() - 1 : tag.start()] == "`" for tag in tags)  # `<td>` is what it speaks of
    return not about and any(tag[1] for tag in tags) and sum(not tag[1] for tag in tags) > 1


def split_markup(line: str) -> Iterator[tuple[int, int]]:
    """Yield the places of the blocks of a line; a row of a table is one if it is short."""
    start = position = 0
    has_text = closed = in_row = False
    for tag in _TAG.finditer(line):
        between = line[position : tag.start()]
        if between.strip():
            if has_text and closed and not in_row:
                first = position + len(between) - len(between.lstrip())
                yield start, first
                start = first
            has_text, closed = True, False
        name, closes = tag[2].lower(), bool(tag[1])
        if has_text and not closes and not (in_row and name in _CELLS):
            yield start, tag.start()
            start, has_text, closed = tag.start(), False, False
        closed = closed or closes
        if name == "tr":
            in_row = not closes and bool(_ROW_END.search(line, tag.end(), tag.end() + ROW_CHARS))
        position = tag.end()
    rest = line[position:]
    if rest.strip() and has_text and closed:
        first = position + len(rest) - len(rest.lstrip())
        yield start, first
        start = first
    yield start, len(line)


def kind_of_markup(block: str) -> Literal["heading", "item", "table"] | None:
    """Return the kind of a block by the tags that it begins with, the last of which says it; None for a paragraph."""
    kind = None
    position = 0
    while tag := _TAG.match(block, position):
        kind = _KINDS.get("h" if tag[2][0] in "hH" else tag[2].lower(), kind)
        position = len(block) - len(block[tag.end() :].lstrip())
    return kind


def ends_before_tags(text: str, start: int, end: int) -> int:
    """Return where what is said ends: before the closing tags."""
    found = _TRAILING.search(text, max(start, end - _CLOSING_CHARS), end) if text[end - 1 : end] == ">" else None
    return found.start() if found else end


def without_tags(block: str, is_row: bool) -> str:
    """Return a block without the tags around it, the cells of a row between `|`."""
    if is_row and _TAG.match(block):
        cells = (cell.strip() for cell in _TAG.split(block)[::3])
        return " | ".join(filter(None, cells))
    leading = _LEADING.match(block)
    start, end = leading.end() if leading else 0, ends_before_tags(block, 0, len(block))
    about = end == len(block) and block[start : start + 1].islower()  # "<p> begins a paragraph."
    return block[0 if about and not _ITEM.match(block) else start : end]

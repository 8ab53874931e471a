"""Foreign text in Markdown: plain text is escaped, and quotations become blocks that keep their layout.

The blocks are fenced code, tables with a rule below their first row, and items that begin with `- `, with their number
behind it if they have one. Everything else is plain text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

from fathom.text.sentences import Fence, fences
from fathom.text.tables import BAR, RULE

_INFO = re.compile(r"[\w+#.-]{0,30}\Z")
_ROW = re.compile(r"\s*\|.*\|")
_WHOLE_ROW = re.compile(rf"{_ROW.pattern}\s*\Z")
_ITEM = re.compile(r"( *)- +(?:(0|[1-9]\d{0,8})\. +)?(?=\S)")
_LIST = re.compile(r"^(\d{1,9})\. ", re.MULTILINE)  # Markdown's own; in plain text the dot is escaped
_OMITTED = "…"
_TICKS = re.compile(r"`+")
_CITATIONS = re.compile(r"(?:\s*\[S[0-9a-f]{6,64}\]|\s*⸨\d+\.[\d!]+⸩)*\s*\Z")


def quoted_markdown(text: str) -> str:
    """Return the Markdown of quotations as Markdown that renders as it reads, whatever the quotations hold."""
    blocks: list[str] = []
    position = 0
    for fence in fences(text):
        if fence.closed and _INFO.match(fence.info) and not _in_line(text, fence):
            blocks += [*_text_blocks(text[position : fence.start]), _fenced(fence)]
            position = fence.end
    return "\n\n".join(_apart([*blocks, *_text_blocks(text[position:])]))


def _apart(blocks: Sequence[str]) -> Iterator[str]:
    """Yield blocks with an ellipsis between two lists that Markdown would number as one, where a number is left out."""
    for before, block in zip(["", *blocks], blocks, strict=False):
        last, first = _LIST.findall(before), _LIST.match(block)
        if not before.startswith("```") and last and first and int(first[1]) != int(last[-1]) + 1:
            yield _OMITTED
        yield block


def _in_line(text: str, fence: Fence) -> bool:
    return bool(text[text.rfind("\n", 0, fence.start) + 1 : fence.start].strip())


def _fenced(fence: Fence) -> str:
    longest = max(map(len, _TICKS.findall(fence.code)), default=0)
    marker = "`" * max(3, longest + 1)
    return f"{marker}{fence.info}\n{fence.code}\n{marker}"


def _text_blocks(text: str) -> Iterator[str]:
    for paragraph in re.split(r"\n[ \t]*\n", text):
        lines = paragraph.strip("\n").split("\n")
        while lines:
            size, block = _block(lines)
            if block:
                yield block
            lines = lines[size:]


def _block(lines: Sequence[str]) -> tuple[int, str]:
    """Return the number of lines of the first block, and the block."""
    if len(lines) > 1 and _is_head(lines):
        size = next((n for n, line in enumerate(lines) if not _ROW.match(line)), len(lines))
        return size, _table(lines[:size])
    is_item = bool(_ITEM.match(lines[0]))
    size = 1
    while size < len(lines) and bool(_ITEM.match(lines[size])) == is_item and not _is_head(lines[size:]):
        size += 1
    return size, "\n".join(_items(lines[:size]) if is_item else [_text(lines[:size])])


def _is_head(lines: Sequence[str]) -> bool:
    return (
        len(lines) > 1
        and bool(_ROW.match(lines[0]))
        and bool(RULE.match(lines[1]))
        and len(_cells(lines[0])) == len(_cells(lines[1]))
    )


def _text(lines: Sequence[str]) -> str:
    return escaped_quotation("\n".join(line.strip() for line in lines))


class _Open(NamedTuple):
    """An item that others may stand in or follow."""

    indent: int
    number: int | None
    marker: str


def _items(lines: Sequence[str]) -> Iterator[str]:
    """Yield the lines of a list. Markdown reads only the first number of one, so a list ends where one is left out."""
    opened: list[_Open] = []
    for line in lines:
        found = _ITEM.match(line)
        assert found
        indent, number = len(found[1]), int(found[2]) if found[2] else None
        before: _Open | None = None
        while opened and opened[-1].indent >= indent:
            before = opened.pop()
        margin = " " * sum(len(item.marker) for item in opened)
        marker = "- " if number is None else f"{number}. "
        if number is not None and before and before.number not in (None, number - 1):
            yield from ("", f"{margin}{_OMITTED}", "")
        elif number not in (None, 1) and opened and not before:
            yield ""  # only a list from 1 on may follow a line of text
        yield f"{margin}{marker}{escaped_quotation(line[found.end() :].strip())}"
        opened.append(_Open(indent, number, marker))


def _table(lines: Sequence[str]) -> str:
    head, rule, *rows = lines
    columns = len(_cells(head))
    written = [_row(_cells(row), columns) for row in rows]
    return "\n".join([_row(_cells(head), columns), rule.strip(), *written])


def _cells(row: str) -> list[str]:
    """Return the cells of a row; citations behind its last bar belong to its last cell."""
    first, *cells = (cell.strip() for cell in BAR.split(row.strip()))
    assert not first  # it begins with a bar
    behind = cells.pop()
    if behind and _CITATIONS.match(behind) and cells:
        cells[-1] = f"{cells[-1]} {behind}"
    elif behind:
        cells.append(behind)
    return cells


def _row(cells: Sequence[str], columns: int) -> str:
    fitting = [*cells[: columns - 1], " | ".join(cells[columns - 1 :])]
    return f"| {' | '.join(_cell(cell) for cell in fitting)} |"


def _cell(text: str) -> str:
    return escaped_quotation(text.replace("\\|", "|")).replace("|", "\\|")


_CITATION = r"\[S[0-9a-f]{6,64}(?:\s*[,;]\s*S[0-9a-f]{6,64})*\]"
_NAME = r"(?<![^\W_])_|_(?![^\W_])"  # an underscore that is not inside of a word
_SPECIAL = re.compile(
    rf"{_CITATION}"
    # Escapes, code, emphasis, strikethrough, links, HTML and entities ...
    rf"|(?P<special>\\(?=[!-/:-@\[-`{{-~]|$)|[`*~]|{_NAME}|\](?=\()|<(?=[a-z/!?])|&(?=\#?\w{{1,32}};)"
    # ... and at the ends of a line: headings, quotations, lists, rules, lines that make a heading of the one above, and
    # definitions of links.
    r"|(?<=^)\#(?=\#{0,5}(?:\s|$))|\#(?=\#*$)|(?<=^)>|(?<=^)[-+](?=\s|$)|(?<=^)[-=:|](?=[-=:|\s]*$)|(?<=^)\[(?=[^\]]*\]:))",
    re.IGNORECASE | re.MULTILINE,
)
_NUMBER = re.compile(r"^(\d{1,9})([.)])(?=\s|$)", re.MULTILINE)
_CODE = r"^ {0,3}(?:```.*?(?:^ {0,3}```|\Z)|~~~.*?(?:^ {0,3}~~~|\Z))|(?<!`)(`+)(?!`).+?(?<!`)\2(?!`)"
# Code in one line up to the next run of as many backticks, as Markdown reads it. What begins or ends with a space, or
# has a citation or mark of one, is not taken for code.
_SPAN = (
    r"(?<!`)(?P<ticks>`+)(?=[^`\s])(?:(?!\[S[0-9a-f]{6}|⸨|(?<!`)(?P=ticks)(?!`))[^\n]){1,200}"
    r"(?<=[^`\s])(?P=ticks)(?!`)"
)
_SPAN_OR_SPECIAL = re.compile(f"{_SPAN}|{_SPECIAL.pattern}", _SPECIAL.flags)
_CODE_OR_NAME = re.compile(rf"({_CODE}|\\.)|({_NAME})", re.DOTALL | re.MULTILINE)


def escaped(text: str) -> str:
    """Return Markdown that renders as a plain text, but for its citations by source id, which stay as they are."""
    return _NUMBER.sub(r"\1\\\2", _SPECIAL.sub(_kept_or_escaped, _stripped(text)))


def _kept_or_escaped(found: re.Match[str]) -> str:
    return f"\\{found['special']}" if found["special"] else found[0]


def _stripped(text: str) -> str:
    return "\n".join(line.strip() for line in text.split("\n"))


def escaped_quotation(text: str) -> str:
    """Return Markdown that renders as a plain text, but for its citations and for `code` in balanced backticks."""
    return _NUMBER.sub(r"\1\\\2", _SPAN_OR_SPECIAL.sub(_kept_or_escaped, _stripped(text)))


def with_names(markdown: str) -> str:
    """Return Markdown in which `_` is no emphasis, because names such as `__dict__` contain it; code stays as it is."""
    return _CODE_OR_NAME.sub(lambda found: found[1] or f"\\{found[3]}", markdown)


class QuotedPart(NamedTuple):
    """A part of a quotation with what stands around it: text, or the rows of a table."""

    text: str = ""  # empty for a table
    is_quoted: bool = False  # of a text; else it stands around the quotation
    head: Sequence[str] = ()  # the cells of a table's head; none if it is not there
    rows: Sequence[tuple[Sequence[str], bool]] = ()  # the cells of a row, and whether it is quoted


def quoted_parts(text: str, before: str = "", after: str = "") -> list[QuotedPart]:
    """Return the parts of a quotation that holds rows of a table; none if it holds no row.

    Of the text around it, a row of which only one end is there is left out.
    """
    if not any(map(_WHOLE_ROW.match, text.split("\n"))):
        return []
    around = [[line for line in part.split("\n") if line.strip()] for part in (before, text, after)]
    cut = [line for line in (*around[0][:1], *around[2][-1:]) if BAR.search(line) and not _WHOLE_ROW.match(line)]
    lines = [(line, n == 1) for n, part in enumerate(around) for line in part if n == 1 or line not in cut]
    parts: list[QuotedPart] = []
    for (is_row, is_quoted), found in groupby(lines, lambda one: _row_or_text(*one)):
        group = list(found)
        parts.append(_quoted_rows(group) if is_row else QuotedPart("\n".join(line for line, _ in group), is_quoted))
    return parts


def without_bars(text: str) -> str:
    """Return a quotation for a line of its own: of rows of a table, without the bars around them and the rule."""
    lines = [line.strip() for line in text.split("\n") if not RULE.match(line)]
    rows = any(map(_WHOLE_ROW.match, lines))
    return " / ".join(line.strip("| ") for line in lines if line) if rows else text


def _row_or_text(line: str, is_quoted: bool) -> tuple[bool, bool]:
    """Return whether a line is a row, and whether it is text that is quoted."""
    is_row = bool(_WHOLE_ROW.match(line))
    return is_row, is_quoted and not is_row


def _quoted_rows(lines: Sequence[tuple[str, bool]]) -> QuotedPart:
    has_head = _is_head([line for line, _ in lines])
    rows = [([cell.replace("\\|", "|") for cell in _cells(line)], said) for line, said in lines if not RULE.match(line)]
    return QuotedPart(head=rows[0][0] if has_head else (), rows=rows[1:] if has_head else rows)

"""Layout before language: a text's lines become headings, list items, table rows, code and paragraphs.

Sentences can only be found inside a paragraph, and a plain text says where one ends in several ways: a blank line, a
marker at the line's start, or a line that is shorter than it would be if the paragraph went on.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Literal, NamedTuple

from fathom.text.messages import is_entry
from fathom.text.tables import BAR

ROW_CHARS = 300  # a longer row of a table lays out a page: each of its cells is a block

_BLOCKS = "p|h[1-6]|[uod]l|li|d[dt]|table|caption|t[rdh]"
_TAG = re.compile(rf"<(/?)({_BLOCKS})(?:[\s_][^<>]*)?>", re.IGNORECASE)
_LEADING = re.compile(rf"(?:<(?:{_BLOCKS})(?:[\s_][^<>]*)?>\s*)+", re.IGNORECASE)
_ITEM_TAG = re.compile(r"(?:<[uo]l>\s*)?<(?:li|d[dt])\b", re.IGNORECASE)
_TRAILING = re.compile(rf"(?:\s*</(?:{_BLOCKS})>)+\Z", re.IGNORECASE)
_ROW_END = re.compile(r"</?tr\b|</table\b", re.IGNORECASE)
_CLOSING_CHARS = 40  # characters of the closing tags at the end of a block
_CELLS = frozenset(("td", "th"))
_KINDS: dict[str, Literal["heading", "item", "table"]] = {
    "h": "heading", "li": "item", "dd": "item", "dt": "item", "tr": "table", "td": "table", "th": "table",
}  # fmt: skip


def has_blocks(line: str) -> bool:
    """Whether a line is of several blocks: it begins or ends with a tag, opens two at least and closes one."""
    if "</" not in line or not (_TAG.match(line) or ends_before_tags(line, 0, len(line)) < len(line)):
        return False
    tags = list(_TAG.finditer(line))
    about = any(line[tag.start() - 1 : tag.start()] == "`" for tag in tags)  # the text is about `<td>`
    return not about and any(tag[1] for tag in tags) and sum(not tag[1] for tag in tags) > 1


def split_markup(line: str) -> Iterator[tuple[int, int]]:
    """Yield the places of the blocks of a line; a short table row counts as one block."""
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
    """Return the kind of a block by the last of its opening tags; None for a paragraph."""
    kind = None
    position = 0
    while tag := _TAG.match(block, position):
        kind = _KINDS.get("h" if tag[2][0] in "hH" else tag[2].lower(), kind)
        position = len(block) - len(block[tag.end() :].lstrip())
    return kind


def ends_before_tags(text: str, start: int, end: int) -> int:
    """Return the end of the text, before the closing tags."""
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
    return block[0 if about and not _ITEM_TAG.match(block) else start : end]


Kind = Literal["prose", "item", "heading", "table", "code", "rule"]

WRAP_WIDTH = 160  # lines longer than this are paragraphs of their own, not the lines of a wrapped one
HEADING_CHARS = 90
PROSE_CHARS = 40  # least characters of a line of a wrapped paragraph
PROSE_CELL_WORDS = 3  # before the first bar of a sentence, at least
LONE_CELLS, LONE_CELL_WORDS = 3, 4  # of a row by itself: cells at least, words of each at most
CODE_INDENT = 2  # of a line of code without a fence, at least


class Block(NamedTuple):
    """A stretch of text, as character offsets, that no sentence crosses."""

    start: int
    end: int
    kind: Kind


class _Line(NamedTuple):
    start: int
    end: int  # without trailing whitespace
    indent: int
    text: str  # without surrounding whitespace


_FENCE = re.compile(r"([ \t]*(?:>[ \t]?)*)((?:(?:[-*+]|\d{1,9}[.)])[ \t]+)?)(`{3,}(?=[^`]*\Z)|~{3,})(.*)")
_ITEM = re.compile(r"(?:[-*+•‣▪◦–]|\(?\d{1,3}[.)]|\(?[a-z][.)]|\[\d{1,3}\]|\.\. \[\w+\])\s+\S")
_CLAUSE = re.compile(r"\d{1,3}[.)]\s+[^\W\d_]")
_HEADING = re.compile(r"#{1,6}\s+\S")
# Numbers and dates of headings: "3.2", "Chapter 5:", "2024-12-06", "May 2024". A number after them is content.
_NUMBERING = re.compile(
    r"(?:(?:chapter|part|section|appendix|annex|article|volume|book|unit|lesson|module|phase|step|day|week|version|"
    r"table|figure|exercise|question|round|act|scene|jan|feb|mar|apr|may|june?|july?|aug|sept?|oct|nov|dec)[a-z]*\s+)?"
    r"(?:v?\d+(?:[.-]\d+)*|[A-Z]|[IVXLC]+)(?:[.:)]|(?=\s|\Z))\s*",
    re.IGNORECASE,
)
_SAYS = re.compile(r":\s+\S|(?<![\w-])[$€£+-]?\d|[a-z]{3}[.!?]\s+[A-Z]|\s[.!?](?:\s|\Z)|\[S[0-9a-f]{6,}|[{}=\\|]|://")
# A row of columns: `name    value`.
_COLUMNS = re.compile(r"\S(?:(?! {3,}).){0,60} {3,}(?=\S)")
_BARRED = re.compile(r"(?:>\s*)*\|.*\||[^|]*\|.*\|\Z")  # a row with a bar before it or behind it
_CODE_SPAN = re.compile(r"(`+)[^`\n]*\1")
_UNSPACED = re.compile("[\u2e80-\u9fff\uac00-\ud7af\uf900-\uffef]")  # writing that breaks a line anywhere
_RULE = re.compile(r"[\W_]*\Z")
_UNDERLINE = re.compile(r"([=\-~^*#\"+'`.])\1{2,}\Z")
_SENTENCE_END = re.compile(r"[.!?。！？…][\"'”’»)\]]*(?:\s*\[\w+\])*\Z")
_OPEN_END = re.compile(r"(?:[,;:(\[/–—-]|\b(?:and|or|the|a|an|of|in|to|for|with|by|und|oder|der|die|das|von|mit))\Z")
_SENTENCE = re.compile(r"[^\W\d_]{3}[.!?:;](?:\s|\Z)|[。！？]")
_DECLARED = r"(?:(?:async|class|def|exception|classmethod|staticmethod|property)\s+)*"
_CALLED = r"[\w.]+\(.*\)(?:\s*(?:->|→).*)?"
_SIGNATURE = re.compile(rf"{_DECLARED}{_CALLED}\Z")
_OBJECT = re.compile(rf"{_DECLARED}({_CALLED}|[A-Za-z_]\w*(?:\.\w+)+)\Z")
_CODE = re.compile(
    r">>>|\.\.\.\s|\$\s|@\w|#!|//|/\*|<\?|</?\w+[^>]*>\Z|.*::=|[|&]\s"
    r"|(?:def|class|for|while|if|elif|with|try|except|finally|else|async|lambda)\b.*:\Z"
    r"|(?:return|import|from|raise|yield|assert|del|pass|break|continue|global|nonlocal)(?:\s+[\w.*()\"', ]+)?\Z"
    r"|(?:const|let|var|public|private|static|function|fn|func)\s"
    r"|[\w.\[\]\"', ]{1,60}\s?(?:[-+*/%|&^@:]|//|\*\*|<<|>>)?=\s*\S"
    r"|[\w.]+\(.*\)(?:\s*#.*)?\Z|.*[{};]\Z|[)\]}]+[,;]?\Z"
)


def is_signature(text: str) -> bool:
    """Whether a text is one line that only names a function or class and its parameters."""
    return "\n" not in text and bool(_SIGNATURE.match(text[:300]))


def object_in(line: str) -> str:
    """Return the function, class or attribute that is all a line names, as above its description; else nothing."""
    found = _OBJECT.match(line.strip()[:300])
    return found[1] if found else ""


def open_fence(fence: str, line: str, above: str = "") -> str:
    """Return the fence that is open after a line of Markdown, empty if none is; `fence` is the open fence before the
    line.

    A fence may stand in a list item or quotation, also on the line of its marker. It is returned with the text before
    it, an item's marker as spaces, so that it equals the line that closes it. `above`: the line before, where the text
    may be
    reST: four or more tildes below a title that is no longer than they are underline it.
    """
    if "```" not in line and "~~~" not in line:
        return fence
    marker = _FENCE.match(line)
    if not marker:
        return fence
    before, item, marks, rest = marker.groups()
    if not fence:
        alone = marks.startswith("~~~~") and line.strip() == marks
        titled = not _RULE.match(above) and len(above.strip()) <= len(marks)
        return "" if alone and titled else f"{before}{' ' * len(item)}{marks}"
    opened = fence.lstrip(" \t>")
    closes = not item and len(before) < len(fence) - len(opened) + 4 and marks.startswith(opened) and not rest.strip()
    return "" if closes else fence


def split_blocks(text: str) -> Iterator[Block]:
    """Yield the blocks of a text in order; together they hold every character that is not whitespace.

    Each line of code is a block; the line that opens a fence is an item if it begins one.
    """
    run: list[_Line] = []
    fence = ""
    before = ""  # the last line of the run before: code often follows a colon
    for line in _lines(text):
        after = open_fence(fence, text[line.start - line.indent : line.end], run[-1].text if run else "")
        if fence or after:
            yield from _blocks_of(run, before)
            run = []
            if line.text:
                yield Block(line.start, line.end, "item" if not fence and _ITEM.match(line.text) else "code")
            fence = after
        elif line.text and line.indent < CODE_INDENT and has_blocks(line.text):
            yield from _blocks_of(run, before)
            run = []
            yield from _marked_up(line)
        elif line.text:
            run.append(line)
        elif run:
            yield from _blocks_of(run, before)
            before, run = run[-1].text[-3:], []
    yield from _blocks_of(run, before)


def _lines(text: str) -> Iterator[_Line]:
    position = 0
    for raw in text.split("\n"):
        stripped = raw.strip()
        indent = len(raw) - len(raw.lstrip())
        yield _Line(position + indent, position + indent + len(stripped), indent, stripped)
        position += len(raw) + 1


def _marked_up(line: _Line) -> Iterator[Block]:
    for first, last in split_markup(line.text):
        text = line.text[first:last].strip()
        yield Block(line.start + first, line.start + first + len(text), kind_of_markup(text) or "prose")


def _blocks_of(run: list[_Line], before: str) -> Iterator[Block]:
    if not run:
        return
    if _is_code(run, after_colon=before.endswith(":")):
        yield from (Block(line.start, line.end, "code") for line in run)
        return
    width = max(line.indent + len(line.text) for line in run)
    rows = _rows_of_bars(run)
    first = 0
    while first < len(run):
        last, kind = _extent(run, first, width, rows)
        yield Block(run[first].start, run[last].end, kind)
        first = last + 1


def _extent(run: list[_Line], first: int, width: int, rows: frozenset[int]) -> tuple[int, Kind]:
    """Return the index of the last line of the block that begins at `first`, and the block's kind."""
    line = run[first]
    following = run[first + 1].text if first + 1 < len(run) else ""
    if _UNDERLINE.match(following) and len(line.text) <= HEADING_CHARS and not _RULE.match(line.text):
        return first + 1, "heading"
    if (kind := _single(line.text)) is not None:
        return first, kind
    if first in rows:
        return first, "table"
    if _is_row(run, first):
        return _row_end(run, first), "table"
    item = line if _ITEM.match(line.text) else None
    last = first
    while (
        last + 1 < len(run)
        and _goes_on(run[last], run[last + 1], width, item)
        and last + 1 not in rows
        and not _is_row(run, last + 1)
    ):
        last += 1
    if item:
        return last, "heading" if last == first and _heads(run, first) else "item"
    return last, "heading" if last == first and _reads_as_heading(line.text) else "prose"


def _heads(run: list[_Line], number: int) -> bool:
    """Whether the line of an item is the heading of a clause: "4. Deposit", with sentences in the next line.

    Not behind another item: there it is the last one of a list.
    """
    if number + 1 == len(run) or (number and _ITEM.match(run[number - 1].text)):
        return False
    line, after = run[number].text, run[number + 1].text
    numbered = _CLAUSE.match(line)
    return bool(numbered) and _reads_as_heading(line) and bool(_SENTENCE.search(after)) and not _ITEM.match(after)


def _single(text: str) -> Kind | None:
    """Return the kind of a line that is a block of its own, or None."""
    if _HEADING.match(text):
        return "heading"
    if _RULE.match(text):
        return "rule"
    if _BARRED.match(text) or "\t" in text:
        return "table"
    return None


def _rows_of_bars(run: list[_Line]) -> frozenset[int]:
    """Return the lines that are rows without outer bars: they have a line of dashes and bars, or form columns together.

    A bar alone makes no row: prose has it in a pipe of commands or a union of types. A single line is a row if it
    cannot be anything else.
    """
    if len(run) == 1:
        return frozenset((0,)) if _is_lone_row(run[0].text) else frozenset()
    found: set[int] = set()
    first = 0
    while first < len(run):
        last = first
        while last < len(run) and "|" in run[last].text:
            last += 1
        ruled = next((n for n in range(first, last) if _RULE.match(run[n].text) and "-" in run[n].text), None)
        if ruled is not None and ruled > first:
            found.update(range(ruled - 1, last))
        elif last > first:
            found.update(_columns_of_bars(run, first, last))
        first = max(last, first + 1)
    return frozenset(found)


def _columns_of_bars(run: list[_Line], first: int, last: int) -> Iterator[int]:
    """Yield groups of adjacent lines with equally many cells, if they read as rows rather than as prose."""
    cells = [len(BAR.findall(_CODE_SPAN.sub("", run[n].text))) for n in range(first, last)]
    start = first
    for n in range(first + 1, last + 1):
        if n < last and cells[n - first] == cells[start - first]:
            continue
        alike = run[start:n]
        if n - start > 1 and cells[start - first] and (_is_aligned(alike) or not _is_prose(alike)):
            yield from range(start, n)
        start = n


def _is_lone_row(text: str) -> bool:
    """Whether a line is short cells between ` | `, without a sentence; commands and types begin with a small letter."""
    cells = text.split(" | ")
    return (
        len(cells) >= LONE_CELLS
        and all(cell.strip() and len(cell.split()) <= LONE_CELL_WORDS for cell in cells)
        and not text[0].islower()
        and "`" not in text
        and not _SENTENCE.search(text)
        and not _ITEM.match(text)
    )


def _is_aligned(lines: list[_Line]) -> bool:
    """Whether all lines have a bar in the same column."""
    places = [{line.indent + found.start() for found in BAR.finditer(line.text)} for line in lines]
    return len(lines) > 2 and bool(set.intersection(*places))


def _is_prose(lines: list[_Line]) -> bool:
    """Whether some lines with bars are an item, a wrapped paragraph or sentences."""
    width = max(len(line.text) for line in lines)
    wrapped = any(
        len(line.text) >= PROSE_CHARS and len(line.text) + 1 + len(after.text.split(maxsplit=1)[0]) > width
        for line, after in pairwise(lines)
    )
    return wrapped or any(
        " | " not in line.text
        or _ITEM.match(line.text)
        or (_SENTENCE_END.search(line.text[-12:]) and len(line.text.partition("|")[0].split()) >= PROSE_CELL_WORDS)
        for line in lines
    )


def _is_row(run: list[_Line], number: int) -> bool:
    """Whether a line is a row: it and the line before or after it have columns, perhaps with a wrapped value."""
    if not _COLUMNS.match(run[number].text) or _ITEM.match(run[number].text):
        return False
    after = _row_end(run, number) + 1
    before = number - 1
    while before > 0 and run[before].indent > run[number].indent:
        before -= 1
    return any(
        _COLUMNS.match(run[beside].text) and run[beside].indent == run[number].indent
        for beside in (before, after)
        if 0 <= beside < len(run)
    )


def _row_end(run: list[_Line], number: int) -> int:
    """Return the last line of a row: a wrapped value is indented as far as its first line."""
    columns = _COLUMNS.match(run[number].text)
    value = run[number].indent + columns.end() if columns else 0
    last = number
    while (
        last + 1 < len(run) and abs(run[last + 1].indent - value) <= 1 < value and not _ITEM.match(run[last + 1].text)
    ):
        last += 1
    return last


def _goes_on(line: _Line, after: _Line, width: int, item: _Line | None) -> bool:
    """Whether the paragraph goes on after a line: wrapped text breaks where the next word would not have fitted."""
    if _single(after.text) is not None or _ITEM.match(after.text) or is_entry(after.text):
        return False
    if after.text[0].islower() or _OPEN_END.search(line.text[-12:]) or (item and after.indent > item.indent):
        return True
    next_word = after.text.split(maxsplit=1)[0]
    if _UNSPACED.search(next_word):
        next_word = next_word[:4]
    return width <= WRAP_WIDTH and line.indent + len(line.text) + 1 + len(next_word) > width


def _reads_as_heading(text: str) -> bool:
    """Whether a line reads as a heading: short and open, and neither a setting, a figure nor an address."""
    numbering = _NUMBERING.match(text)
    return (
        len(text) <= HEADING_CHARS
        and not _SENTENCE_END.search(text[-12:])
        and text[-1] not in ",;:、，：；"
        and len(text.split()) <= 12
        and not _SAYS.search(text, numbering.end() if numbering else 0)
    )


def _is_code(run: list[_Line], after_colon: bool) -> bool:
    """Whether a run is code: indented lines that mostly read as statements; a lone signature; a doctest."""
    if run[0].text.startswith(">>>") or (len(run) == 1 and _SIGNATURE.match(run[0].text[:300])):
        return True
    if min(line.indent for line in run) < CODE_INDENT:
        return False
    hits = sum(bool(_CODE.match(line.text[:300])) for line in run)
    ends = sum(bool(_SENTENCE_END.search(line.text[-12:])) for line in run)
    return hits * 2 >= len(run) > ends * 2 or (after_colon and hits > ends)

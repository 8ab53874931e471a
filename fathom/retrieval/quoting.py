"""Sentences of a text as Markdown, in its own words: a row under its header, code in a fence, an item."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Sequence

from fathom.text.blocks import open_fence
from fathom.text.sentences import Sentence

_LANGUAGE = re.compile(r"[`~]+\s*([\w+#.-]*)")
_CELLS = re.compile(r"(?<!\\)\||\t|(?<=\S)[^\S\n]{3,}(?=\S)")
_ORDERED = re.compile(r"\(?(\d{1,3})[.)]\s")


# Strong emphasis, but not in a power such as 2**3.
_STRONG = re.compile(r"(?<![\w*`])\*\*(?=\S)([^*`\n]+?)(?<=\S)\*\*(?![\w*`])")


def as_markdown(text: str, sentences: Sequence[Sentence]) -> str:
    """Return some sentences of a text, in reading order, as blocks of Markdown; a heading becomes "Heading:"."""
    return "\n\n".join(_blocks(text, sentences))


def _blocks(text: str, sentences: Sequence[Sentence]) -> Iterator[str]:
    first = 0
    while first < len(sentences):
        kind, last = sentences[first].kind, first + 1
        while last < len(sentences) and _together(sentences[last - 1], sentences[last]):
            last += 1
        block = sentences[first:last]
        first = last
        if kind == "heading":
            yield _announcing(block[0])
        elif kind == "code":
            yield _code(text, block)
        elif kind in ("table", "rule"):
            yield from _table(block)
        elif kind == "item":
            yield _list(text, block)
        else:
            yield _plain(" ".join(sentence.clean for sentence in block))


def _together(before: Sentence, after: Sentence) -> bool:
    if after.kind in ("code", "item"):
        return before.kind == after.kind
    if after.kind in ("table", "rule"):
        return before.kind in ("table", "rule")
    return before.paragraph == after.paragraph


def _announcing(heading: Sentence) -> str:
    text = heading.clean.strip("#*= ")
    return text if text.endswith(("?", ":", "：")) else f"{text}:"


def _code(text: str, lines: Sequence[Sentence]) -> str:
    start = text.rfind("\n", 0, lines[0].start) + 1
    code = textwrap.dedent(text[start : lines[-1].end]).split("\n")
    opened = _LANGUAGE.search(code[0]) if open_fence("", code[0]) else None
    inner = code[1 if opened else 0 : -1 if len(code) > 1 and open_fence("", code[-1]) else None]
    longest = max((len(run) for line in inner for run in re.findall("`+", line)), default=0)
    fence = "`" * max(3, longest + 1)
    return "\n".join([f"{fence}{opened[1] if opened else ''}", *inner, fence])


def _table(rows: Sequence[Sentence]) -> Iterator[str]:
    cells = [_cells(row.text) for row in rows if row.kind == "table"]
    if not cells:
        return
    columns = max(map(len, cells))
    lines = [f"| {' | '.join([*row, *[''] * (columns - len(row))])} |" for row in cells]
    yield "\n".join([lines[0], f"|{'---|' * columns}", *lines[1:]])


def _cells(row: str) -> list[str]:
    return [_plain(" ".join(cell.split())) for cell in _CELLS.split(row.strip().strip("|"))]


def _list(text: str, sentences: Sequence[Sentence]) -> str:
    items: dict[int, list[Sentence]] = {}
    for sentence in sentences:
        items.setdefault(sentence.paragraph, []).append(sentence)
    lines = []
    for item in items.values():
        start = item[0].start
        indent = start - text.rfind("\n", 0, start) - 1
        ordered = _ORDERED.match(item[0].text)
        marker = f"- {ordered[1]}." if ordered else "-"
        lines.append(f"{' ' * indent}{marker} {_plain(' '.join(sentence.clean for sentence in item))}")
    return textwrap.dedent("\n".join(lines))


def _plain(text: str) -> str:
    return _STRONG.sub(r"\1", text)

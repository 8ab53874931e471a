"""Fenced code in Markdown: where it stands, what is in it, and a text's sentences with each fence as one of them.

`blocks.py` makes a sentence of every line of code. Who writes or checks a report needs the code as a whole.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from fathom.text.blocks import open_fence
from fathom.text.sentences import Sentence, split_sentences


class Fence(NamedTuple):
    """A fenced block: `text[start:end]`, from the first mark of its opening fence to the last of its closing one."""

    start: int
    end: int
    info: str  # what stands behind the opening fence: the language
    code: str  # the lines between, without the indentation of the fence
    closed: bool  # else it ends with the text


def fences(text: str) -> Iterator[Fence]:
    """Yield the fenced blocks of a text in order, as `open_fence` finds them."""
    fence = ""
    start = position = 0
    opening, lines = "", list[str]()
    for line in text.split("\n"):
        before, fence = fence, open_fence(fence, line)
        if fence and not before:
            marks = fence.lstrip(" \t>")
            mark = line.index(marks)
            start, opening, lines = position + mark, line[mark + len(marks) :], []
        elif fence:
            lines.append(line.removeprefix(fence.removesuffix(marks)))
        elif before:
            end = position + len(line.rstrip())
            yield Fence(start, end, opening.strip(), "\n".join(lines), closed=True)
        position += len(line) + 1
    if fence:
        code = "\n".join(lines).removesuffix("\n")
        yield Fence(start, len(text.rstrip()), opening.strip(), code, closed=False)


def fenced_code(text: str) -> str:
    """Return the code of a text that is one fenced block; empty if it is none."""
    fence = next(fences(text), None)
    return fence.code if fence and fence.start == 0 and fence.end == len(text.rstrip()) else ""


def split_markdown(text: str) -> list[Sentence]:
    """Return the sentences of a Markdown text, each fenced block as one of kind `code`."""
    found: list[Sentence] = []
    position = 0
    for fence in fences(text):
        found += _sentences(text, position, fence.start, found)
        found.append(Sentence(text[fence.start : fence.end], fence.start, fence.end, "code", _next(found)))
        position = fence.end
    return found + _sentences(text, position, len(text), found)


def _sentences(text: str, start: int, end: int, before: list[Sentence]) -> list[Sentence]:
    first = _next(before)
    return [
        s._replace(start=start + s.start, end=start + s.end, paragraph=first + s.paragraph)
        for s in split_sentences(text[start:end])
    ]


def _next(found: list[Sentence]) -> int:
    return found[-1].paragraph + 1 if found else 0

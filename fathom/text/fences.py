"""Fenced code in Markdown: where it stands, what is in it, and a text's sentences with each fence as one of them.

`blocks.py` makes a sentence of every line of code. Who writes or checks a report needs the code as a whole.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from fathom.text.sentences import Sentence, split_sentences

_OPEN = re.compile(r"^([ \t]*)(`{3,}|~{3,})[ \t]*([^`\n]*)$", re.MULTILINE)
_CLOSE = re.compile(r"^[ \t]*(`{3,}|~{3,})[ \t]*$", re.MULTILINE)


class Fence(NamedTuple):
    """A fenced block: `text[start:end]`, from the first mark of its opening fence to the last of its closing one."""

    start: int
    end: int
    info: str  # what stands behind the opening fence: the language
    code: str  # the lines between, without the indentation of the fence
    closed: bool  # else it ends with the text


def fences(text: str) -> Iterator[Fence]:
    """Yield the fenced blocks of a text in order, as CommonMark finds them, but however far they are indented."""
    position = 0
    while opening := _OPEN.search(text, position):
        indent, marker, info = opening.groups()
        closing = next((c for c in _CLOSE.finditer(text, opening.end()) if c[1].startswith(marker)), None)
        body = text[opening.end() + 1 : closing.start() if closing else len(text)]
        lines = [line.removeprefix(indent) for line in body.removesuffix("\n").split("\n")]
        position = closing.end() if closing else len(text)
        end = len(text[:position].rstrip())
        yield Fence(opening.start(2), end, info.strip(), "\n".join(lines), closed=bool(closing))


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

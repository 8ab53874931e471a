"""A document after reading: a title and sections. And how the sections of plain text are found."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from fathom.text.blocks import open_fence

MAX_HEADING_CHARS = 160
_ATX = re.compile(r" {0,3}(#{1,6})[ \t]+(\S.*?)[ \t#]*\Z")
_UNDERLINE = re.compile(r"([=\-~^*#\"'`+.:_])\1{2,}\s*\Z")


@dataclass(frozen=True)
class Section:
    """The part of a document under one heading, or one page of it."""

    text: str  # without the heading
    heading: str = ""  # empty before the first heading and on pages
    level: int = 0  # depth of the heading, from 1
    page: int = 0  # counted from 1; 0 where there are no pages


@dataclass(frozen=True)
class ReadDocument:
    """A document's title, empty where it names none, and its sections in reading order."""

    title: str
    sections: list[Section]
    date: str = ""  # when it was written or changed: YYYY-MM-DD, YYYY-MM, or empty if it does not say
    fields: dict[str, str] = field(default_factory=dict)  # what its header says of it, in order: Status, Author


_Heading = tuple[int, int, str, int]  # its line, level, text, and the lines it takes


def markdown_sections(text: str) -> list[Section]:
    """Split Markdown at its headings, `# ...` and underlined ones; code blocks have none."""
    return _split(text, _markdown_headings)


def underlined_sections(text: str) -> list[Section]:
    """Split reST and plain text at lines that are fully underlined, with or without a line above.

    As in reST, each kind of line is a level; levels are numbered in the order in which they first appear.
    """
    return _split(text, _underlined_headings)


def _split(text: str, find_headings: Callable[[list[str]], Iterator[_Heading]]) -> list[Section]:
    lines, sections = text.split("\n"), list[Section]()
    start, heading, level = 0, "", 0
    for at, next_level, next_heading, taken in find_headings(lines):
        sections.append(Section(_joined(lines[start:at]), heading, level))
        start, heading, level = at + taken, next_heading, next_level
    sections.append(Section(_joined(lines[start:]), heading, level))
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

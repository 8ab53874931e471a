"""What a passage needs to be understood: what of a text stays whole, and what is shown beside a part of it.

A row needs its table's header, code its fences, both their lead-in, and every passage the title of its text.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from fathom.text.blocks import Kind
from fathom.text.sentences import Sentence

MAX_INDENT = 40
FENCES = ("```", "~~~")
_LONGEST = 1_000  # characters of a header, lead-in or front matter that is shown again
_TABLE = ("table", "rule")
_HEADER_LINES = 4  # of a table: the row that names the columns, the rules above and below it, and the first row
_HEADINGS = 3  # in a row, of one run at most
_OPENING = 60  # sentences of front matter at most
_FIELD = re.compile(r":?[^\W\d_][\w -]{0,40}:(?:\s|\Z)")  # `Name: value` or `:Name: value`


def units_of(text: str, sentences: Sequence[Sentence]) -> list[range]:
    """Return, in order, the runs of sentences of a text that a cut would spoil, as ranges of their numbers.

    These are a row, the header of a table with its first row, a fence with its code, lines of code without a blank one
    between them, and an item of a list with what is indented below it. A heading is of one run with what follows,
    but of many in a row, as menus have them, only a few are. Any other sentence is a run of its own.
    """
    firsts: list[int] = []
    fence = ""  # the open one
    item: int | None = None  # how far the last item is indented
    top = 0  # the first sentence of the last table, its rules included
    for number, sentence in enumerate(sentences):
        before = sentences[number - 1] if number else None
        marker = sentence.text[:3] if sentence.kind == "code" and sentence.text.startswith(FENCES) else ""
        below = False
        if not fence and (item is not None or sentence.kind == "item"):
            indent = _indent(text, sentence.start)
            below = item is not None and sentence.kind != "item" and indent is not None and indent > item
            if not (below or (before and before.paragraph == sentence.paragraph)):
                item = indent if sentence.kind == "item" else None
        if not (before and before.kind in _TABLE):
            top = number
        headed = before and before.kind == "heading" and (sentence.kind != "heading" or number - firsts[-1] < _HEADINGS)
        together = fence or below or headed
        if not (before and (together or _go_on(text, before, sentence, marker, number - top))):
            firsts.append(number)
        if marker and fence in ("", marker):
            fence = "" if fence else marker
    return [range(first, end) for first, end in zip(firsts, [*firsts[1:], len(sentences)], strict=True)]


def _go_on(text: str, before: Sentence, sentence: Sentence, marker: str, row: int) -> bool:
    """Whether a sentence outside of fences is of one run with the one before; `row`: its place in its table."""
    if sentence.kind == "code":
        return before.kind == "code" and not marker and text.count("\n", before.end, sentence.start) == 1
    if sentence.paragraph == before.paragraph:
        return sentence.kind != "prose"
    if sentence.kind == "rule":
        return before.kind == "table"
    return sentence.kind == "table" and before.kind == "rule" and row < _HEADER_LINES


def _indent(text: str, start: int) -> int | None:
    """Return how many characters of white space are before the first sentence of a line; None: it is not the first."""
    line = text.rfind("\n", max(0, start - MAX_INDENT - 1), start) + 1
    return start - line if (line or start <= MAX_INDENT) and not text[line:start].strip() else None


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


def companions_of(sentences: Sequence[Sentence]) -> list[tuple[int, ...]]:
    """Return, for each sentence of a text, the numbers of those that must be shown with it.

    For a row of a table: the row that names the columns, and the rule below it. For an item of a list: the sentence
    before the list, if it ends in a colon. For a line of code: the sentence before the code, and its fences.
    """
    found: list[tuple[int, ...]] = []
    needed: tuple[int, ...] = ()
    fence: tuple[str, int] | None = None  # the open one, and its number
    before: Kind | None = None
    for number, sentence in enumerate(sentences):
        kind = sentence.kind
        if kind == "table":
            ruled = number + 1 < len(sentences) and sentences[number + 1].kind == "rule"
            needed = (number, number + 1) if ruled else needed if before in ("table", "rule") else ()
        elif kind in ("item", "code") and before != kind and not fence:
            needed = _lead_in(sentences, number) if before in ("prose", "item") else ()
        elif kind not in ("item", "code", "rule"):
            needed = ()
        if kind == "code" and sentence.text.startswith(FENCES):
            if fence is None:
                fence = (sentence.text[:3], number)
                needed = (*needed, number)
            elif sentence.text.startswith(fence[0]):
                found[fence[1]] = (*found[fence[1]], number)
                for inside in range(fence[1] + 1, number):
                    found[inside] = (*found[inside], number)
                fence = None
        found.append(tuple(n for n in needed if n != number and len(sentences[n].text) <= _LONGEST))
        before = kind
    return found


def _lead_in(sentences: Sequence[Sentence], number: int) -> tuple[int, ...]:
    """Return the number of the sentence before a block, if it leads to it."""
    lead = sentences[number - 1]
    leads = lead.kind in ("prose", "item") and (sentences[number].kind == "code" or lead.text.endswith((":", "：")))
    return (number - 1,) if leads else ()

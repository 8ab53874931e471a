"""How much of each found document is returned: whole if it is of ordinary length, or its best passages.

Passages end where what stands together ends (`fathom.retrieval.together`); where that was too long for one passage, the
others of it come along as far as there is room, and else what they need is said again.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from itertools import zip_longest

from fathom.retrieval.narrowing import GAP
from fathom.text.tokens import count_tokens
from fathom.tools.documents.index import Passage

WHOLE_TOKENS = 6_000  # up to which a document is of ordinary length; of a longer one this much is returned
OUTPUT_TOKENS = 24_000  # of all documents that one search returns
LEAST_TOKENS = 1_500  # for each document, if so many fit in an output


def rooms(texts: Sequence[str]) -> list[int | None]:
    """Return how many tokens of each text to return, the best text first; None for one that is returned whole."""
    least = min(LEAST_TOKENS, OUTPUT_TOKENS // max(1, len(texts)))
    sizes = [count_tokens(text) for text in texts]
    left = OUTPUT_TOKENS
    found: list[int | None] = []
    for number, size in enumerate(sizes):
        kept = sum(min(least, later) for later in sizes[number + 1 :])
        room = min(WHOLE_TOKENS, left - kept)
        found.append(None if size <= room else room)
        left -= min(size, room)
    return found


def excerpt(text: str, passages: Sequence[Passage], best: Sequence[int], max_tokens: int) -> str:
    """Return the best passages with their neighbours, in reading order, in about so many tokens.

    `best` are the numbers of passages, the best first. A heading is shown with something below it or not at all.
    """
    chosen: set[int] = set()
    left = max_tokens
    costs = [count_tokens(text[passage.start : passage.stop]) for passage in passages]
    groups = _together(passages, costs, max_tokens)
    for at in dict.fromkeys(best):
        own = groups[at]
        beside = (groups[number] for number in (own.stop, own.start - 1) if 0 <= number < len(passages))
        for wanted in (own, range(at, at + 1), *beside):
            more = [number for number in wanted if number not in chosen]
            cost = sum(costs[number] for number in more)
            if cost <= left:
                chosen.update(more)
                left -= cost
    return GAP.join(_stretches(text, passages, _with_content(text, passages, chosen) or sorted(chosen)))


def _together(passages: Sequence[Passage], costs: Sequence[int], max_tokens: int) -> list[range]:
    """Return for each passage those that stand together with it; it alone, if they have more than `max_tokens`."""
    found: list[range] = []
    while (start := len(found)) < len(passages):
        stop = start + 1
        while stop < len(passages) and passages[stop].opening:
            stop += 1
        run = range(start, stop)
        fits = sum(costs[start:stop]) <= max_tokens
        found += [run if fits else range(number, number + 1) for number in run]
    return found


def _with_content(text: str, passages: Sequence[Passage], chosen: Collection[int]) -> list[int]:
    """Return the chosen passages in reading order, without headings that have nothing below them."""
    kept: list[int] = []
    for number in sorted(chosen, reverse=True):
        below = number + 1 in kept[-1:] and passages[number + 1].opening
        if below or _line(text, passages[number]) != text[passages[number].start : passages[number].stop]:
            kept.append(number)
    return kept[::-1]


def _line(text: str, passage: Passage) -> str:
    """Return the line of the heading that a passage begins with; empty if it begins below its heading."""
    line = text[passage.start : passage.stop].split("\n", 1)[0]
    return line if passage.heading and line.lstrip("#").strip() == passage.heading else ""


def _stretches(text: str, passages: Sequence[Passage], chosen: Sequence[int]) -> Iterator[str]:
    """Yield the runs of chosen passages, each below its heading and with what it needs of those left out."""
    shown: set[int] = set()  # passages that begin with a heading that was shown
    for first, last in _runs(chosen):
        above = first
        while above and passages[above].heading and not _line(text, passages[above]):
            above -= 1
        if above < first and above not in shown and (line := _line(text, passages[above])):
            yield line
        shown.update((above, *range(first, last + 1)))
        yield passages[first].opening + text[passages[first].start : passages[last].stop] + passages[last].closing


def _runs(numbers: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield the first and last of the numbers that follow each other."""
    first = None
    for number, after in zip_longest(numbers, numbers[1:]):
        first = number if first is None else first
        if after != number + 1:
            yield first, number
            first = None

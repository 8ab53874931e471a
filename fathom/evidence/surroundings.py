"""What stands around a quote in its source: the text before and after it, and the headings above it."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from typing import NamedTuple

from fathom.evidence.passages import Passage
from fathom.models import Quote
from fathom.text.citations import without_addresses
from fathom.text.parsed import ParsedText, Unit, parse, units_of

CONTEXT_CHARS = 240  # of the text on each side of a quote
HEADING_CHARS = 120
HEADINGS = 4  # the lowest ones
_EDGE = re.compile(r"\A\s+|\s+\Z")
_CUT_START, _CUT_END = re.compile(r"\A\S{1,30}\s"), re.compile(r"\s\S{1,30}\Z")  # a word that may be cut


class _Read(NamedTuple):
    """A text's sentences and units, with the numbers of the sentences that the units begin with."""

    parsed: ParsedText
    units: Sequence[Unit]
    firsts: Sequence[int]


class Surroundings:
    """Makes quotes of passages; each text is read once."""

    def __init__(self) -> None:
        self._read: dict[str, _Read] = {}

    def quote(self, passage: Passage) -> Quote:
        """Return a passage as a quote, with what stands around it below the same heading."""
        text, read = passage.text.text, self._reading(passage.text.text)
        held = read.parsed.holding(passage.start, passage.end)
        around = {
            # What nobody cited shall lead a reader nowhere.
            "before": without_addresses(self._before(text, read.parsed, held[0], passage.start)),
            "after": without_addresses(self._after(text, read.parsed, held[-1], passage.end)),
            "headings": _headings(read, held[0]),
        }
        return passage.text.quote(passage.start, passage.end).model_copy(update=around)

    def _reading(self, text: str) -> _Read:
        if text not in self._read:
            parsed = parse(text)
            units = units_of(parsed, text)
            self._read[text] = _Read(parsed, units, [unit.own.start for unit in units])
        return self._read[text]

    @staticmethod
    def _before(text: str, parsed: ParsedText, first: int, start: int) -> str:
        begin = parsed.sentence(first).start
        for number in range(first - 1, -1, -1):
            sentence = parsed.sentence(number)
            if sentence.kind == "heading" or start - sentence.start > CONTEXT_CHARS:
                break
            begin = sentence.start
        part = text[max(begin, start - CONTEXT_CHARS) : start]
        return _EDGE.sub(" ", _CUT_START.sub("", part) if start - begin > CONTEXT_CHARS else part)

    @staticmethod
    def _after(text: str, parsed: ParsedText, last: int, end: int) -> str:
        stop = max(end, parsed.sentence(last).end)
        for number in range(last + 1, len(parsed)):
            sentence = parsed.sentence(number)
            if sentence.kind == "heading" or sentence.end - end > CONTEXT_CHARS:
                break
            stop = sentence.end
        part = text[end : min(stop, end + CONTEXT_CHARS)]
        return _EDGE.sub(" ", _CUT_END.sub("", part) if stop - end > CONTEXT_CHARS else part)


def _headings(read: _Read, sentence: int) -> list[str]:
    if not read.units:
        return []
    unit = read.units[max(0, bisect_right(read.firsts, sentence) - 1)]
    lines = (read.parsed.sentence(number).clean.strip("# ").strip() for number in unit.headings[-HEADINGS:])
    return [line[:HEADING_CHARS] for line in lines if line]

"""Searching the raw outputs that this run has stored, and reading one of them again."""

from __future__ import annotations

import asyncio
import math
import re
import time
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple, Self

from fathom.errors import ToolRejected
from fathom.models import SourceText, ToolOutput
from fathom.retrieval.chunking import GAP, parts_of
from fathom.tools.base import ArtifactReader, RunContext, Tool

if TYPE_CHECKING:
    import regex

MAX_PATTERN_CHARS = 500
MAX_REPEATS = 10_000  # a{99}{99}{99} would compile to a million nodes
MAX_PASSAGES = 20
AROUND = 400  # characters of context on each side of a match
LONGEST_PASSAGE = 2_000
MAX_MATCHES = 10_000  # in one text
SEARCH_SECONDS = 5.0  # maximum processor time for one text; after as much wall-clock time no other text is begun
_OWN_OUTPUT = re.compile(r"__artifact_(grep|read)(__\d+)?\.\w+\Z")
_RECURSION = re.compile(r"\(\?(?:R|[-+]?\d|&|P>)")  # its memory grows faster than any time limit helps
_META = re.compile(r"[\\^$.|?*+()\[\]{}]")


class _ArtifactTool(Tool):
    def __init__(self, artifacts: ArtifactReader) -> None:
        self._artifacts = artifacts

    @classmethod
    def open(cls, run: RunContext) -> Self:
        return cls(run.artifacts)


class ArtifactGrepTool(_ArtifactTool):
    """Searches the texts of this run's stored raw outputs."""

    name = "artifact_grep"
    description = (
        "Searches everything this run has already read, word for word. Input: a regular expression, or plain words. "
        "Use it only when a note lacks a detail that its source may hold."
    )

    async def run(self, tool_input: str) -> ToolOutput:
        """Return the passages around the matches, at most 20, as one text for each source."""
        pattern = tool_input.strip()
        if not pattern or len(pattern) > MAX_PATTERN_CHARS:
            raise ToolRejected(f"A pattern has 1 to {MAX_PATTERN_CHARS} characters; this one has {len(pattern)}.")
        if _RECURSION.search(pattern) or _repeats(pattern) > MAX_REPEATS:
            raise ToolRejected("The regular expression recurs or repeats too much.", next_step="use a simpler one")
        names = [name for name in await self._artifacts.list() if not _OWN_OUTPUT.search(name)]
        texts = [text for name in names for text in (await self._artifacts.read(name)).results]
        return ToolOutput(results=await asyncio.to_thread(_grep, pattern, texts))


class ArtifactReadTool(_ArtifactTool):
    """Reads one stored raw output, or one source of it."""

    name = "artifact_read"
    description = (
        "Reads what a note was made from again, all of it unless it is very long. Input: the note's artifact_file, or "
        "artifact_file#SOURCE_ID for one of its sources. Use it only when the note lacks a detail."
    )

    async def run(self, tool_input: str) -> ToolOutput:
        """Return the texts of the file; a single one is stored as plain text."""
        name, _, source_id = tool_input.strip().partition("#")
        # Only a name that the run itself lists is ever opened, so none can lead out of its folder.
        if name not in await self._artifacts.list():
            raise ToolRejected(f"This run has no artifact {name[:200]!r}.", next_step="use a note's artifact_file")
        texts = (await self._artifacts.read(name)).results
        chosen = [text for text in texts if not source_id or text.source_id == source_id]
        if not chosen:
            known = ", ".join(text.source_id for text in texts) or "none"
            raise ToolRejected(f"{name} has no source {source_id[:80]!r}.", next_step=f"its sources: {known}")
        return ToolOutput(results=chosen, structured=len(chosen) > 1)


class _Passage(NamedTuple):
    source: SourceText
    start: int
    end: int
    found: frozenset[str]  # what matched, lowercase
    opening: str = ""  # the earlier lines that its first line needs
    closing: str = ""

    @property
    def text(self) -> str:
        return f"{self.opening}{self.source.text[self.start : self.end].rstrip()}{self.closing}".strip()


def _repeats(pattern: str) -> int:
    """Return the number of repeats of a pattern if all of its counted repeats are nested."""
    counts = ([int(n) for n in re.findall(r"\d+", braces)] for braces in re.findall(r"\{[^{}]*\}", pattern))
    return math.prod(max(1, *numbers) for numbers in counts if numbers)


def _grep(pattern: str, texts: Sequence[SourceText]) -> list[SourceText]:
    expression, by_words = _expression(pattern)
    once = {(text.source_id, text.text): text for text in texts}  # a page is often read by several calls
    deadline = time.monotonic() + SEARCH_SECONDS
    passages: dict[tuple[str, str], _Passage] = {}
    for text in once.values():
        for passage in _passages(expression, text, deadline):
            passages.setdefault((text.source_id, passage.text), passage)
    ranked = sorted(passages.values(), key=lambda p: -len(p.found)) if by_words else list(passages.values())
    chosen: dict[str, list[_Passage]] = {}
    for passage in ranked[:MAX_PASSAGES]:
        chosen.setdefault(passage.source.source_id, []).append(passage)
    shown = [(found[0].source, GAP.join(passage.text for passage in found)) for found in chosen.values()]
    return [source.model_copy(update={"text": text, "snippet": "", "score": 0.0}) for source, text in shown]


def _expression(pattern: str) -> tuple[regex.Pattern[str], bool]:
    """Compile a pattern; plain words, and an invalid regular expression, match any of their words.

    Unlike `re`, the `regex` module can stop a search that takes too long.
    """
    import regex

    if _META.search(pattern):
        try:
            return regex.compile(pattern, regex.IGNORECASE), False
        except regex.error:
            pass
    words = dict.fromkeys(re.findall(r"\w+", pattern)) or [pattern]
    return regex.compile("|".join(regex.escape(word) for word in words), regex.IGNORECASE), True


def _passages(expression: regex.Pattern[str], source: SourceText, deadline: float) -> list[_Passage]:
    """Return the text around each match; stretches that touch are joined up to a length."""
    text, seconds = source.text, deadline - time.monotonic()
    try:
        if seconds <= 0:
            raise TimeoutError
        found_any = expression.finditer(text, timeout=seconds, concurrent=True)
        matches = [match for match in islice(found_any, MAX_MATCHES) if match[0]]
    except TimeoutError as error:
        raise ToolRejected("The regular expression takes too long.", next_step="use a simpler one") from error
    if not matches:
        return []
    borders = _Borders(text)
    found: list[_Passage] = []
    for match in matches:
        start = borders.start(match.start())
        end = borders.end(min(match.end(), match.start() + AROUND))
        words = frozenset({match[0][:AROUND].lower()})
        last = found[-1] if found else _Passage(source, 0, -1, words)
        if start <= last.end and end - last.start <= LONGEST_PASSAGE:
            found[-1] = last._replace(end=max(end, last.end), found=last.found | words)
        elif end > last.end:
            found.append(_Passage(source, max(start, last.end), end, words))
    return [borders.completed(passage) for passage in found]


class _Borders:
    """The places where a passage of a text may begin and end: at its blocks, if these are near, else between words."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._parts = parts_of(text)
        self._starts = [part.start for part in self._parts]
        self._stops = [part.stop for part in self._parts]

    def start(self, match: int) -> int:
        """Return the start of a passage around a match: at the first block near it, or at its own block."""
        first = bisect_left(self._starts, match - AROUND)
        own = bisect_right(self._starts, match) - 1
        place = self._starts[min(first, own)] if own >= 0 else 0
        return place if match - place <= 2 * AROUND else _back(self._text, match - AROUND)

    def end(self, match: int) -> int:
        """Return the end of a passage around a match: at the end of the last block near it, or of its own block."""
        last = bisect_right(self._stops, match + AROUND) - 1
        own = bisect_left(self._stops, match)
        place = self._stops[max(last, own)] if own < len(self._stops) else len(self._text)
        return place if place - match <= 2 * AROUND else _on(self._text, match + AROUND)

    def completed(self, passage: _Passage) -> _Passage:
        """Return a passage with the lines that its first and last lines need: a lead-in, a header, the fences."""
        first, after = bisect_left(self._starts, passage.start), bisect_left(self._starts, passage.end)
        begins = first < len(self._starts) and self._starts[first] == passage.start
        return passage._replace(
            opening=self._parts[first].opening if begins else "",
            closing=self._parts[after].closing if after < len(self._parts) else "",
        )


def _back(text: str, position: int) -> int:
    """Return the start of the word at a position, at most 40 characters back: a text may have no spaces."""
    space = re.search(r"\s\S*\Z", text[max(0, position - 40) : max(0, position)])
    return max(0, position - 40) + space.start() if space else max(0, position)


def _on(text: str, position: int) -> int:
    """Return the end of the word at a position, at most 40 characters on."""
    space = re.compile(r"\s").search(text, position, position + 40)
    return space.start() if space else min(len(text), position)

"""The tools that search what earlier runs have read: the run that this one follows up on, and the library.

Their results are the original pages and documents, as the earlier runs stored them. They are stored with the new run,
so each of its claims leads to bytes of its own, even if the earlier run is gone.
"""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from collections.abc import Sequence
from typing import Self

from fathom.errors import StoreError, ToolRejected, ToolUnavailable
from fathom.evidence.stored import StoredText
from fathom.models import Holdings, ToolOutput
from fathom.retrieval.identifiers import borne_by, naming
from fathom.retrieval.ranking import titled
from fathom.retrieval.relevance import best_places
from fathom.sources.domains import admitted
from fathom.tools.base import RunContext, Tool

NEAR = 0.4  # of the score of the closest text, which another must have: a model reads each again for what is new


class _StoredTextsTool(Tool):
    fetchable = True

    def __init__(self, run: RunContext) -> None:
        self._run = run

    @classmethod
    def open(cls, run: RunContext) -> Self:
        """Search what earlier runs have stored."""
        return cls(run)

    @abstractmethod
    async def _texts(self, query: str) -> Sequence[StoredText]:
        """Return the texts among which the closest to a query are looked for."""

    async def run(self, tool_input: str) -> ToolOutput:
        """Return the texts closest to the query, as earlier runs have stored them."""
        settings = self._run.settings
        texts = [text for text in await self._texts(tool_input) if admitted(text.source, settings.sources)]
        return await asyncio.to_thread(closest, tool_input, texts, settings.max_results)


class EarlierRunTool(_StoredTextsTool):
    """Searches the texts that the earlier run of a follow-up has read."""

    name = "earlier_run"
    description = (
        "Searches all that was read for the earlier report. Input: one search query of a few specific words. Each step "
        "begins with it; ask it again only in other words."
    )
    of_follow_ups = True

    async def _texts(self, query: str) -> Sequence[StoredText]:
        if not self._run.earlier:
            raise ToolRejected("This run follows up on no other.", next_step="fathom ask RUN QUESTION")
        return await self._run.earlier.texts()


class LibraryTool(_StoredTextsTool):
    """Searches the sources of the earlier runs that the asker may read."""

    name = setting = "library"
    description = (
        "Searches the pages and documents that earlier runs have read, as they were then. Input: one search query of a "
        "few specific words."
    )
    searches = True

    async def _texts(self, query: str) -> Sequence[StoredText]:
        library = self._run.library
        if not (library and library.texts):
            raise ToolRejected("The library cannot be searched here.", next_step="run it again with --library")
        try:
            return await library.texts(query, self._run.settings.max_results)
        except StoreError as error:
            raise ToolUnavailable(error.message, next_step=error.next_step) from error

    async def holdings(self, words: Sequence[str]) -> Holdings:
        """Return the place of its search."""
        return Holdings(tool=self.name, where=["earlier runs"])


def closest(query: str, texts: Sequence[StoredText], most: int) -> ToolOutput:
    """Return the texts closest to a query, one of each source, with the time at which the oldest was read."""
    places = best_places(query, [titled(text.source_text()) for text in texts])
    sources = [text.source for text in texts]
    named = naming(query, ((s.source_id, borne) for s in sources for borne in borne_by(s.title, s.url)))
    worth = {
        number: (named.get(source.source_id, 0), places[number][0].score if number in places else 0.0)
        for number, source in enumerate(sources)
        if number in places or source.source_id in named
    }
    least = NEAR * max((score for _, score in worth.values()), default=0.0)
    best: dict[str, StoredText] = {}
    for number in sorted(worth, key=lambda number: worth[number], reverse=True):
        by_name, score = worth[number]
        if by_name or score >= least:
            best.setdefault(texts[number].source.source_id, texts[number])
    chosen = list(best.values())[:most]
    oldest = min((text.retrieved for text in chosen if text.retrieved), default="")
    return ToolOutput(results=[text.source_text() for text in chosen], retrieved=oldest)

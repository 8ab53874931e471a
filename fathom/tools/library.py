"""The tool that searches what earlier runs have read.

Its results are the original pages and documents, as the earlier runs stored them. They are stored with the new run, so
each of its claims leads to bytes of its own, even if the earlier run is gone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Self

from fathom.config.groups import SourceRules
from fathom.errors import StoreError, ToolRejected, ToolUnavailable
from fathom.models import Holdings, ToolOutput
from fathom.sources.domains import admitted
from fathom.tools.base import RunContext, Tool
from fathom.tools.earlier import EarlierRuns
from fathom.tools.earlier_run import closest


class LibraryTool(Tool):
    """Searches the sources of the earlier runs that the asker may read."""

    name = setting = "library"
    description = (
        "Searches the pages and documents that earlier runs have read, as they were then. Input: one search query of a "
        "few specific words."
    )
    searches = fetchable = True

    def __init__(self, library: EarlierRuns | None, max_results: int, rules: SourceRules) -> None:
        self._library = library
        self._max_results = max_results
        self._rules = rules

    @classmethod
    def open(cls, run: RunContext) -> Self:
        """Search the earlier runs that whoever asked this one may read."""
        return cls(run.library, run.settings.max_results, run.settings.sources)

    async def run(self, tool_input: str) -> ToolOutput:
        """Return the closest sources, as the newest run that read each has stored them."""
        if not (self._library and self._library.texts):
            raise ToolRejected("The library cannot be searched here.", next_step="run it again with --library")
        try:
            found = await self._library.texts(tool_input, self._max_results)
        except StoreError as error:
            raise ToolUnavailable(error.message, next_step=error.next_step) from error
        texts = [text for text in found if admitted(text.source, self._rules)]
        return await asyncio.to_thread(closest, tool_input, texts, self._max_results)

    async def holdings(self, words: Sequence[str]) -> Holdings:
        """Return the place of its search."""
        return Holdings(tool=self.name, where=["earlier runs"])

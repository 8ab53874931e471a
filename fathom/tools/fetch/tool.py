"""The `fetch` tool: which page a call means."""

from __future__ import annotations

import re
from collections.abc import Sequence

from fathom.errors import ToolRejected
from fathom.models import ToolCall, ToolOutput, ToolResult
from fathom.text.urls import canonical_url, source_ids, urls_in
from fathom.tools.artifacts import ArtifactReader
from fathom.tools.fetch.web import WebReader
from fathom.tools.search.vendors import is_page, output

_SOURCE_ID = re.compile(r"\[?(S[0-9a-f]{6,64})\]?")
_SEARCH = re.compile(r"__web_search(__\d+)?\.json\Z")


class FetchTool:
    """Reads one page that a search of this run returned or that the question names.

    Args:
        artifacts: the run's raw outputs, which tell what its searches returned.
        query: the run's question.
        reader: the way to pages.
    """

    name = "fetch"
    description = (
        "Reads one web page in full. Input: the id of a source from the notes, such as S1a2b3c, or a URL that the "
        "question names. Use it when a note lacks what its page may hold; no other addresses are read."
    )

    def __init__(self, artifacts: ArtifactReader, query: str, reader: WebReader) -> None:
        self._artifacts = artifacts
        self._named = urls_in(query)
        self._reader = reader

    async def run(self, tool_input: str) -> ToolOutput:
        """Read the page.

        Raises:
            ToolRejected: no page this run knows, or one that cannot be read however often it is asked for.
            ToolError: the page failed to arrive.
        """
        return output([await self._reader.page(await self._known(tool_input))])

    def follow_up(self, results: Sequence[ToolResult]) -> ToolCall | None:
        """Return None: the whole page was read."""
        return None

    async def _known(self, tool_input: str) -> str:
        """Return the address that the input stands for, as the search or the user spelled it.

        A model's own spelling is never used: what it adds to an address could carry something out.
        """
        wanted = tool_input.strip().strip("<>\"'")
        known: dict[str, str] = {}
        for url in self._named:
            known.setdefault(canonical_url(url), url)
        known.update({source_id: url for url, source_id in source_ids(known.values()).items()})
        for name in await self._artifacts.list():
            if _SEARCH.search(name):
                for source in (await self._artifacts.read(name)).results:
                    known.setdefault(source.source_id, source.url)
                    known.setdefault(canonical_url(source.url), source.url)
        source_id = _SOURCE_ID.fullmatch(wanted)
        key = source_id[1] if source_id else canonical_url(wanted) if is_page(wanted) else ""
        if key not in known:
            raise ToolRejected(
                "fetch reads pages that a search of this run returned or that the question names, no others.",
                next_step="use the id of a source from the notes",
            )
        return known[key]

"""Reading web pages in full, by one vendor after another. The pipeline calls it after a search; no model does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

from fathom.config.groups import AccessScope
from fathom.errors import BudgetExceeded, FathomError, ToolError, ToolRejected
from fathom.models import ToolFailure, ToolOutput
from fathom.network import turn
from fathom.text.urls import canonical_url
from fathom.tools.base import PageReader, RunContext, Tool, UnreadablePages
from fathom.tools.pages import WebPage, is_page, output

MAX_PAGES = 20  # Tavily takes no more in one request


class WebExtractTool(Tool):
    """Reads up to 20 pages; the next reader gets the pages that the one before could not read."""

    name = "web_extract"
    description = "Reads web pages in full. Input: their URLs, separated by spaces."
    network = by_vendors = True
    scope = AccessScope.web
    follows = "web_search"

    def __init__(self, readers: Sequence[PageReader], unreadable: UnreadablePages | None = None) -> None:
        self._readers = readers
        self._unreadable = unreadable or UnreadablePages()

    @classmethod
    def open(cls, run: RunContext) -> Self:
        """Read from the earlier run first, then with the vendors that can read pages, then without one."""
        kept = [run.kept_pages] if run.kept_pages else []
        return cls(
            [*kept, *(vendor for vendor in run.vendors if isinstance(vendor, PageReader)), run.reader], run.unreadable
        )

    async def run(self, tool_input: str) -> ToolOutput:
        """Read the pages; the output's failures name the problem of each page that could not be read."""
        urls = list({canonical_url(url): url for url in tool_input.split() if is_page(url)}.values())[:MAX_PAGES]
        if not urls:
            raise ToolRejected("The input holds no web address.")
        async with self._unreadable.turn(urls):
            return await self._read([url for url in urls if not self._unreadable.why(url)])

    async def _read(self, urls: Sequence[str]) -> ToolOutput:
        read, read_by = dict[str, WebPage](), dict[str, str]()
        failed: list[tuple[str, FathomError]] = []
        down: list[tuple[list[str], FathomError]] = []  # the error of a reader that could read nothing at all
        for reader in self._readers:
            if not (left := [url for url in urls if canonical_url(url) not in read]):
                break
            try:
                async with turn(reader.name.lower()):
                    pages, reasons = await reader.read(left)
            except (ToolError, BudgetExceeded) as error:
                pages, reasons = [], {}
                down.append((left, error))
            failed += reasons.items()
            for page in pages:
                read[canonical_url(page.url)], read_by[canonical_url(page.url)] = page, reader.name
        failures = [
            ToolFailure(code=why.code, message=why.message, replaced_by=by)
            for left, why in down
            for by in dict.fromkeys(read_by.get(canonical_url(url), "") for url in left)
        ]
        last = {canonical_url(url): why for url, why in failed}
        for url, why in failed:
            if by := read_by.get(canonical_url(url)):
                failures.append(ToolFailure(code=why.code, message=why.message, replaced_by=by))
            elif last[canonical_url(url)] is why:
                self._unreadable.add(url, why)
                failures.append(ToolFailure(code=why.code, message=why.message, source=url))
        each_once = {failure.model_dump_json(): failure for failure in failures}
        return output([read[page] for page in map(canonical_url, urls) if page in read], [*each_once.values()])

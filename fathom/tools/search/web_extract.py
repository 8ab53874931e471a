"""Reading web pages in full, by one vendor after another. The pipeline calls it after a search; no model does."""

from __future__ import annotations

from collections.abc import Sequence

from fathom.errors import ToolError, ToolRejected
from fathom.models import ToolCall, ToolFailure, ToolOutput, ToolResult
from fathom.text.urls import canonical_url
from fathom.tools.search.vendors import PageVendor, WebPage, as_failure, is_page, output

MAX_PAGES = 20  # Tavily takes no more in one request


class WebExtractTool:
    """Reads up to 20 pages.

    Args:
        vendors: who is asked, in this order; the next one for the pages that one could not read.
    """

    name = "web_extract"
    description = "Reads web pages in full. Input: their URLs, separated by spaces."

    def __init__(self, vendors: Sequence[PageVendor]) -> None:
        self._vendors = vendors

    async def run(self, tool_input: str) -> ToolOutput:
        """Read the pages; what went wrong with each is named in the output's failures."""
        urls = list({canonical_url(url): url for url in tool_input.split() if is_page(url)}.values())[:MAX_PAGES]
        if not urls:
            raise ToolRejected("No URL of a web page was given.")
        read: dict[str, WebPage] = {}
        readers: dict[str, str] = {}
        failed: list[tuple[str, ToolError]] = []
        for vendor in self._vendors:
            if not (left := [url for url in urls if canonical_url(url) not in read]):
                break
            try:
                pages, reasons = await vendor.read(left)
            except ToolError as error:
                pages, reasons = [], dict.fromkeys(left, error)
            failed += reasons.items()
            for page in pages:
                read[canonical_url(page.url)], readers[canonical_url(page.url)] = page, vendor.name
        failures = [as_failure(error, readers.get(canonical_url(url), "")) for url, error in failed]
        return output([read[page] for page in map(canonical_url, urls) if page in read], _each_once(failures))

    def follow_up(self, results: Sequence[ToolResult]) -> ToolCall | None:
        """Return None: the pages are read."""
        return None


def _each_once(failures: Sequence[ToolFailure]) -> list[ToolFailure]:
    return list({failure.model_dump_json(): failure for failure in failures}.values())

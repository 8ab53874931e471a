"""Reading web pages in full, through Tavily. The pipeline calls it after a search; no model does."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import BaseModel

from fathom.errors import ToolRejected, ToolUnavailable
from fathom.models import SourceText, ToolCall, ToolFailure, ToolOutput, ToolResult
from fathom.sources import canonical_url, source_ids
from fathom.tools.clean import clean_line, clean_text, clean_title
from fathom.tools.retry import retrying
from fathom.tools.tavily_client import is_page, tavily_client

__all__ = ["WebExtractTool"]

MAX_PAGES = 20  # Tavily takes no more in one request


class _Page(BaseModel):
    url: str | None = None
    title: str | None = None
    raw_content: str | None = None


class _Failure(BaseModel):
    url: str | None = None
    error: str | None = None


class _Answer(BaseModel):
    results: list[_Page]
    failed_results: list[_Failure] = []


class WebExtractTool:
    """Reads up to 20 pages."""

    name = "web_extract"
    description = "Reads web pages in full. Input: their URLs, separated by spaces."

    def __init__(self, key: str, url: str | None) -> None:
        self._key = key
        self._url = url

    async def run(self, tool_input: str) -> ToolOutput:
        """Read the pages; those that cannot be read are named in the output's failures."""
        urls = list({canonical_url(url): url for url in tool_input.split() if is_page(url)}.values())[:MAX_PAGES]
        if not urls:
            raise ToolRejected("No URL of a web page was given.")
        answer = await retrying(lambda: self._ask(urls))
        texts = _texts(answer.results)
        read = {canonical_url(text.url) for text in texts}
        reasons = {canonical_url(f.url): clean_line(f.error or "")[:200] for f in answer.failed_results if f.url}
        failures = [
            ToolFailure(code=ToolUnavailable.code, message=f"{url}: {reasons.get(page) or 'no text'}")
            for page, url in ((canonical_url(url), url) for url in urls)
            if page not in read
        ]
        return ToolOutput(results=texts, failures=failures)

    async def _ask(self, urls: list[str]) -> _Answer:
        async with tavily_client(self._key, self._url) as client:
            return _Answer.model_validate(await client.extract(urls, format="markdown"))

    def follow_up(self, results: Sequence[ToolResult]) -> ToolCall | None:
        """Return None: the pages are read."""
        return None


def _texts(pages: Sequence[_Page]) -> list[SourceText]:
    kept: dict[str, tuple[str, _Page, str]] = {}
    for page in pages:
        url, text = clean_line(page.url or ""), clean_text(page.raw_content or "")
        if is_page(url) and text.strip():
            kept.setdefault(canonical_url(url), (url, page, text))
    ids = source_ids(url for url, _, _ in kept.values())
    return [
        SourceText(source_id=ids[url], url=url, title=_title(page, text) or url, kind="web", text=text)
        for url, page, text in kept.values()
    ]


def _title(page: _Page, text: str) -> str:
    """Return the page's title, or its first heading where the vendor gives none."""
    heading = next((line.lstrip("# ") for line in text.splitlines() if line.startswith("# ")), "")
    return clean_title(page.title or heading)

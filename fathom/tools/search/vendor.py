"""What a search vendor is: one file with one class, which declares its variables and searches."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from fathom.errors import ToolError
from fathom.tools.base import Configurable
from fathom.tools.pages import WebPage


class SearchVendor(Configurable):
    """Finds pages through the service at an address."""

    address: str

    @abstractmethod
    async def search(self, query: str, limit: int) -> list[WebPage]:
        """Make one request and return at most `limit` pages; `web_search` tries again and keeps the answers.

        Raises:
            ToolError: the request failed; the class says whether trying again can help.
        """


@runtime_checkable
class PageReader(Protocol):
    """Reads pages in full; a search vendor that has this method is asked by `web_extract`."""

    name: str

    async def read(self, urls: Sequence[str]) -> tuple[list[WebPage], dict[str, ToolError]]:
        """Return the pages that could be read and, by URL, why others could not; trying again is up to it.

        Raises:
            ToolError: it failed for good, for all of them.
        """

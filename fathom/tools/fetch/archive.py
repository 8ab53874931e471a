"""Finding the archived copy of a page that is gone, in the Internet Archive's Wayback Machine.

The archive learns the address of the page, so it is asked only about public addresses: a name under a public suffix,
never a host that the user has allowed as private, and no address with a key in it.
"""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING

from pydantic import AliasPath, Field, ValidationError

from fathom.errors import ToolError, ToolRejected
from fathom.models import Received
from fathom.network import pace_of, turn
from fathom.text.urls import host_of
from fathom.tools.fetch.allow import AllowList
from fathom.tools.fetch.client import Client, follow

if TYPE_CHECKING:
    import httpx

ADDRESS = "https://archive.org"
SECONDS = 10.0
APART = 1.0
_SNAPSHOT = re.compile(r"(https?://[^/]+/web/)(\d{14})(?:id_)?(/.+)")
_SECRET = re.compile(r"[?&][^=&]*(?:key|token|sig|secret|passw|auth|session|credential)[^=&]*=", re.IGNORECASE)


class PageGone(ToolRejected):
    """The page is no longer there (HTTP 404 or 410)."""


class _Availability(Received):
    available: bool = Field(False, validation_alias=AliasPath("archived_snapshots", "closest", "available"))
    status: str = Field("", validation_alias=AliasPath("archived_snapshots", "closest", "status"))
    address: str = Field("", validation_alias=AliasPath("archived_snapshots", "closest", "url"))


class Archive:
    """The Wayback Machine at an address."""

    def __init__(self, client: Client, allowed: AllowList, address: str) -> None:
        self._client = client
        self._allowed = allowed
        self._address = address.rstrip("/")
        self._pace = pace_of("the Wayback Machine", self._address, 1)

    async def copy_of(self, url: httpx.URL) -> str:
        """Return the address of a page's newest good copy, without the archive's frame around it.

        The result is empty if there is none, or if the archive does not answer in time.
        """
        if not self._may_ask(url):
            return ""
        question = f"{self._address}/wayback/available?{_query(url)}"
        try:
            async with turn("wayback"), self._pace.turn(APART), asyncio.timeout(SECONDS):
                answer = await follow(question, self._allowed, self._client.get)
            found = _Availability.model_validate_json(answer.data if answer and answer.status == 200 else "{}")
        except (ToolError, TimeoutError, ValidationError):  # as good as no copy
            return ""
        good = found.available and found.status == "200" and self.day_of(found.address)
        return _SNAPSHOT.sub(r"\1\2id_\3", found.address) if good else ""

    def day_of(self, address: str) -> str:
        """Return the day of the copy at an address, in ISO 8601; empty if the address is not a copy of the archive."""
        snapshot = _SNAPSHOT.fullmatch(address)
        if not snapshot or not f".{host_of(address)}".endswith(f".{host_of(self._address)}"):
            return ""
        time = snapshot[2]
        return f"{time[:4]}-{time[4:6]}-{time[6:8]}"

    def _may_ask(self, url: httpx.URL) -> bool:
        from tld import get_fld

        private = (url.host.lower(), url.port or (443 if url.scheme == "https" else 80)) in self._allowed.hosts
        if private or self._allowed.networks or _SECRET.search(str(url)):  # which names are in a network is unknown
            return False
        return "." in (get_fld(url.host, fix_protocol=True, fail_silently=True) or "")


def _query(url: httpx.URL) -> str:
    import httpx

    return str(httpx.QueryParams({"url": str(url)}))

"""Links that share a run with whoever has one: who is signed in or, if the owner says so, anyone at all.

A link has 256 random bits; only their SHA-256 is stored: `.serve/links/{run id}/{hash}.json`. Whoever opens it is
written down as a guest, `.serve/guests/{run id}/{name}.json`, who may come back without it until the link is removed.
A public link shows the report and the files that it leads to, and nothing else; it makes nobody a guest.
"""

from __future__ import annotations

import re
import secrets
from datetime import UTC, datetime

from fathom.client.shapes import ShareLink
from fathom.errors import NotThere
from fathom.service.caller import Caller
from fathom.service.tokens import hashed
from fathom.storage.ownership import RUN_ID, Ownership
from fathom.storage.store import ArtifactStore, json_bytes

PUBLIC = "/shared/"
"""Where the addresses of public links are."""
LINKS, GUESTS = ".serve/links", ".serve/guests"
_SECRET = re.compile(r"[0-9a-f]{64}")
_ID_DIGITS = 12
_NAME = re.compile(r"([0-9a-f]{64})\.json")


class ShareLinks:
    """The links to the runs of one store."""

    def __init__(self, store: ArtifactStore) -> None:
        self._store = store

    async def make(self, run_id: str, caller: Caller, *, public: bool = False) -> ShareLink:
        """Make a link and return it with its address, which cannot be had again."""
        secret = secrets.token_hex(32)
        key, now = hashed(secret), datetime.now(UTC).isoformat(timespec="seconds")
        kept = {"by": caller.name, "created": now, **({"public": "yes"} if public else {})}
        await self._store.write(_link(run_id, key), json_bytes(kept))
        page = f"{PUBLIC}{run_id}/{secret}/" if public else f"/runs/{run_id}/join/{secret}"
        return ShareLink(id=key[:_ID_DIGITS], by=caller.name, created=now, public=public, page=page)

    async def of(self, run_id: str) -> list[ShareLink]:
        """Return the links to a run, without their addresses.

        Raises:
            StoreError: one cannot be read.
        """
        stored = {key: await self._read(_link(run_id, key)) for key in await self._keys(run_id)}
        return [ShareLink.model_validate({"id": key[:_ID_DIGITS], **link}) for key, link in stored.items() if link]

    async def everywhere(self) -> dict[str, list[ShareLink]]:
        """Return all links by the id of their run, without their addresses."""
        found = {run_id: await self.of(run_id) for run_id in await self._store.list(LINKS)}
        return {run_id: links for run_id, links in found.items() if links}

    async def clear(self, run_id: str) -> None:
        """Remove all links to a run."""
        await self._store.remove_all([_link(run_id, key) for key in await self._keys(run_id)])

    async def is_public(self, run_id: str, secret: str) -> bool:
        """Whether it is the secret of a public link to a run."""
        return "public" in await self._named_by(run_id, secret)

    async def remove(self, run_id: str, link_id: str) -> None:
        """Remove a link; who came by it may no longer read the run.

        Raises:
            NotThere: there is no such link.
        """
        found = [key for key in await self._keys(run_id) if key[:_ID_DIGITS] == link_id]
        if not found:
            raise NotThere("There is no such link.")
        await self._store.remove(_link(run_id, found[0]))

    async def join(self, run_id: str, secret: str, caller: Caller) -> str:
        """Take a caller in who has a link; return its id, or nothing if it has let them in before.

        Raises:
            NotThere: it is no link to this run, shows its report only, or was removed.
        """
        key, link = hashed(secret), await self._named_by(run_id, secret)
        if not link or "public" in link:
            raise NotThere("There is no such link.", next_step="ask for another one")
        known = await self.let_in(run_id, caller)
        if not known:
            await self._store.write(f"{GUESTS}/{run_id}/{caller.name}.json", json_bytes({"link": key}))
        return "" if known else key[:_ID_DIGITS]

    async def let_in(self, run_id: str, caller: Caller) -> bool:
        """Whether a link that still exists has let a caller in."""
        key = (await self._read(f"{GUESTS}/{run_id}/{caller.name}.json")).get("link", "")
        return bool(key) and await self._store.exists(_link(run_id, key))

    async def with_guest(self, own: Ownership, run_id: str, caller: Caller) -> Ownership:
        """Return whose a run is, with the caller as its guest if a link has let them in."""
        if own.readable_by(caller) or not await self.let_in(run_id, caller):
            return own
        return own.model_copy(update={"guest": caller.name})

    async def _named_by(self, run_id: str, secret: str) -> dict[str, str]:
        """Return what is stored of the link with a secret; nothing if there is no such link."""
        if not (RUN_ID.fullmatch(run_id) and _SECRET.fullmatch(secret)):
            return {}
        return await self._read(_link(run_id, hashed(secret)))

    async def _keys(self, run_id: str) -> list[str]:
        names = map(_NAME.fullmatch, await self._store.list(f"{LINKS}/{run_id}"))
        return [name[1] for name in names if name]

    async def _read(self, path: str) -> dict[str, str]:
        return await self._store.stored(dict[str, str], path, "remove that file") or {}


def _link(run_id: str, key: str) -> str:
    return f"{LINKS}/{run_id}/{key}.json"

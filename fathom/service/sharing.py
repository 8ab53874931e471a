"""Sharing a run, and who may read one."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from time import monotonic
from typing import TypeVar

from fathom.client.shapes import DeedEntry, ShareLink
from fathom.errors import RunNotFound
from fathom.flows.runs.finding import Finder, KnownRun, find_run
from fathom.service.caller import Caller, Ownership, Role
from fathom.service.links import ShareLinks
from fathom.service.ownership import Deed, Journal, Owners
from fathom.storage.store import ArtifactStore

LOOK_SECONDS = 2.0  # between two looks at whether somebody who follows a run still may
_EventT = TypeVar("_EventT")


class Sharing:
    """Who may read which run of a store, and how others are let in."""

    def __init__(self, store: ArtifactStore) -> None:
        self._store = store
        self.owners = Owners(store)
        self.journal = Journal(store)
        self._links = ShareLinks(store)
        self._finder = Finder(store)

    async def readable(self, caller: Caller, run_id: str) -> tuple[KnownRun, Ownership]:
        """Return a run and whose it is.

        Raises:
            RunNotFound: there is no such run, or the caller may not see it.
        """
        found = await find_run(self._store, run_id)
        return found, await self._checked(caller, found)

    async def followed(self, caller: Caller, run_id: str) -> KnownRun:
        """Return a run to follow; many who come at the same moment share what was found.

        Raises:
            RunNotFound: there is no such run, or the caller may not see it.
        """
        found = await self._finder.find(run_id)
        await self._checked(caller, found)
        return found

    async def while_readable(
        self, caller: Caller, found: KnownRun, events: AsyncGenerator[_EventT, None]
    ) -> AsyncGenerator[_EventT, None]:
        """Yield the events of a run until the caller may no longer see it."""
        looked = monotonic()
        async with aclosing(events):
            async for event in events:
                if caller.role is not Role.admin and monotonic() - looked > LOOK_SECONDS:
                    looked = monotonic()
                    try:
                        await self._checked(caller, found)
                    except RunNotFound:
                        return
                yield event

    async def _checked(self, caller: Caller, found: KnownRun) -> Ownership:
        run_id = found.run_id
        ownership = await self.owners.of(run_id, list(found.tags))
        if not ownership.readable_by(caller) and await self._links.let_in(run_id, caller):
            ownership = ownership.model_copy(update={"guest": caller.name})
        ownership.check_read(caller, run_id)
        return ownership

    async def share(self, caller: Caller, run_id: str, *, shared: bool) -> None:
        """Share a run with everybody who may sign in, or with nobody any more.

        Raises:
            RunNotFound: there is no such run, or the caller may not see it.
            NotAllowed: it is somebody else's.
        """
        ownership = await self._owned(caller, run_id)
        if ownership.shared != shared:
            await self.owners.record(run_id, ownership.model_copy(update={"shared": shared, "guest": ""}))
            await self.journal.note(run_id, caller, Deed.shared if shared else Deed.unshared)

    async def link(self, caller: Caller, run_id: str) -> ShareLink:
        """Make a link to a run for whoever has it and is signed in.

        Raises:
            RunNotFound: there is no such run, or the caller may not see it.
            NotAllowed: it is somebody else's.
        """
        await self._owned(caller, run_id)
        made = await self._links.make(run_id, caller)
        await self.journal.note(run_id, caller, Deed.linked, made.id)
        return made

    async def links(self, caller: Caller, run_id: str) -> list[ShareLink]:
        """Return the links to a run, without their addresses.

        Raises:
            RunNotFound: there is no such run, or the caller may not see it.
            NotAllowed: it is somebody else's.
        """
        await self._owned(caller, run_id)
        return await self._links.of(run_id)

    async def unlink(self, caller: Caller, run_id: str, link_id: str) -> None:
        """Remove a link; who came by it may no longer read the run.

        Raises:
            RunNotFound: there is no such run, or the caller may not see it.
            NotAllowed: it is somebody else's.
            NotThere: there is no such link.
        """
        await self._owned(caller, run_id)
        await self._links.remove(run_id, link_id)
        await self.journal.note(run_id, caller, Deed.unlinked, link_id)

    async def join(self, caller: Caller, run_id: str, secret: str) -> None:
        """Let a caller in who has a link; from then on they read the run without it.

        Raises:
            NotThere: it is no link to this run, or was removed.
        """
        link_id = await self._links.join(run_id, secret, caller)
        if link_id:
            await self.journal.note(run_id, caller, Deed.joined, link_id)

    async def activity(self, caller: Caller, run_id: str) -> list[DeedEntry]:
        """Return what people did with a run over a server, in order.

        Raises:
            RunNotFound: there is no such run, or the caller may not see it.
        """
        await self.readable(caller, run_id)
        return [DeedEntry(**entry.model_dump(exclude={"unique", "token"})) for entry in await self.journal.of(run_id)]

    async def _owned(self, caller: Caller, run_id: str) -> Ownership:
        _, ownership = await self.readable(caller, run_id)
        ownership.check_owner(caller, run_id)
        return ownership

"""Research sessions: created with a configuration, executed once with a question, and then a run.

A session is a file on the store until it is executed, and one more that names its run: both are created only once, so
neither a restart nor a second server changes anything.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import UUID, uuid4

from pydantic import ValidationError

from fathom.client.shapes import Run, RunRequest
from fathom.errors import Conflict, InvalidState, RunNotFound
from fathom.models import Model
from fathom.service.caller import AccessRole, Caller, check_read
from fathom.service.runs import RunHandle, RunService
from fathom.storage.ownership import Ownership
from fathom.storage.store import json_bytes

FOLDER = ".serve/sessions"


class _Kept(Model):
    owner: str
    created: str
    config: dict[str, Any]


@dataclass(frozen=True)
class SessionHandle:
    """A session that `caller` may see. `run_id` is None before it is executed, and empty if it was cancelled before."""

    service: RunService
    caller: Caller
    session_id: str
    config: dict[str, Any]
    run_id: str | None

    async def execute(self, request: RunRequest) -> Run:
        """Start its run; the same question again names the same run.

        Raises:
            NotAllowed: the caller may not ask.
            InvalidInput: the question cannot be researched.
            InvalidState: it was cancelled, was executed with another question, or somebody else executes it.
        """
        if self.run_id == "":
            raise InvalidState("The session was cancelled.", next_step="create another")
        try:
            run = await self.service.start(self.caller, request, f"session/{self.session_id}")
        except Conflict:
            raise InvalidState("The session was executed with another question.", next_step="create another") from None
        if not await self._name_run(run.id):
            await (await self.service.open(self.caller, run.id)).cancel()
            raise InvalidState(
                "The session was cancelled, or somebody else is executing it.", next_step="create another"
            )
        return run

    async def cancel(self) -> None:
        """End its run, or keep it from being executed."""
        if self.run_id:
            await (await self.run()).cancel()
        elif self.run_id is None and not await self._name_run(""):  # it was executed just now
            await (await find(self.service, self.caller, self.session_id)).cancel()

    async def run(self, *, to_follow: bool = False) -> RunHandle:
        """Return its run.

        Raises:
            InvalidState: it was not executed.
        """
        if not self.run_id:
            how = f"POST /research/sessions/{self.session_id}/execute"
            raise InvalidState("The session was not executed.", next_step=how)
        return await self.service.open(self.caller, self.run_id, to_follow=to_follow)

    async def _name_run(self, run_id: str) -> bool:
        return await self.service.store.create(_path(self.session_id, "run"), json_bytes({"run_id": run_id}))


async def create(
    service: RunService, caller: Caller, config: dict[str, Any], settings: dict[str, Any], template: str | None
) -> str:
    """Create a session of a configuration, which means some settings of a run, and return its id.

    Raises:
        NotAllowed: the caller may not ask.
        InvalidInput: a run cannot have these settings.
    """
    caller.check(AccessRole.asker)
    service.settings_for(caller, settings, template)
    session_id = str(uuid4())
    kept = _Kept(owner=caller.name, created=datetime.now(UTC).isoformat(timespec="seconds"), config=config)
    await service.store.create(_path(session_id), json_bytes(kept))
    return session_id


async def find(service: RunService, caller: Caller, session_id: str) -> SessionHandle:
    """Return a session for whoever asks.

    Raises:
        RunNotFound: there is no such session, or the caller may not see it.
    """
    missing = RunNotFound(f"There is no session {session_id[:60]!r}.", next_step="POST /research/sessions creates one")
    try:
        if str(UUID(session_id)) != session_id:
            raise missing
        kept = _Kept.model_validate_json(await service.store.read(_path(session_id)))
    except (ValueError, FileNotFoundError, ValidationError):
        raise missing from None
    check_read(Ownership(owner=kept.owner), caller, missing)
    try:
        run_id = str(json.loads(await service.store.read(_path(session_id, "run")))["run_id"])
    except FileNotFoundError:
        run_id = None
    return SessionHandle(service, caller, session_id, kept.config, run_id)


def _path(session_id: str, part: str = "session") -> str:
    return f"{FOLDER}/{session_id}/{part}.json"

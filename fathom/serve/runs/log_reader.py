"""The audit log of a run, read as it grows.

Its lines are first in a file beside the run's results, and from the plan on in the run's folder, in the same order
(`fathom.telemetry.audit_log`). So an event has one number, whichever file it is read from, however often the run was
resumed, and whichever server reads it. Only whole lines count: what a killed process has not finished is cut off by
the next one.
"""

from __future__ import annotations

from contextlib import suppress

from pydantic import ValidationError

from fathom.client.shapes import RunEvent
from fathom.serve.runs.telling import told
from fathom.storage.lease import RESULTS
from fathom.storage.store import ArtifactStore
from fathom.tasks.durable import recorded_folders
from fathom.telemetry.audit_events import AuditEvent, AuditType, ChainedEvent
from fathom.telemetry.audit_log import AUDIT_FILE, PENDING_FILE

_SESSIONS = (AuditType.session_created, AuditType.session_resumed)


class _File:
    """A log file, read from where the last call stopped. The log of runs that share a key has the lines of all."""

    def __init__(self, store: ArtifactStore, path: str, kind: type[AuditEvent], run_id: str, run_key: str) -> None:
        self._store = store
        self._path = path
        self._kind = kind
        self._run_id = run_id
        self._own = run_id == run_key
        self._offset = 0
        self.lines = 0  # of the run, so far

    async def new(self) -> list[RunEvent]:
        """Return the events of the run that were added since; none when there is no file."""
        try:
            data = await self._store.read_from(self._path, self._offset)
        except FileNotFoundError:
            return []
        whole = data[: data.rfind(b"\n") + 1]
        self._offset += len(whole)
        found: list[RunEvent] = []
        for line in whole.split(b"\n")[:-1]:
            event: AuditEvent | None = None
            with suppress(ValidationError):  # damaged, or of a later version: it keeps its number
                event = self._kind.model_validate_json(line)
            if event and event.type in _SESSIONS and "run_id" in event.details:
                self._own = event.details["run_id"] == self._run_id
            if self._own:
                self.lines += 1
                found += [told(self.lines, event)] if event else []
        return found


class LogReader:
    """The events of one run, each returned once. `folder`: its folder, if that is known."""

    def __init__(self, store: ArtifactStore, run_id: str, run_key: str, folder: str = "") -> None:
        self._store = store
        self._run_id = run_id
        self._run_key = run_key
        self._folder = folder
        self._file = self._open(f"{RESULTS}/{run_key}/{PENDING_FILE}", AuditEvent)
        self._settled = False
        self._told = 0

    async def new(self) -> list[RunEvent]:
        """Return the events that were added since the last call.

        Raises:
            StoreError: the store fails; the next call goes on.
        """
        found: list[RunEvent] = []
        if not self._settled:
            found += await self._in_folder()
        if not found:
            found += await self._file.new()
        fresh = [event for event in found if event.id > self._told]
        self._told = max(self._told, self._file.lines)
        return fresh

    async def _in_folder(self) -> list[RunEvent]:
        """Go on in the run's folder if its log has reached that, and return what is there."""
        for folder in [self._folder] if self._folder else await recorded_folders(self._store, self._run_key):
            file = self._open(f"{folder}/{AUDIT_FILE}", ChainedEvent)
            found = await file.new()
            if found:
                self._file, self._settled = file, True
                return found
        return []

    def _open(self, path: str, kind: type[AuditEvent]) -> _File:
        return _File(self._store, path, kind, self._run_id, self._run_key)

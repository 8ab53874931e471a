"""The list of runs: those that Prefect knows, those that only the store knows, and of all these what a caller may see.

What does not change is kept: which run a folder is, and how a run ended that Prefect calls ended. The lines of the page
that is returned are read afresh. A server that starts knows nothing and reads all of it once.
"""

from __future__ import annotations

import asyncio
import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from time import monotonic

import httpx
from pydantic import ValidationError

from fathom.client.shapes import RunList, RunState, RunSummary
from fathom.errors import InvalidInput, StoreError
from fathom.flows.runs.stored import read_json
from fathom.models import RunResult
from fathom.serve.access.ownership import Owners
from fathom.serve.caller import Caller, Ownership
from fathom.serve.runs.known import PrefectRuns, StoredRuns
from fathom.serve.runs.lines import Line
from fathom.serve.runs.reading import state_in
from fathom.storage.atomic import READERS
from fathom.storage.store import ArtifactStore, RunFolder

MOST = 200  # runs of a page
OWNER_SECONDS = 20.0  # for which another's run that was not shared is taken for one that still is not
_WORD = re.compile(r"\w+")


@dataclass(frozen=True)
class Wanted:
    """Which runs are listed: those to which all of this applies.

    Attributes:
        states: empty for all.
        words: must all be in the question, or be the beginning of a word of it.
        owner: who asked; None for everybody.
        since: the earliest time at which it was asked.
        until: the time before which it was asked.
        parent: the id of the run that it follows up on.
        watch: the name of the watch that it belongs to.
    """

    states: frozenset[RunState] = field(default_factory=frozenset)
    words: str = ""
    owner: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    parent: str = ""
    watch: str = ""

    def takes(self, line: Line) -> bool:
        """Whether a line may be listed, by all but its owner and its state."""
        created = datetime.fromisoformat(line.created) if self.since or self.until else None
        return not (
            (self.parent and line.parent != self.parent)
            or (self.watch and line.watch != self.watch)
            or (created and self.since and created < self.since)
            or (created and self.until and created >= self.until)
            or not _has(line.question, self.words)
        )


EVERYTHING = Wanted()


class Listing:
    """Lists the runs of one store."""

    def __init__(self, store: ArtifactStore, owners: Owners) -> None:
        self._store = store
        self._owners = owners
        self._stored = StoredRuns(store)
        self._prefect = PrefectRuns(store)
        self._ownership: dict[str, tuple[Ownership, float]] = {}
        self._results: dict[str, RunResult] = {}
        self._lock = asyncio.Lock()
        self._outage: tuple[float, httpx.HTTPError] | None = None
        self._readers = asyncio.Semaphore(READERS)

    async def page(self, caller: Caller, wanted: Wanted, limit: int, cursor: str) -> RunList:
        """Return the runs after the one that a cursor names, the newest first.

        Raises:
            InvalidInput: the cursor is none.
        """
        after = read_cursor(cursor)
        known, stored = await self._refresh()
        lines = [line for line in _merged(known, stored) if (not after or line.order < after) and wanted.takes(line)]
        if wanted.states:
            lines = [line for line in lines if self._ended_as(line) in {None, *wanted.states}]
        lines.sort(key=lambda line: line.order, reverse=True)
        found: list[tuple[Line, RunSummary]] = []
        more = False
        at = 0
        while at < len(lines) and not more:
            # A piece at a time: the rest of a long list is not looked at.
            piece, at = lines[at : at + MOST], at + MOST
            visible = await self._visible(caller, wanted, piece)
            if not wanted.states:
                visible = visible[: limit + 1 - len(found)]
            summaries = await asyncio.gather(*(self._summary(line, caller) for line in visible))
            for line, summary in zip(visible, summaries, strict=True):
                if summary is None or (wanted.states and summary.state not in wanted.states):
                    continue
                if len(found) == limit:
                    more = True
                    break
                found.append((line, summary))
        return RunList(runs=[summary for _, summary in found], next=to_cursor(found[-1][0]) if more else None)

    async def _refresh(self) -> tuple[dict[str, Line], dict[str, Line]]:
        """Return what Prefect and the store know. Requests at the same time share what is read, and an outage."""
        asked = monotonic()
        async with self._lock:
            if self._outage and self._outage[0] > asked:
                raise self._outage[1]
            try:
                known = await self._prefect.refresh()
            except httpx.HTTPError as error:
                self._outage = monotonic(), error
                raise
            return known, await self._stored.refresh({line.run_key for line in known.values()})

    async def _visible(self, caller: Caller, wanted: Wanted, lines: Sequence[Line]) -> list[Line]:
        owned = await asyncio.gather(*(self._owner(line) for line in lines))
        return [
            line
            for line, own in zip(lines, owned, strict=True)
            if own.readable_by(caller) and wanted.owner in (None, own.owner)
        ]

    async def _owner(self, line: Line) -> Ownership:
        """Return whose a run is, as it was known some seconds ago."""
        own, at = self._ownership.get(line.run_id, (None, 0.0))
        if own is None or monotonic() - at > OWNER_SECONDS:
            async with self._readers:
                own = await self._owners.of(line.run_id, list(line.tags))
            self._ownership[line.run_id] = own, monotonic()
        return own

    async def _summary(self, line: Line, caller: Caller) -> RunSummary | None:
        """Return a line as it is now; None if it is not there any more, or not to be seen any more."""
        async with self._readers:
            own = await self._owners.of(line.run_id, list(line.tags))
            if not own.readable_by(caller) or not await self._stored.confirm(line):
                return None
            result = await self._result(line)
        return RunSummary(
            id=line.run_id,
            question=line.question,
            state=line.state or await state_in(line.flow_run, result),
            created=line.created,
            ended=line.ended,
            owner=own.owner,
            shared=own.shared,
            parent=line.parent or None,
            watch=line.watch or None,
            cost_usd=result.metrics.cost_usd if result else None,
        )

    def _ended_as(self, line: Line) -> RunState | None:
        """Return how a run ended, if that is known without looking."""
        if line.flow_run or line.state:
            return line.state
        result = self._results.get(line.run_id)
        return RunState(result.status.value) if result else None

    async def _result(self, line: Line) -> RunResult | None:
        if line.run_id in self._results or not line.folder:
            return self._results.get(line.run_id)
        try:
            data = await read_json(RunFolder(self._store, line.folder), "result.json")
            result = RunResult.model_validate(data) if data is not None else None
        except (StoreError, ValidationError):  # one damaged run must not hide the others
            return None
        if result and (line.flow_run is None or line.state is not None):
            self._results[line.run_id] = result
        return result


def to_cursor(line: Line) -> str:
    """Return what names a place in the list."""
    return urlsafe_b64encode("|".join(line.order).encode()).decode().rstrip("=")


def read_cursor(cursor: str) -> tuple[str, str] | None:
    """Return the place in the list that a cursor names; None without one.

    Raises:
        InvalidInput: it is none of ours.
    """
    if not cursor:
        return None
    try:
        created, _, run_id = urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)).decode("ascii").partition("|")
        datetime.fromisoformat(created)
    except ValueError:
        raise InvalidInput(
            "The cursor does not belong to this list.", next_step="send `next` from the previous page"
        ) from None
    return created, run_id


def _merged(known: dict[str, Line], stored: dict[str, Line]) -> list[Line]:
    """Return the runs of Prefect and of the store, each once; a run has its folder from the store."""
    lines = dict(stored)
    for run_id, line in known.items():
        own = stored.get(run_id)
        lines[run_id] = line.with_folder(own.folder) if own else line
    return [*lines.values()]


def _has(question: str, words: str) -> bool:
    if not words:
        return True
    there = _WORD.findall(question.casefold())
    return all(any(one.startswith(word) for one in there) for word in _WORD.findall(words.casefold()))


def time_of(text: str) -> datetime | None:
    """Return the time that a text in ISO 8601 means, without a zone in UTC; None for no text.

    Raises:
        InvalidInput: it is none.
    """
    if not text:
        return None
    try:
        # A blank is a plus sign of an address that was not escaped.
        time = datetime.fromisoformat(text.replace(" ", "+") if "T" in text else text)
        return time.astimezone(UTC) if time.tzinfo else time.replace(tzinfo=UTC)
    except (ValueError, OverflowError):
        raise InvalidInput(f"{text!r} is not a time.", next_step="such as 2026-11-01T06:00:00Z or 2026-11-01") from None

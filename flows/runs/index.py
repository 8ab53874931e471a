"""The index of a store's runs: their manifests, read once and then only if they are new.

The index is only a copy. `.runs/index.json.gz` holds the contents of each `run.json` and the time when it was read.
Processes that add or remove runs leave a note in `.runs/changed` first, and noted places are read again. On a local
disk the folders are listed each time. In an object store a list of 10,000 folders is 20 requests, so that is done every
`LISTED_SECONDS`, and when a run is not found: other programs may have copied or removed folders. Who shows a run reads
its own files (`RunIndex.now`). Without the index, or with a damaged one, all manifests are read again.
"""

from __future__ import annotations

import asyncio
import gzip
import zlib
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from time import time
from typing import Literal, NamedTuple

from pydantic import BaseModel

from fathom.errors import StoreError
from fathom.storage.atomic import READERS
from fathom.storage.lease import RESULTS, as_restored, read_lease
from fathom.storage.runs import StoredRun, read_manifest
from fathom.storage.store import CHANGED, NOTED, REMOVED_AT_ONCE, RUNS, ArtifactStore, note_path

INDEX = ".runs/index.json.gz"
LISTED_SECONDS = 900.0
"""How old the list of folders in an object store may be."""
SETTLED_SECONDS = 120.0
"""Seconds after a note within which its change is made and clocks may differ: places read before are read again."""
KEPT_SECONDS = 3_600.0
"""How long notes are kept: longer than anybody takes to read and write the index."""
WORTH_SAVING = 8  # number of runs that were read anew
_WORTH_A_WORD = 200
_CLOCK_NS = 2_000_000_000  # a folder that changed so shortly before it was listed may have changed again in that time


class _Row(NamedTuple):
    """A place in the store, the time it was read, and the run there; without a question it is not a run but a batch."""

    place: str
    read: float  # seconds since the epoch; 0: always again
    run_id: str = ""
    run_key: str = ""
    query: str = ""
    started: str = ""
    plan_title: str = ""
    layout: int = 1
    watch: str = ""
    parent: str = ""
    parent_folder: str = ""
    corpora: tuple[str, ...] = ()
    mcp: dict[str, str] = {}


class _Stored(BaseModel):
    version: Literal[1] = 1
    listed: float
    rows: list[_Row]


class _Derived(NamedTuple):
    """What follows from the runs that were read.

    `taken`: places of the results of runs with folders, whose leases say nothing more. `doubtful`: places that are
    read each time. `empty`: folders without a run, into which one is perhaps being copied.
    """

    runs: list[StoredRun]
    taken: set[str]
    doubtful: set[str]
    empty: set[str]


class RunIndex:
    """The runs of one store. `say` is called with the reason if reading takes long."""

    def __init__(self, store: ArtifactStore, say: Callable[[str], object] = lambda line: None) -> None:
        self._store = store
        self._say = say
        self._runs: dict[str, StoredRun] = {}  # by their place: the path of their folder, else of their results
        self._read: dict[str, float] = {}  # when each place was read; there may be no run
        self._listed = 0.0
        self._opened = False
        self._readers = asyncio.Semaphore(READERS)
        self._derived: _Derived | None = None  # None once a run has changed
        self._versions: dict[str, tuple[int, ...]] = {}  # the folders that are listed, as they were then

    async def read(self, *, listed: bool = False) -> list[StoredRun]:
        """Return all runs, with `listed` after listing the folders in any case; the same list while nothing changes.

        Raises:
            StoreError: the store cannot be read.
        """
        if not self._opened:
            await self._open()
        began = time()
        notes = await self._notes()
        new = {place for place, at in notes if at + SETTLED_SECONDS > self._read.get(place, 0.0)}
        versions = await self._store.versions([RUNS, RESULTS])
        if listed := listed or self._store.local or began - self._listed > LISTED_SECONDS:
            new |= self._derive().empty if versions and versions == self._versions else await self._unknown()
        doubtful = self._derive().doubtful
        folders = {place for place in new | doubtful if _is_folder(place)}
        if len(folders) > _WORTH_A_WORD:
            self._say(f"Reading {len(folders):,} runs of {self._store.address()} for the index, which is made once.")
        await asyncio.gather(*map(self._look, folders))
        new -= self._derive().taken
        await asyncio.gather(*(self._look(place) for place in new | doubtful if not _is_folder(place)))
        self._versions = versions if _settled(versions, began) else {}
        self._listed = began if listed else self._listed
        if len(new) >= WORTH_SAVING or (listed and not self._store.local):
            await self._save(notes)
        return self._derive().runs

    async def now(self, run: StoredRun) -> StoredRun | None:
        """Return a run from its own files, as they will be restored if it was interrupted; None if it is gone, or
        another run has its place."""
        place = run.files.folder
        await self._look(place)
        found = self._runs.get(place)
        if found is None or not found.whole or found.run_id != run.run_id:
            return None
        return replace(found, store=await as_restored(self._store, found.run_key))

    async def _open(self) -> None:
        self._opened = True
        try:
            stored = await asyncio.to_thread(_unpacked, await self._store.read(INDEX))
        except FileNotFoundError:
            return
        except ValueError:
            self._say(f"The index of runs in {self._store.address()} is damaged, so it is made again.")
            return
        self._listed = stored.listed
        for row in stored.rows:
            self._read[row.place] = row.read
            if row.query or row.run_id:
                self._runs[row.place] = StoredRun(self._store, row.place if _is_folder(row.place) else "", *row[2:])

    async def _notes(self) -> list[tuple[str, float]]:
        """Return the places that changed, with the times."""
        found: list[tuple[str, float]] = []
        for name in await self._store.list(CHANGED):
            at, _, place = name.partition("~")
            with suppress(ValueError):  # somebody else's file
                seconds = datetime.strptime(at, NOTED).replace(tzinfo=UTC).timestamp()
                found.append((place.replace("~", "/"), seconds))
        return found

    async def _unknown(self) -> set[str]:
        """Forget the runs that are gone, and return the places that are new."""
        names, keys = await asyncio.gather(self._store.list(RUNS), self._store.list(RESULTS))
        there = {f"{RUNS}/{name}" for name in names} | {f"{RESULTS}/{key}" for key in keys}
        for gone in self._read.keys() - there:
            del self._read[gone]
            self._runs.pop(gone, None)
            self._derived = None
        return (there - self._read.keys() | self._derive().empty) - self._derive().taken

    def _derive(self) -> _Derived:
        if self._derived is None:
            runs, taken = self._runs.items(), {f"{RESULTS}/{run.run_key}" for run in self._runs.values() if run.folder}
            self._derived = _Derived(
                [run for place, run in runs if run.whole and place not in taken],
                taken,
                {place for place, run in runs if run.damaged or not run.whole or not self._read[place]},
                {place for place in self._read if place not in self._runs and _is_folder(place)},
            )
        return self._derived

    async def _look(self, place: str) -> None:
        async with self._readers:
            at = time()
            run = await (read_manifest(self._store, place) if _is_folder(place) else self._begun(place))
        if not self._read.get(place) or self._runs.get(place) != run:
            self._derived = None
        self._read[place] = at
        self._runs.pop(place, None)
        if run:
            self._runs[place] = run

    async def _begun(self, place: str) -> StoredRun | None:
        """Return a run that has no folder yet."""
        key = place.removeprefix(f"{RESULTS}/")
        try:
            lease = await read_lease(self._store, key)
        except StoreError as error:  # one damaged run must not hide the others
            return StoredRun(self._store, "", run_key=key, damaged=str(error))
        if lease is None or lease.held:
            return None
        found = StoredRun.of_parameters(
            self._store, lease.run_id, key, lease.parameters, started=lease.started, layout=lease.layout
        )
        return found if found.query else None  # else it is a batch's

    async def _save(self, notes: Sequence[tuple[str, float]]) -> None:
        taken = self._derive().taken
        rows = [_row(place, at, self._runs.get(place)) for place, at in self._read.items() if place not in taken]
        old = [(place, at) for place, at in notes if time() - at > KEPT_SECONDS]
        try:
            stored = _Stored(listed=self._listed, rows=rows)
            data = await asyncio.to_thread(lambda: gzip.compress(stored.model_dump_json().encode(), 1))
            await self._store.write(INDEX, data)
            for start in range(0, len(old), REMOVED_AT_ONCE):
                await self._store.remove_all([note_path(*note) for note in old[start : start + REMOVED_AT_ONCE]])
        except StoreError as error:  # a process with read access only still has all runs
            self._say(f"The index of runs cannot be stored: {error.message}")


def _settled(versions: Mapping[str, tuple[int, ...]], at: float) -> bool:
    """Whether a change of the folders after a time gives them another version."""
    return all(changed < at * 1e9 - _CLOCK_NS for _, changed, _ in filter(None, versions.values()))


def _is_folder(place: str) -> bool:
    return place.startswith(f"{RUNS}/")


def _row(place: str, at: float, run: StoredRun | None) -> _Row:
    if run is None:
        return _Row(place, at)
    said = (run.run_id, run.run_key, run.query, run.started, run.plan_title, run.layout, run.watch)
    more = (run.parent, run.parent_folder, run.corpora, dict(run.mcp))
    return _Row(place, 0.0 if run.damaged or not run.whole else at, *said, *more)


def _unpacked(data: bytes) -> _Stored:
    try:
        return _Stored.model_validate_json(gzip.decompress(data))
    except (OSError, EOFError, zlib.error) as error:  # it is no whole file of gzip
        raise ValueError(str(error)) from error

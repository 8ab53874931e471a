"""Removing old runs from a store, whole or except for their reports, while other runs are in progress.

A run is held by its lease first, so that no process starts to work on it. Then its manifest is replaced by one that
marks the run as incomplete: from then on nobody finds it, and no run takes its folder. The manifest goes last, and the
lease after it. A killed removal leaves a whole run, or remains that only the next removal sees.

Runs that share a run key share stored results, which go with the last of these runs.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from itertools import chain
from typing import Literal

from fathom.errors import FathomError, RunBusy, StoreError
from fathom.models import Model
from fathom.storage.atomic import side_by_side
from fathom.storage.lease import RESULTS, Lease, LeaseFile, last_attempt, read_lease
from fathom.storage.runs import StoredRun, read_manifest, runs
from fathom.storage.store import (
    EXCHANGES,
    MANIFEST,
    PARTIAL,
    REMOVED_AT_ONCE,
    RESULT,
    ArtifactStore,
    RunFolder,
    json_bytes,
)

PRUNED = "pruned.json"
"""The record that a run's tool outputs and stored results were removed, with the time and the bytes."""
_RAW = "__step"  # part of the name of every tool output
_AT_ONCE = 8  # keys that are worked on at once


class PrunedEvidence(Model):
    """`pruned.json`."""

    removed: str  # ISO 8601, UTC
    files: int = 0
    bytes: int = 0


class OldRun(Model):
    """The parts of a run to be removed, or removed: all of it, its evidence, or the results of a run without a folder.

    `folder` is a path in the store.
    """

    part: Literal["run", "evidence", "leftovers"]
    run_id: str
    run_key: str
    query: str
    started: str
    folder: str = ""
    files: int = 0
    bytes: int = 0
    parent: str = ""  # folder of the earlier run that it follows up on; that run's page names it


class Kept(Model):
    """An old run that stays, and why. `failed`: it should have gone."""

    run_id: str
    query: str
    reason: str
    failed: bool = False


class OldKey(Model):
    """Old runs with the same run key. `results`: the bytes of their stored results, if those go too."""

    run_key: str
    runs: list[OldRun]
    last: bool  # no other run has the key
    result_files: int = 0
    results: int = 0

    def counted(self) -> list[OldRun]:
        """Return the runs, the results counted for the newest of them."""
        *older, newest = sorted(self.runs, key=lambda run: run.started)
        whole = {"files": newest.files + self.result_files, "bytes": newest.bytes + self.results}
        return [*older, newest.model_copy(update=whole)]


class Pruning(Model):
    """The old runs of a store: the ones to remove, by run key, and the ones that stay."""

    before: str  # ISO 8601, UTC: runs last worked on before then are old
    keys: list[OldKey]
    kept: list[Kept]

    @property
    def runs(self) -> list[OldRun]:
        """The runs to remove, the oldest first; shared results count for the newest run with the key."""
        return sorted(chain.from_iterable(key.counted() for key in self.keys), key=lambda run: run.started)


async def survey(
    store: ArtifactStore,
    before: datetime,
    *,
    keep_reports: bool = False,
    unfinished: bool = False,
    only: StoredRun | None = None,
) -> Pruning:
    """Return the runs that nobody has worked on since a time; nothing is changed.

    With `keep_reports`, only the tool outputs and the stored results of a finished run are listed. Unfinished runs stay
    unless `unfinished` is set; runs that never had a folder are listed in any case, unless they wait for a person.
    With `only`, no other run is listed.
    """
    search = _Search(store, before, keep_reports, unfinished, only)
    by_key: dict[str, list[StoredRun]] = defaultdict(list)
    for run in await runs(store, partial=True):
        by_key[run.run_key].append(run)
    damaged = [Kept(run_id="", query="", reason=_why_damaged(run)) for run in by_key.pop("", [])]
    # Any of the results may belong to a run that cannot be read now.
    search.spares_results = bool(damaged)
    keys = [only.run_key] if only else sorted({*by_key, *(() if damaged else await store.list(RESULTS))})
    found = await side_by_side(keys, lambda key: search.of_key(key, by_key[key]), _AT_ONCE)
    return Pruning(before=search.before, keys=[key for key in found if key], kept=[*damaged, *search.kept])


class _Search:
    def __init__(
        self, store: ArtifactStore, before: datetime, keep_reports: bool, unfinished: bool, only: StoredRun | None
    ) -> None:
        self._store = store
        self._only = only.run_id if only else ""
        self._keep_reports = keep_reports
        self._unfinished = unfinished
        self.spares_results = False
        self.before = before.astimezone(UTC).isoformat(timespec="seconds")
        self.kept: list[Kept] = []

    async def of_key(self, key: str, runs: Sequence[StoredRun]) -> OldKey | None:
        """Return the old runs with a key, and their results."""
        started = [run for run in runs if not run.whole or (run.started and run.started < self.before)]
        started = [run for run in started if self._only in ("", run.run_id)]
        if runs and not started:
            return None
        try:
            lease = await read_lease(self._store, key)
            attempt = await last_attempt(self._store, key)
            if not runs and (lease is None or (attempt and attempt.renewed >= self.before)):
                return None
            if lease and lease.alive:
                for run in started:
                    self._keep(run.run_id, run.query, str(lease.busy().message))
                return None
            chosen = [old for run in started if (old := await self._old_run(run, attempt))]
            if not runs and lease:
                chosen = self._leftovers(lease, attempt)
            last = bool(chosen) and len(chosen) == len(runs or chosen) and not self.spares_results
            results = await self._store.sizes(f"{RESULTS}/{key}") if last else {}
        except FathomError as error:
            for run in started:
                self._keep(run.run_id, run.query, error.message, failed=True)
            return None
        # A run that kept only its report may have nothing left to remove.
        if not results and all(run.part == "evidence" and not run.files for run in chosen):
            return None
        return OldKey(run_key=key, runs=chosen, last=last, result_files=len(results), results=sum(results.values()))

    def _leftovers(self, lease: Lease, attempt: Lease | None) -> list[OldRun]:
        """Return the run without a folder whose results are to be removed; none if it waits for a person."""
        query = str(lease.parameters.get("query", ""))
        if attempt and attempt.waiting and not self._unfinished:
            self._keep(lease.run_id, query, "it waits for an answer; --unfinished removes it too")
            return []
        started = lease.started
        return [OldRun(part="leftovers", run_id=lease.run_id, run_key=lease.run_key, query=query, started=started)]

    async def _old_run(self, run: StoredRun, attempt: Lease | None) -> OldRun | None:
        """Return the parts to remove of a run that started long ago."""
        if _was_worked_on(run, attempt, self.before):
            return None
        sizes = await self._store.sizes(run.folder)
        finished, begun = f"{run.folder}/{RESULT}" in sizes, not run.whole
        if not finished and not begun and not self._unfinished:
            self._keep(run.run_id, run.query, "it has not finished; --unfinished removes it too")
            return None
        part: Literal["run", "evidence"] = "evidence" if self._keep_reports and finished and not begun else "run"
        if part == "evidence":
            sizes = {path: size for path, size in sizes.items() if _is_raw(path)}
        return OldRun(
            part=part,
            run_id=run.run_id,
            run_key=run.run_key,
            query=run.query,
            started=run.started,
            folder=run.folder,
            files=len(sizes),
            bytes=sum(sizes.values()),
            parent=run.parent_folder,
        )

    def _keep(self, run_id: str, query: str, reason: str, *, failed: bool = False) -> None:
        self.kept.append(Kept(run_id=run_id, query=query, reason=reason, failed=failed))


async def remove(store: ArtifactStore, pruning: Pruning) -> Pruning:
    """Remove the runs that a survey found, except runs with later work; return the removed and the kept runs."""

    async def removed(key: OldKey) -> OldKey | Iterable[Kept]:
        try:
            return await _remove(store, key, pruning.before)
        except FathomError as error:
            failed = not isinstance(error, RunBusy)
            return [Kept(run_id=run.run_id, query=run.query, reason=error.message, failed=failed) for run in key.runs]

    done = await side_by_side(pruning.keys, removed, _AT_ONCE)
    return Pruning(
        before=pruning.before,
        keys=[key for key in done if isinstance(key, OldKey) and key.runs],
        kept=[*pruning.kept, *chain.from_iterable(kept for kept in done if not isinstance(kept, OldKey))],
    )


async def _remove(store: ArtifactStore, key: OldKey, before: str) -> OldKey:
    lease, _held = await LeaseFile.hold(store, key.runs[0].run_id, key.run_key)
    removal, attempt = _Removal(store, lease), await last_attempt(store, key.run_key)
    gone = [run for run in key.runs if await removal.of_run(run, attempt, before)]
    # A run with the key that came since the survey has taken its lease since then, too.
    unused = attempt is None or attempt.renewed < before
    if not (key.last and len(gone) == len(key.runs) and unused):
        await lease.withdraw()
        return key.model_copy(update={"runs": gone, "result_files": 0, "results": 0})
    await removal.of_results(f"{RESULTS}/{key.run_key}")
    return key


class _Removal:
    """The removal of files under a lease, which is kept."""

    def __init__(self, store: ArtifactStore, lease: LeaseFile) -> None:
        self._store = store
        self._lease = lease

    async def of_run(self, run: OldRun, attempt: Lease | None, before: str) -> bool:
        """Remove a run's folder or its evidence; return False if it has changed since the survey."""
        if run.part == "leftovers":
            return True
        if (found := await read_manifest(self._store, run.folder)) is None:
            return True  # another removal was quicker
        if found.run_id != run.run_id or _was_worked_on(found, attempt, before):
            return False
        now = datetime.now(UTC).isoformat(timespec="seconds")
        if run.part == "evidence":
            removed = PrunedEvidence(removed=now, files=run.files, bytes=run.bytes)
            await self._store.create(f"{run.folder}/{PRUNED}", json_bytes(removed))  # unless an earlier removal did
            await self._all(run.folder, [path for path in await self._store.sizes(run.folder) if _is_raw(path)])
            return True
        own = f"{run.folder}/{MANIFEST}"
        await RunFolder(self._store, run.folder).replace_manifest(partial(run.run_id, run.run_key))
        await self._all(run.folder, [path for path in await self._store.sizes(run.folder) if path != own])
        await self._store.remove_all([own])
        return True

    async def of_results(self, folder: str) -> None:
        """Remove stored results, then the leases, the own one last."""
        leases = f"{folder}/lease/"
        paths = [path for path in await self._store.sizes(folder) if path != self._lease.path]
        await self._all(folder, sorted(paths, key=lambda path: path.startswith(leases)))
        await self._store.remove_all([self._lease.path])

    async def _all(self, folder: str, paths: Sequence[str]) -> None:
        for start in range(0, len(paths), REMOVED_AT_ONCE):
            if not await self._lease.renew():
                raise RunBusy("Another process has taken over the run.", next_step="see fathom runs")
            await self._store.remove_all(paths[start : start + REMOVED_AT_ONCE])
        if paths and (left := {*paths} & {*await self._store.sizes(folder)}):
            raise StoreError(
                f"{self._store.address(min(left))} cannot be removed, and so are {len(left) - 1} others.",
                next_step="allow these credentials to delete objects, then prune again",
            )


def partial(run_id: str, run_key: str) -> bytes:
    """Return the manifest of an incomplete run: nobody finds it, and the next removal removes it."""
    return json_bytes({"run_id": run_id, PARTIAL: run_key})


def _was_worked_on(run: StoredRun, attempt: Lease | None, before: str) -> bool:
    """Whether somebody has worked since a time on a run that started long ago, or on another with its run key."""
    return attempt is not None and run.whole and attempt.renewed >= before


def _why_damaged(run: StoredRun) -> str:
    return run.damaged or f"{run.files.path_of(MANIFEST)} names no run key"


def _is_raw(path: str) -> bool:
    name = path.rpartition("/")[2]
    return _RAW in name or name == EXCHANGES

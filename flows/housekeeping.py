"""Removing old runs and old cached answers, for the command and for a scheduled flow."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from prefect import flow, get_run_logger
from prefect.artifacts import acreate_table_artifact

from fathom.config.environment import Environment, artifact_root
from fathom.config.inputs import period
from fathom.config.secrets import Scrubber, guard_logs
from fathom.errors import RunBusy, StoreError
from fathom.flows.runs.following import name_follow_ups
from fathom.models import Model
from fathom.storage.cache import sweep
from fathom.storage.corpora import OldUploads, prune_uploads
from fathom.storage.ownership import Owners, Ownership
from fathom.storage.pruning import Kept, OldRun, Pruning, remove, survey
from fathom.storage.runs import StoredRun
from fathom.storage.store import ArtifactStore
from fathom.tasks.durable import run_store
from fathom.telemetry.logs import start_logs
from fathom.text.plain import counted, size


@flow(name="housekeeping", flow_run_name="older than {older_than}", retries=0)
async def housekeeping(
    older_than: str = "90d",
    keep_reports: bool = False,
    unfinished: bool = False,
    dry_run: bool = False,
    artifacts: str = "",
) -> None:
    """Remove old runs from the artifact store, as `fathom prune` does.

    Args:
        older_than: Since a run was last worked on. Example: `90d`
        keep_reports: Keep the reports, and remove only tool outputs and stored results.
        unfinished: Also remove runs that did not finish. They cannot be resumed then.
        dry_run: Only show what would be removed.
        artifacts: Where runs are stored. Empty: where the worker stores them. Example: `s3://bucket/fathom`
    """
    environment = Environment.read()
    start_logs(environment)
    guard_logs(Scrubber(environment.secrets))
    age, log = period(older_than, "older_than"), get_run_logger()
    store = run_store(artifact_root(artifacts or None))
    done = await prune(store, age, keep_reports=keep_reports, unfinished=unfinished, dry_run=dry_run)
    for kept in done.kept:
        log.warning("Kept %s: %s", kept.run_id[:8], kept.reason)
    log.info("In %s, %s.", store.address(), done.summary())
    await acreate_table_artifact(_table(done), key="housekeeping", description=f"### {done.summary()}")
    if done.failed:
        raise StoreError("Some old runs could not be removed; the log says why.", next_step="run it again")


def _table(done: Pruned) -> list[dict[str, str]]:
    removed = "would be removed" if done.dry_run else "removed"
    rows = [
        {"run": run.run_id[:8], "started": run.started[:10], "size": size(run.bytes), "what": f"{run.part} {removed}"}
        | {"question": run.query}
        for run in done.removed
    ]
    return rows + [
        {"run": kept.run_id[:8], "started": "", "size": "", "what": f"kept: {kept.reason}", "question": kept.query}
        for kept in done.kept
    ]


async def remove_run(run: StoredRun) -> None:
    """Remove a run of a store with all of its files; results that other runs of its key share stay.

    Nobody sees any more what Prefect still knows of it.

    Raises:
        RunBusy: a process works on it.
        StoreError: it cannot be removed.
    """
    before = datetime.now(UTC) + timedelta(seconds=1)  # times of a store are in whole seconds
    done = await remove(run.store, await survey(run.store, before, unfinished=True, only=run))
    if kept := next((kept for kept in done.kept if kept.run_id == run.run_id), None):
        error = StoreError if kept.failed else RunBusy
        raise error(f"The run {run.run_id[:8]} was not removed: {kept.reason}", next_step="try again in a minute")
    await Owners(run.store).record(run.run_id, Ownership(removed=True))
    for parent in {old.parent for old in done.runs} - {""}:
        await name_follow_ups(run.store, parent)


class Pruned(Model):
    """The removed runs and files, or with `dry_run` the ones to remove. `bytes` and `files` count the store's."""

    dry_run: bool
    before: str  # runs last worked on before then are old; ISO 8601, UTC
    removed: list[OldRun]
    kept: list[Kept]
    files: int
    bytes: int
    cache_files: int
    cache_bytes: int
    uploads: OldUploads = OldUploads()  # uploaded files that no corpus needs

    @property
    def failed(self) -> bool:
        """Whether something could not be removed."""
        return any(kept.failed for kept in self.kept)

    def summary(self) -> str:
        """Return a summary in one line."""
        verb = "would be removed" if self.dry_run else "removed"
        cache = f"; {size(self.cache_bytes)} of cached answers" if self.cache_files else ""
        old = self.uploads
        uploads = f"; {size(old.bytes)} of earlier uploads" if old.files else ""
        if not (self.removed or self.cache_files or old.files):
            return "nothing is that old"
        found = f"{counted(len(self.removed), 'run')}, {size(self.bytes)} in {counted(self.files, 'file')} {verb}"
        return found + cache + uploads


def _agreed(_found: Pruning, _uploads: OldUploads, _cache_files: int, _cache_bytes: int) -> bool:
    return True


async def prune(
    store: ArtifactStore,
    older_than: timedelta,
    *,
    keep_reports: bool = False,
    unfinished: bool = False,
    dry_run: bool = False,
    agreed: Callable[[Pruning, OldUploads, int, int], bool] = _agreed,
) -> Pruned:
    """Remove the runs of a store, and the cached answers of this machine, that are older than a period.

    Files that no corpus has needed for so long are removed, too. `agreed` is asked once it is known what would be
    removed: from the store, and files and bytes of the cache. Without its consent, nothing is removed.
    """
    before = datetime.now(UTC) - older_than
    found = await survey(store, before, keep_reports=keep_reports, unfinished=unfinished)
    cache = Environment.read().cache
    old = await prune_uploads(store, before, dry_run=True)
    dry_run = dry_run or not agreed(found, old, *sweep(cache, before.timestamp(), dry_run=True))
    done = found if dry_run else await remove(store, found)
    for parent in sorted({run.parent for run in done.runs if run.parent and not dry_run}):
        await name_follow_ups(store, parent)
    if not dry_run:  # after the runs, since some may have read the removed files
        old = await prune_uploads(store, before, dry_run=False)
    cache_files, cache_bytes = sweep(cache, before.timestamp(), dry_run=dry_run)
    return Pruned(
        dry_run=dry_run,
        before=done.before,
        removed=done.runs,
        kept=done.kept,
        files=sum(run.files for run in done.runs),
        bytes=sum(run.bytes for run in done.runs),
        cache_files=cache_files,
        cache_bytes=cache_bytes,
        uploads=old,
    )

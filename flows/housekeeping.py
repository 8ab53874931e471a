"""The flow that removes old runs from the artifact store, for a schedule."""

from __future__ import annotations

from prefect import flow, get_run_logger
from prefect.artifacts import acreate_table_artifact

from fathom.config.environment import Environment
from fathom.config.inputs import period
from fathom.config.secrets import Scrubber, guard_logs
from fathom.errors import StoreError
from fathom.flows.keeping import Pruned, prune
from fathom.flows.preflight import artifact_root
from fathom.tasks.durable import run_store
from fathom.telemetry.logs import start_logs
from fathom.text.plain import size


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

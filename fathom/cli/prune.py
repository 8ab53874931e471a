"""`fathom prune`: old runs are removed from the artifact store."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from fathom.cli.options import Json, Root
from fathom.cli.printing import line, one_line, output, row

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fathom.flows.keeping import Pruned
    from fathom.storage.corpora import OldUploads
    from fathom.storage.pruning import OldRun, Pruning


def prune(
    older_than: Annotated[
        str,
        typer.Option(
            "--older-than", metavar="PERIOD", help="Minimum time since a run was last active: 12h, 90d or 26w."
        ),
    ],
    *,
    keep_reports: Annotated[
        bool, typer.Option("--keep-reports", help="Keep the reports; remove only tool outputs and stored results.")
    ] = False,
    unfinished: Annotated[
        bool, typer.Option("--unfinished", help="Also remove unfinished runs, which then cannot be resumed.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would be removed.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Remove without asking for confirmation.")] = False,
    artifacts: Root = None,
    as_json: Json = False,
) -> None:
    """Remove old runs from the artifact store.

    Runs in progress are kept, and so are runs whose run key a newer run uses. The command also removes equally old
    answers from this machine's cache, and uploaded files that left their corpus that long ago, unless an unfinished run
    reads them. `fathom costs` no longer counts removed runs. With --keep-reports, runs can still be shown and exported
    but not verified or replayed. Exits with 1 if something could not be removed.

    Example: fathom prune --older-than 90d --keep-reports --dry-run
    """
    import asyncio

    from fathom.config.inputs import period
    from fathom.errors import InvalidInput
    from fathom.flows.keeping import prune as remove
    from fathom.flows.preflight import artifact_root
    from fathom.storage.atomic import OUTAGE_SECONDS
    from fathom.storage.store import ArtifactStore
    from fathom.text.plain import counted, joined, size

    age = period(older_than, "--older-than")
    store = ArtifactStore(artifact_root(artifacts), OUTAGE_SECONDS, lambda said: typer.echo(said, err=True))
    asking = not (dry_run or yes)
    if asking and (as_json or not sys.stdin.isatty()):
        raise InvalidInput(
            "Nothing was removed: please confirm.",
            next_step="add --yes, or look first with --dry-run",
        )

    def agreed(found: Pruning, uploads: OldUploads, cache_files: int, cache_bytes: int) -> bool:
        if not (asking and (found.keys or uploads.files or cache_files)):
            return True
        _show_runs(found.runs)
        parts = [f"{counted(len(found.runs), 'run')} from {store.address()}"] if found.keys else []
        parts += [f"{counted(cache_files, 'cached file')} ({size(cache_bytes)})"] if cache_files else []
        parts += [f"{counted(uploads.files, 'earlier upload')} ({size(uploads.bytes)})"] if uploads.files else []
        return typer.confirm(f"Remove {joined(parts, 'and')}?", err=True)

    done = asyncio.run(
        remove(store, age, keep_reports=keep_reports, unfinished=unfinished, dry_run=dry_run, agreed=agreed)
    )
    output(done, lambda done: _show(done, listed=asking), as_json=as_json)
    raise typer.Exit(1 if done.failed else 0)


def _show(done: Pruned, *, listed: bool) -> None:
    if not listed:
        _show_runs(done.removed)
    for kept in done.kept:
        row(f"{kept.run_id[:8]:8}  ", ("kept: ", "yellow"), one_line(kept.reason))
    line((done.summary(), "bold"))


def _show_runs(runs: Sequence[OldRun]) -> None:
    from fathom.text.plain import size

    what = {"run": "", "evidence": "evidence of: ", "leftovers": "left over of: "}
    for run in runs:
        started = run.started[:16].replace("T", " ")
        row(
            f"{one_line(run.run_id[:8]):8}  {started:16}  {size(run.bytes):>9}  ",
            what[run.part],
            one_line(run.query) or "a batch",
        )

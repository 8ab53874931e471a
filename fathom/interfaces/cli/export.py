"""`fathom export`, `import`, `delete` and `prune`: copying runs out of a store, adding them to one, removing them."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fathom.config.environment import Environment
from fathom.errors import InvalidInput, StoreError, UserError
from fathom.interfaces.cli.options import Json, Root, Run, store_of
from fathom.interfaces.cli.printing import line, one_line, output, row
from fathom.text.plain import counted, joined, size

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fathom.flows.housekeeping import Pruned
    from fathom.storage.bundles import Imported
    from fathom.storage.corpora import OldUploads
    from fathom.storage.pruning import OldRun, Pruning
    from fathom.storage.runs import StoredRun
    from fathom.storage.store import ArtifactStore, RunFolder


def export(
    run: Run,
    to: Annotated[
        str | None,
        typer.Option(
            "--to",
            metavar="FORMAT,...",
            help="Formats: md, html, json, docx, pdf (needs typst), xlsx, csv, bib or ris.",
        ),
    ] = None,
    bundle: Annotated[
        Path | None,
        typer.Option("--bundle", metavar="FILE", help="Write the whole run to a zip file for fathom import."),
    ] = None,
    *,
    out: Annotated[
        str,
        typer.Option(
            "--out",
            "-o",
            metavar="FOLDER",
            help="Folder to write to, by default the present one; created if missing.",
            show_default=False,
        ),
    ] = ".",
    artifacts: Root = None,
    as_json: Json = False,
) -> None:
    """Write a run's report in other formats, or a bundle of the run.

    BibTeX and RIS files contain only the references, csv only the tables. Needs no server. The files are named after
    the run's folder and replace the files of an earlier export. If a format needs a package that is not installed, or
    a table and the report has none, the other formats are still written and the exit code is 2. A bundle contains the
    full text of everything the run read; `fathom import` adds it to another store.

    Each file's path is printed.

    Example: fathom export 1a2b3c4d --to docx,pdf,bib -o reports
    """
    from fathom.flows.runs.stored import read_run
    from fathom.report.exporting import FORMATS, check_formats

    if (to is None) is (bundle is None):
        said = "Nothing to write was specified." if to is None else "--to and --bundle cannot be combined."
        raise InvalidInput(said, next_step="give either --to FORMAT or --bundle FILE")
    if bundle:
        if "://" in out:
            raise InvalidInput("A bundle is written to a local folder.", next_step="choose another --out")
        file = (Path(out).expanduser() / bundle).absolute()
        made = read_run(run, artifacts, lambda stored: _bundle(stored, file))
        output(made, lambda _made: typer.echo(made["bundle"]), as_json=as_json)
        return
    formats = check_formats(to or "")
    if Path(out).suffix.removeprefix(".").lower() in FORMATS and not Path(out).is_dir():
        raise InvalidInput(f"--out {out} names a file.", next_step="give a folder; the file is named after the run")
    paths, failed = read_run(run, artifacts, lambda stored: _exported(stored, formats, out))
    output(paths, lambda _paths: typer.echo("\n".join(paths.values()), nl=bool(paths)), as_json=as_json)
    for wanted, error in failed.items():
        typer.echo(f"fathom: {wanted} was not written: {error}", err=True)
    raise typer.Exit(2 if failed else 0)


async def _exported(run: StoredRun, formats: list[str], out: str) -> tuple[dict[str, str], dict[str, UserError]]:
    """Write a report in some formats; return the paths, and what failed, by format."""
    from fathom.report.exporting import export as render
    from fathom.report.exporting import files_for

    target = store_of(out)
    _check_target(run.store, target.address())
    folder = run.files
    rendered, failed = render(await _files(folder, files_for(formats)), formats)
    names = {wanted: f"{folder.folder.rpartition('/')[2]}.{wanted}" for wanted in rendered}
    try:
        for wanted, data in rendered.items():
            await target.write(names[wanted], data)
    except StoreError as error:
        raise InvalidInput(
            f"{target.address()} cannot be written: {getattr(error.__cause__, 'strerror', '') or error.__cause__}.",
            next_step="choose another --out",
        ) from error
    return {wanted: target.address(name) for wanted, name in names.items()}, failed


async def _bundle(run: StoredRun, file: Path) -> dict[str, str]:
    from fathom.storage.bundles import pack

    _check_target(run.store, str(file.parent.resolve()))
    hidden = file.with_name(f".{file.name}.part")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with hidden.open("wb") as target:
            await pack(run, target)
        hidden.replace(file)
    except OSError as error:
        raise InvalidInput(
            f"{file} cannot be written: {error.strerror}.", next_step="choose another --bundle"
        ) from error
    finally:
        hidden.unlink(missing_ok=True)
    return {"bundle": str(file)}


def _check_target(store: ArtifactStore, folder: str) -> None:
    """Check that no file is written among the runs, where `fathom verify` checks every file."""

    if f"{folder}/".startswith(f"{store.address('research_artifacts')}/"):
        raise InvalidInput(
            f"{folder} contains the evidence of runs: another file there would look like tampering.",
            next_step="choose another folder",
        )


async def _files(folder: RunFolder, names: Sequence[str]) -> dict[str, bytes]:
    from fathom.flows.runs.stored import no_report

    files: dict[str, bytes] = {}
    for name in names:
        try:
            files[name] = await folder.load(name)
        except FileNotFoundError:
            raise await no_report(folder) from None
    return files


def import_(
    file: Annotated[Path, typer.Argument(help="Zip file written by fathom export RUN --bundle FILE.")],
    artifacts: Root = None,
    as_json: Json = False,
) -> None:
    """Add a run from a bundle to the artifact store.

    Needs no server. The whole bundle is checked before anything is written. Exits with 2 if the bundle is damaged or
    dangerous, or if the store already has the run. `fathom verify` can then check the run, as in its original store.

    Example: fathom import run.zip --artifacts s3://bucket/fathom
    """

    from fathom.report.html import unsafe
    from fathom.storage.bundles import unpack
    from fathom.storage.runs import remember

    store = store_of(artifacts)
    run = asyncio.run(unpack(store, file, unsafe))
    remember(store.address(), Environment.read())
    output(run, _show_imported, as_json=as_json)


def _show_imported(run: Imported) -> None:

    row(("  question ", "dim"), one_line(run.query))
    row(("  files    ", "dim"), f"{counted(run.files, 'file')}, {size(run.bytes)}, in {run.folder}")
    if not run.replayable:
        why = "it cannot be replayed here: its stored results were not in the bundle, or are others in this store"
        row(("  notice   ", "dim"), why)
    row(("  check it ", "dim"), f"fathom verify {run.run_id[:8]}")


def delete(
    run: Run,
    *,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Delete without asking for confirmation.")] = False,
    artifacts: Root = None,
    as_json: Json = False,
) -> None:
    """Delete a run, with its report and everything that it read.

    Its follow-ups stay. A run in progress is not deleted: cancel it first. `fathom costs` no longer counts the run.
    `fathom prune` deletes all runs of some age.

    Example: fathom delete 1a2b3c4d
    """
    from fathom.flows.housekeeping import remove_run
    from fathom.flows.runs.stored import read_run

    if not yes and (as_json or not sys.stdin.isatty()):
        raise InvalidInput("Nothing was deleted: please confirm.", next_step="add --yes")

    async def remove(stored: StoredRun) -> dict[str, str]:
        if not yes and not typer.confirm(f"Delete the run {stored.run_id[:8]}, “{one_line(stored.query)}”?", err=True):
            raise typer.Exit(1)
        await remove_run(stored)
        return {"deleted": stored.run_id, "question": stored.query}

    def show(deleted: dict[str, str]) -> None:
        line(f"Deleted the run {deleted['deleted'][:8]}: {one_line(deleted['question'])}")

    output(read_run(run, artifacts, remove), show, as_json=as_json)


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

    from fathom.config.inputs import period
    from fathom.flows.housekeeping import prune as remove

    age = period(older_than, "--older-than")
    store = store_of(artifacts, patient=True)
    asking = not (dry_run or yes)
    if asking and (as_json or not sys.stdin.isatty()):
        raise InvalidInput("Nothing was removed: please confirm.", next_step="add --yes, or look first with --dry-run")

    def agreed(found: Pruning, uploads: OldUploads, cache_files: int, cache_bytes: int) -> bool:
        if not (asking and (found.keys or uploads.files or cache_files)):
            return True
        _show_runs(found.runs)
        runs = f"{counted(len(found.runs), 'run')} from {store.address()}" if found.keys else ""
        cached = f"{counted(cache_files, 'cached file')} ({size(cache_bytes)})" if cache_files else ""
        uploaded = f"{counted(uploads.files, 'earlier upload')} ({size(uploads.bytes)})" if uploads.files else ""
        return typer.confirm(f"Remove {joined([*filter(None, (runs, cached, uploaded))], 'and')}?", err=True)

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

    what = {"run": "", "evidence": "evidence of: ", "leftovers": "left over of: "}
    for run in runs:
        started = run.started[:16].replace("T", " ")
        row(
            f"{one_line(run.run_id[:8]):8}  {started:16}  {size(run.bytes):>9}  ",
            what[run.part],
            one_line(run.query) or "a batch",
        )

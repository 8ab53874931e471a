"""`fathom export`: a run's report in other formats."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from flows.cli.options import Json, Root, Run
from flows.cli.printing import output

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fathom.storage.store import ArtifactStore, RunFolder


def export(
    run: Run,
    to: Annotated[
        str,
        typer.Option("--to", metavar="FORMAT,...", help="md, html, json, docx, pdf (needs typst), bib or ris."),
    ],
    out: Annotated[str, typer.Option("--out", metavar="FOLDER", help="Where to write; created if missing.")] = ".",
    artifacts: Root = None,
    as_json: Json = False,
) -> None:
    """Write a run's report in other formats.

    BibTeX and RIS contain the references only. Needs no server. The files are named after the run's folder and replace
    those of an earlier export. What can be written is; exits with 2 if a format needs a package that is not installed.

    Example: fathom export 1a2b3c4d --to docx,pdf,bib
    """
    from fathom.errors import InvalidInput, StoreError
    from fathom.report.exporting import check_formats, files_for
    from fathom.report.exporting import export as render
    from fathom.storage.store import ArtifactStore
    from flows.preflight import artifact_root
    from flows.runs import folder_of, read_run

    formats = check_formats(to)

    failed: dict[str, InvalidInput] = {}

    async def exported(store: ArtifactStore, manifest: dict[str, Any]) -> dict[str, str]:
        target = ArtifactStore(artifact_root(out))
        # `fathom verify` checks every file among the runs.
        if f"{target.address()}/".startswith(f"{store.address('research_artifacts')}/"):
            raise InvalidInput(
                f"{target.address()} contains the evidence of runs: another file there would look like tampering.",
                next_step="choose another --out",
            )
        folder = folder_of(store, manifest)
        rendered, not_rendered = render(await _files(folder, files_for(formats)), formats)
        failed.update(not_rendered)
        names = {wanted: f"{folder.folder.rpartition('/')[2]}.{wanted}" for wanted in rendered}
        try:
            for wanted, data in rendered.items():
                await target.write(names[wanted], data)
        except StoreError as error:
            raise InvalidInput(
                f"{target.address()} cannot be written: {error.__cause__}.", next_step="choose another --out"
            ) from error
        return {wanted: target.address(name) for wanted, name in names.items()}

    paths = read_run(run, artifacts, exported)
    output(paths, lambda _paths: typer.echo("\n".join(paths.values()), nl=bool(paths)), as_json=as_json)
    for wanted, error in failed.items():
        typer.echo(f"fathom: {wanted} was not written: {error}", err=True)
    raise typer.Exit(2 if failed else 0)


async def _files(folder: RunFolder, names: Sequence[str]) -> dict[str, bytes]:
    from flows.runs import no_report

    files: dict[str, bytes] = {}
    for name in names:
        try:
            files[name] = await folder.load(name)
        except FileNotFoundError:
            raise await no_report(folder) from None
    return files

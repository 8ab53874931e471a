"""The command that writes a run's report in other formats: `export`."""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated

import typer

from fathom.errors import InvalidInput, StoreError
from flows.cli.options import Json, Root, Run

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from fathom.storage.store import ArtifactStore, RunFolder

commands = typer.Typer()


@commands.command()
def export(
    run: Run,
    to: Annotated[
        str, typer.Option("--to", metavar="FORMAT,...", help="md, html, json, docx, pdf, bib or ris; pdf is an extra.")
    ],
    out: Annotated[str, typer.Option("--out", metavar="FOLDER", help="Where to write; made if need be.")] = ".",
    artifacts: Root = None,
    as_json: Json = False,
) -> None:
    """Write a run's report as Markdown, HTML, JSON, DOCX or PDF, or its references as BibTeX or RIS.

    Needs no server. The files are named after the run's folder, and replace those of an earlier export.

    Example: fathom export 1a2b3c4d --to docx,pdf,bib
    """
    from fathom.report.exporting import check_formats, files_for
    from fathom.report.exporting import export as render
    from fathom.storage.store import ArtifactStore, RunFolder
    from flows.preflight import artifact_root
    from flows.runs import find, locate

    formats = check_formats(to)
    root, name = locate(run, artifact_root(artifacts))

    async def exported() -> dict[str, str]:
        store, target = ArtifactStore(root), ArtifactStore(artifact_root(out))
        _check_target(target, store)
        folder = RunFolder(store, str((await find(store, name))["folder"]))
        rendered = render(await _files(folder, files_for(formats)), formats)
        title = folder.folder.rpartition("/")[2]
        return await _write(target, {wanted: (f"{title}.{wanted}", data) for wanted, data in rendered.items()})

    paths = asyncio.run(exported())
    typer.echo(json.dumps(paths, indent=2, ensure_ascii=False) if as_json else "\n".join(paths.values()))


def _check_target(target: ArtifactStore, store: ArtifactStore) -> None:
    """Refuse to write among the runs, for each file of which `fathom verify` answers."""
    if f"{target.address()}/".startswith(f"{store.address('research_artifacts')}/"):
        raise InvalidInput(
            f"{target.address()} holds evidence of runs: another file there would look like tampering.",
            next_step="choose another --out",
        )


async def _files(folder: RunFolder, names: Sequence[str]) -> dict[str, bytes]:
    """Return files of a run.

    Raises:
        InvalidInput: it lacks one, so it has no report.
    """
    files: dict[str, bytes] = {}
    for name in names if folder.folder else []:  # a run that was never begun has no folder
        with suppress(FileNotFoundError):
            files[name] = await folder.load(name)
    if missing := [name for name in names if name not in files]:
        raise InvalidInput(
            f"The run has no {missing[0]}: it has not finished, or found nothing to report.",
            next_step="fathom runs says how it ended; fathom resume RUN finishes it",
        )
    return files


async def _write(target: ArtifactStore, files: Mapping[str, tuple[str, bytes]]) -> dict[str, str]:
    """Write files by format, each whole or not at all, and return their paths."""
    try:
        for name, data in files.values():
            await target.write(name, data)
    except StoreError as error:
        raise InvalidInput(
            f"{target.address()} cannot be written: {error.__cause__}.", next_step="choose another --out"
        ) from error
    return {wanted: target.address(name) for wanted, (name, _) in files.items()}

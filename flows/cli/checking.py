"""The commands that check a run again from what it has stored: `verify`, `trace`, `audit` and `replay`."""

from __future__ import annotations

import asyncio
import json
from dataclasses import asdict
from typing import Annotated

import typer

from flows.cli.options import Json, Root, Run

commands = typer.Typer()


@commands.command()
def verify(run: Run, artifacts: Root = None, as_json: Json = False) -> None:
    """Check every file, quote and verdict of a run again. Needs no server, no network and no model.

    Exits with 1 when a byte was changed or a check comes out differently, and names the file and the claim.

    Example: fathom verify 1a2b3c4d
    """
    from fathom.evidence.verify import verify_run
    from flows.cli.claims import files_of, show_verification

    found = verify_run(asyncio.run(files_of(run, artifacts)))
    if as_json:
        typer.echo(found.model_dump_json(indent=2))
    else:
        show_verification(found)
    raise typer.Exit(0 if found.ok else 1)


@commands.command()
def trace(
    run: Run,
    number: Annotated[int, typer.Argument(metavar="N", help="The claim's number, as `fathom verify` lists it.")],
    artifacts: Root = None,
    as_json: Json = False,
) -> None:
    """Follow one claim of a report back to the bytes that support it. Needs no server, no network and no model.

    Exits with 1 when the stored bytes no longer say what is quoted.

    Example: fathom trace 1a2b3c4d 7
    """
    from fathom.evidence.trace import trace as follow
    from fathom.evidence.verify import misquotations
    from flows.cli.claims import files_of, recorded, show_trace

    files = asyncio.run(files_of(run, artifacts))
    found = follow(recorded(files), files, number)
    if as_json:
        typer.echo(found.model_dump_json(indent=2))
    else:
        show_trace(found)
    changed = sorted({f"{problem.file}: {problem.message}" for problem in misquotations(found.claim, files)})
    for line in changed:
        typer.echo(f"fathom: {line}", err=True)
    raise typer.Exit(1 if changed else 0)


@commands.command()
def audit(
    run: Run,
    artifacts: Root = None,
    as_json: Json = False,
) -> None:
    """Show what was done in a run, by whom and when, and check that nobody changed that log. Needs no server.

    Exits with 1 when an event was changed, moved or removed, and names the first such line.

    Example: fathom audit 1a2b3c4d
    """
    from fathom.storage.store import ArtifactStore
    from flows.cli.audit import audit as read
    from flows.cli.audit import show_audit
    from flows.preflight import artifact_root
    from flows.runs import locate

    root, name = locate(run, artifact_root(artifacts))
    found = asyncio.run(read(ArtifactStore(root), name))
    if as_json:
        typer.echo(found.model_dump_json(indent=2))
    else:
        show_audit(found)
    raise typer.Exit(0 if found.whole else 1)


@commands.command()
def replay(
    run: Run,
    artifacts: Root = None,
    as_json: Json = False,
) -> None:
    """Do a finished run again from its recorded calls, and compare what comes out byte by byte.

    Asks no provider and needs no server. Exits with 1 when a file differs or a call has no record.

    Example: fathom replay 1a2b3c4d
    """
    from fathom.storage.store import ArtifactStore
    from flows.cli.screen import show_replayed
    from flows.preflight import artifact_root
    from flows.replay import ReplayedFile
    from flows.replay import replay as do_again
    from flows.runs import find, locate

    root, name = locate(run, artifact_root(artifacts))

    async def replayed() -> list[ReplayedFile]:
        store = ArtifactStore(root)
        return await do_again(store, await find(store, name))

    files = asyncio.run(replayed())
    if as_json:
        typer.echo(json.dumps([asdict(file) for file in files], indent=2))
    else:
        show_replayed(files)
    raise typer.Exit(0 if all(file.state == "same" for file in files) else 1)

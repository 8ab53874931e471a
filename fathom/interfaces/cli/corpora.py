"""`fathom corpora`: sets of files on the artifact store, which runs on any machine can read."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Annotated

import typer

from fathom.config.environment import Environment, artifact_root
from fathom.errors import StoreError
from fathom.interfaces.cli.options import Group, Json, Root, store_of
from fathom.interfaces.cli.printing import line, one_line, output, row
from fathom.text.plain import counted, size

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fathom.models import UnreadFile
    from fathom.storage.corpora import CorpusStore
    from fathom.storage.editions import Edition
    from fathom.tools.documents.corpus import CorpusReading

corpora = Group(
    name="corpora",
    help="Upload files that runs on any machine can read.\n\nStart with: fathom corpora add handbook handbook/",
)
Name = Annotated[str, typer.Argument(help="Name of the corpus.", show_default=False)]
SHOWN = 20


def _corpora(artifacts: str | None) -> CorpusStore:
    from fathom.storage.corpora import CorpusStore

    return CorpusStore(store_of(artifacts, patient=True))


@corpora.command("add")
def add(
    name: Name,
    paths: Annotated[
        list[str], typer.Argument(metavar="PATH...", help="Files and folders to upload.", show_default=False)
    ],
    *,
    shared: Annotated[
        bool, typer.Option("--shared", help="Let everyone who can ask questions on a server of this store read it.")
    ] = False,
    artifacts: Root = None,
    as_json: Json = False,
) -> None:
    """Upload files to a new or existing corpus.

    The command says which files cannot be read. A file replaces the corpus file of the same name; a file from a folder
    is named by its path within the folder. Runs that have already started keep the files they started with. To research
    a corpus, use --corpus NAME.

    Example: fathom corpora add handbook handbook/ contract.pdf
    """

    from fathom.storage.runs import remember
    from fathom.tools.documents.uploads import examine, local_files, sorted_out

    files, left_out = sorted_out(local_files(paths))
    corpora = _corpora(artifacts)

    async def added() -> tuple[Edition, CorpusReading]:
        if await corpora.find(name) is None:
            edition = await corpora.create(name, files, left_out, shared=shared)
        else:
            edition = await corpora.add(name, files, left_out)
            if shared and not edition.shared:
                edition = await corpora.share(name, shared=True)
        return edition, await examine(corpora, edition)

    edition, reading = asyncio.run(added())
    remember(artifact_root(artifacts), Environment.read())

    def show(_: object) -> None:
        line(f"Added {counted(len(files), 'file')}.")
        _show_summary(edition, reading)
        _show_unread([*edition.left_out, *reading.unread])

    output({"corpus": edition, "reading": reading}, show, as_json=as_json)


@corpora.command("list")
def list_(*, artifacts: Root = None, as_json: Json = False) -> None:
    """List the corpora in the store.

    Without --artifacts, the command also names the other stores on this machine that have corpora.

    Example: fathom corpora list
    """

    def show(found: Sequence[Edition]) -> None:
        _show_all(found)
        elsewhere = {} if artifacts else asyncio.run(_elsewhere())
        if elsewhere:
            line(("\nStored elsewhere; to use one, add --artifacts FOLDER:", "dim"))
        for store, names in elsewhere.items():
            row(f"  {one_line(store)}  ", one_line(", ".join(names)))

    output(asyncio.run(_corpora(artifacts).all()), show, as_json=as_json)


async def _elsewhere() -> dict[str, list[str]]:
    """Return the names of the corpora in the other stores that the user has used on this machine, by store."""
    from fathom.storage.runs import other_stores

    found: dict[str, list[str]] = {}
    for address in other_stores(artifact_root(), Environment.read()):
        if "://" not in address:
            try:
                found[address] = [edition.name for edition in await _corpora(address).all() if not edition.temporary]
            except StoreError:  # it is only a hint
                continue
    return {address: names for address, names in found.items() if names}


@corpora.command("show")
def show(name: Name, *, artifacts: Root = None, as_json: Json = False) -> None:
    """Show the files of a corpus and which of them cannot be read.

    Example: fathom corpora show handbook
    """

    from fathom.tools.documents.uploads import examine

    corpora = _corpora(artifacts)

    async def found() -> tuple[Edition, CorpusReading]:
        edition = await corpora.get(name)
        return edition, await examine(corpora, edition)

    edition, reading = asyncio.run(found())
    output({"corpus": edition, "reading": reading}, lambda _: _show_one(edition, reading), as_json=as_json)


@corpora.command("remove")
def remove(
    name: Name,
    file: Annotated[str | None, typer.Argument(help="Remove only this file.", show_default=False)] = None,
    *,
    artifacts: Root = None,
) -> None:
    """Remove a corpus, or one of its files.

    Runs that have started to read the corpus are not affected. `fathom prune` later deletes the files from the store.

    Example: fathom corpora remove handbook
    """

    corpora = _corpora(artifacts)
    asyncio.run(corpora.drop(name, file) if file else corpora.remove(name))
    line(f"Removed {one_line(file)} from {one_line(name)}." if file else f"Removed {one_line(name)}.")


def _show_all(found: Sequence[Edition]) -> None:

    if not found:
        line("No corpora.")
        return
    width = max(len(edition.name) for edition in found)
    for edition in found:
        files, owner = counted(len(edition.files), "file"), one_line(edition.owner)
        whose = " ".join(filter(None, (owner, "shared" if edition.shared else "")))
        row(f"{edition.name:{width}}  {edition.changed[:10]}  {size(edition.bytes):>9}  ", f"{files:>11}  ", whose)


def _show_summary(edition: Edition, reading: CorpusReading) -> None:
    read = f"{counted(reading.documents, 'document')} with {counted(reading.words, 'word')} can be read"
    line((edition.name, "bold"), f": {counted(len(edition.files), 'file')}, {size(edition.bytes)}; {read}")


def _show_one(edition: Edition, reading: CorpusReading) -> None:
    _show_summary(edition, reading)
    for file in edition.files:
        row(f"  {size(file.bytes):>9}  ", one_line(file.name))
    _show_unread([*edition.left_out, *reading.unread])


def _show_unread(files: Sequence[UnreadFile]) -> None:
    for file in files[:SHOWN]:
        row(("not read: ", "yellow"), f"{one_line(file.path)}: {file.reason}")
    if len(files) > SHOWN:
        line((f"and {len(files) - SHOWN:,} more", "dim"))

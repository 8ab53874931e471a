"""`fathom links`: seeing and removing the links that share runs of a server."""

from __future__ import annotations

import asyncio
from typing import Annotated

import typer

from fathom.errors import NotThere
from fathom.interfaces.cli.options import Group, Json, Root, store_of
from fathom.interfaces.cli.printing import line, one_line, output

links = Group(
    name="links",
    help="List and remove the links to runs that people made on a server.\n\nStart with: fathom links list",
)


@links.command("list")
def list_(artifacts: Root = None, as_json: Json = False) -> None:
    """List the links to all runs. Their addresses are not stored.

    Example: fathom links list
    """

    from fathom.client.shapes import ShareLink
    from fathom.flows.runs.index import RunIndex
    from fathom.service.links import ShareLinks

    async def read() -> list[tuple[str, str, ShareLink]]:
        store = store_of(artifacts)
        asked = {run.run_id: run.query for run in await RunIndex(store).read()}
        found = await ShareLinks(store).everywhere()
        return [(run_id, asked.get(run_id, ""), link) for run_id, links in found.items() for link in links]

    found = sorted(asyncio.run(read()), key=lambda one: one[2].created)

    def show(_found: object) -> None:
        if not found:
            line("No links. People make them with *Share* below a report of fathom serve.")
        for run_id, question, link in found:
            who = "anyone" if link.public else "signed in"
            line(f"{link.id}  {link.created[:10]}  {who:<9}  {link.by}  {run_id[:8]}  {one_line(question)}")

    shown = [{"run_id": run_id, "question": question, **one.model_dump(mode="json")} for run_id, question, one in found]
    output(shown, show, as_json=as_json)


@links.command()
def revoke(
    link: Annotated[str, typer.Argument(help="Id of the link, as `fathom links list` prints it.")],
    artifacts: Root = None,
    as_json: Json = False,
) -> None:
    """Remove a link. Whoever came by it may no longer read the run.

    Example: fathom links revoke 3f9c1a7be204
    """

    from fathom.service.activity import Action, ActivityLog
    from fathom.service.caller import AccessRole, Caller
    from fathom.service.links import ShareLinks
    from fathom.service.tokens import LOCAL_NAME

    async def remove() -> str:
        store = store_of(artifacts)
        found = await ShareLinks(store).everywhere()
        run_id = next((run_id for run_id, made in found.items() if link in {one.id for one in made}), "")
        if not run_id:
            raise NotThere(f"There is no link {link[:60]!r}.", next_step="fathom links list")
        await ShareLinks(store).remove(run_id, link)
        await ActivityLog(store).note(run_id, Caller(LOCAL_NAME, AccessRole.admin), Action.unlinked, link)
        return run_id

    run_id = asyncio.run(remove())
    output({"id": link, "run_id": run_id}, lambda _: line(f"Removed the link {link} to {run_id[:8]}."), as_json=as_json)

"""`fathom watch`: questions that are asked again on a schedule, and what changed between their runs."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fathom.errors import InvalidInput
from fathom.interfaces.cli.options import Group, Json, Quiet, Root, SettingsCommand, given_options, store_of
from fathom.interfaces.cli.printing import digits_of, line, one_line, only_searched, output, row
from fathom.interfaces.cli.runs import show_changed

if TYPE_CHECKING:
    from prefect.client.schemas.objects import FlowRun

    from fathom.changes.model import Changes
    from fathom.flows.watches import WatchedQuestion
    from fathom.models import RunResult
    from fathom.storage.runs import StoredRun

watch = Group(
    name="watch",
    help="Ask a question regularly and show what changed.\n\n"
    'Start with: fathom watch add "What does the Pro plan cost?" --every 1d --docs prices/',
)
Name = Annotated[str, typer.Argument(metavar="NAME", help="Name of the watch, as fathom watch list shows it.")]


@watch.command(cls=SettingsCommand)
def add(
    query: Annotated[str, typer.Argument(help="The question, in quotes.", show_default=False)],
    *,
    every: Annotated[str | None, typer.Option(metavar="TIME", help="How often to ask: 30m, 6h, 1d, 2w.")] = None,
    cron: Annotated[
        str | None, typer.Option(metavar="CRON", help="When to ask, as a cron expression such as '0 6 * * 1-5'.")
    ] = None,
    timezone: Annotated[str, typer.Option(metavar="ZONE", help="Time zone of --cron, such as Europe/Berlin.")] = "UTC",
    name: Annotated[
        str | None, typer.Option(metavar="NAME", help="Name of the watch (default: derived from the question).")
    ] = None,
    notify: Annotated[str | None, typer.Option(metavar="URL", help="Webhook to call when a run has finished.")] = None,
    only_changes: Annotated[
        bool, typer.Option("--only-changes", help="Call the webhook only when something changed.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Ask a question on a schedule and report what changed.

    Each run reads the web again and is compared with the previous run, by what their sources say. The runs need a
    worker: `fathom worker`.

    Example: fathom watch add "What does the Pro plan cost?" --every 1d --notify https://hooks.example.org/abc
    """

    from fathom.flows.preflight import check_request
    from fathom.flows.server import ensure_api

    if only_changes and not notify:
        raise InvalidInput("--only-changes needs a webhook.", next_step="give its address: --notify URL")
    given = given_options()
    settings = given.over_defaults()
    if "library" not in given.chosen():  # a watch reads what is new, unless it is told otherwise itself
        settings = settings.model_copy(update={"library": False})
    request = check_request(query, settings)
    ensure_api()

    async def made() -> WatchedQuestion:
        from fathom.flows import notifying, watches

        schedule = watches.schedule_of(every, cron, timezone)
        url = notifying.check_webhook(notify) if notify else None
        own = watches.name_of(name or request.query)
        found = await watches.add(own, request.query, request.settings, schedule)
        if url:
            occasions = ["changed"] if only_changes else ["completed", "degraded", "failed"]
            try:
                await notifying.add(own, occasions, webhook=url, watch=own)
            except BaseException:
                await watches.remove(found)  # all or nothing
                raise
        return found

    found = asyncio.run(made())
    if request.searched:
        typer.echo(f"fathom: {only_searched(request.searched)}", err=True)
    output(found, lambda one: _show_added(one, request.notices), as_json=as_json)


def _show_added(found: WatchedQuestion, notices: Sequence[str]) -> None:
    for notice in notices:
        line((notice, "yellow"))
    _show([found])
    row(("  first run   ", "dim"), f"at its scheduled time; to run it now: fathom watch run {found.name}")
    row(("  runs on     ", "dim"), "a worker; start one with: fathom worker")


@watch.command("list")
def show_all(as_json: Json = False) -> None:
    """List the watches with their schedules.

    Example: fathom watch list
    """

    from fathom.flows.server import ensure_api

    ensure_api()
    from fathom.flows import watches

    output(asyncio.run(watches.all_watches()), _show, as_json=as_json)


def _show(found: Sequence[WatchedQuestion]) -> None:
    if not found:
        line('No watches. Add one with: fathom watch add "..." --every 1d')
    for one in found:
        line((one.name, "bold"), f"  {one.schedule}, {one.state}")
        row(("  question    ", "dim"), one_line(one.question))
        if one.next_run:
            row(("  next run    ", "dim"), f"{one.next_run[:16].replace('T', ' ')} UTC")
        row(("  deployment  ", "dim"), one.deployment)


@watch.command()
def pause(name: Name) -> None:
    """Start no new runs of a watch until it is resumed.

    Example: fathom watch pause plan-prices
    """
    _change(name, "pause", "paused")


@watch.command()
def resume(name: Name) -> None:
    """Resume the schedule of a paused watch.

    Example: fathom watch resume plan-prices
    """
    _change(name, "resume", "active")


def _change(name: str, action: str, done: str) -> None:

    from fathom.flows.server import ensure_api

    ensure_api()

    async def change() -> None:
        from fathom.flows import watches

        await getattr(watches, action)(await watches.find(name))

    asyncio.run(change())
    line(f"{name} is {done}.")


@watch.command()
def remove(name: Name) -> None:
    """Remove a watch and its notifications; its runs are kept.

    Example: fathom watch remove plan-prices
    """

    from fathom.flows.server import ensure_api

    ensure_api()

    async def removed() -> list[str]:
        from fathom.flows import notifying, watches

        found = await watches.find(name)
        await watches.remove(found)
        return await notifying.remove_of(found.name)

    told = asyncio.run(removed())
    line(f"Removed {name}" + (f" and its notifications: {', '.join(told)}" if told else "") + ".")


@watch.command()
def run(
    name: Annotated[
        str | None,
        typer.Argument(metavar="NAME", help="Name of the watch (default: the only one)."),
    ] = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Run a watch now, in this process, and show what changed.

    Example: fathom watch run plan-prices
    """
    from fathom.interfaces.cli.research import follow

    def start() -> Awaitable[FlowRun]:
        from fathom.flows import watches

        return watches.start(name)

    follow(start, [], open_it=False, quiet=quiet, as_json=as_json)


@watch.command()
def history(name: Name, artifacts: Root = None, as_json: Json = False) -> None:
    """List the runs of a watch and what changed in each.

    Needs no server.

    Example: fathom watch history plan-prices
    """

    from fathom.flows.runs.comparing import runs_of
    from fathom.flows.runs.stored import changes_of

    store = store_of(artifacts)

    async def entries() -> list[dict[str, Any]]:
        found = await runs_of(store, lambda run: run.watch_name == name)
        return [_entry(run, result, await changes_of(result) if result else None) for run, result in found]

    found = asyncio.run(entries())
    if not found:
        how = "fathom watch list shows the watches; --artifacts says where their runs are"
        raise InvalidInput(f"No finished run of a watch {name!r} in {store.address()}.", next_step=how)
    output(found, _show_history, as_json=as_json)


def _entry(run: StoredRun, result: RunResult | None, comparison: Changes | None) -> dict[str, Any]:
    from fathom.models import RunState

    return {
        "run_id": run.run_id,
        "started": run.started,
        "ending": (result.status if result else RunState.unreadable).value,
        "changes": result.changes if result else "",
        "comparison": comparison,
        "folder": run.folder,
    }


def _show_history(entries: Sequence[dict[str, Any]]) -> None:
    digits = digits_of([entry["run_id"] for entry in entries])
    for entry in entries:
        run, started = entry["run_id"][:digits], entry["started"][:16].replace("T", " ")
        head = f"{run}  {started}  {entry['ending'].replace('_', ' ')}  "
        row((head, "dim"), entry["changes"] or "not compared")
        if entry["comparison"]:
            show_changed(entry["comparison"], indent="  ")

"""`fathom notify`: notifications when an answer changed or a run failed."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from fathom.errors import InvalidInput
from fathom.interfaces.cli.options import Group, Json
from fathom.interfaces.cli.printing import line, one_line, output

if TYPE_CHECKING:
    from fathom.flows.notifying import Notification

notify = Group(
    name="notify",
    help="Notify a webhook or a Slack channel of what happens to runs.\n\n"
    "Start with: fathom notify add --webhook https://hooks.example.org/abc --on changed,failed",
)


@notify.command()
def add(
    *,
    on: Annotated[
        list[str] | None,
        typer.Option(metavar="WHAT,...", help="Events: changed, completed, degraded, failed, budget; repeatable."),
    ] = None,
    webhook: Annotated[
        str | None, typer.Option(metavar="URL", help="Webhook that receives each event as JSON.")
    ] = None,
    slack_block: Annotated[
        str | None, typer.Option(metavar="NAME", help="Slack Webhook block in Prefect that sends the messages.")
    ] = None,
    watch: Annotated[
        str | None, typer.Option(metavar="NAME", help="Only runs of this watch (default: all runs).")
    ] = None,
    name: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Name of the notification (default: derived from the other options)."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Notify a webhook or a Slack channel of what happens to runs.

    The address of the webhook is stored in a Prefect block and never shown again.

    Example: fathom notify add --webhook https://hooks.example.org/abc --on changed --watch plan-prices
    """

    from fathom.flows.server import ensure_api
    from fathom.storage.names import slug

    if bool(webhook) == bool(slack_block):
        raise InvalidInput("Give --webhook or --slack-block.", next_step="fathom notify add --help")
    ensure_api()

    async def made() -> Notification:
        from fathom.flows import notifying, watches

        occasions = notifying.check_occasions(on or [])
        url = notifying.check_webhook(webhook) if webhook else None
        of = (await watches.find(watch)).name if watch else ""
        chosen = slug(name or " ".join([of or "all", *occasions])).replace("_", "-")
        return await notifying.add(chosen, occasions, webhook=url, slack_block=slack_block, watch=of)

    output(asyncio.run(made()), lambda one: _show([one]), as_json=as_json)


@notify.command("list")
def show_all(as_json: Json = False) -> None:
    """List the notifications; webhook addresses are not shown.

    Example: fathom notify list
    """

    from fathom.flows.server import ensure_api

    ensure_api()
    from fathom.flows import notifying

    output(asyncio.run(notifying.all_notifications()), _show, as_json=as_json)


def _show(found: Sequence[Notification]) -> None:
    if not found:
        line("No notifications. Add one with: fathom notify add")
    for one in found:
        of = f"the watch {one.watch}" if one.watch else "all runs"
        off = "" if one.enabled else "  (paused in Prefect)"
        line((one_line(one.name), "bold"), f"  {one.to}  on {', '.join(one.on)} of {one_line(of)}{off}")


@notify.command()
def remove(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="Name of the notification, as fathom notify list shows it.")
    ],
) -> None:
    """Remove a notification and its stored webhook.

    Example: fathom notify remove all-failed
    """

    from fathom.flows.server import ensure_api

    ensure_api()
    from fathom.flows import notifying

    asyncio.run(notifying.remove(name))
    line(f"Removed {name}.")

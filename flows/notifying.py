"""Notifications: Prefect automations that wait for Fathom's events, and blocks that hold the addresses.

The address of a webhook is often a secret. It is kept in a block only, which Prefect stores encrypted, and never shown.
Imports Prefect: call `fathom.flows.server.ensure_api` first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID

from prefect.automations import Automation
from prefect.blocks.webhook import Webhook
from prefect.client.orchestration import PrefectClient
from prefect.events.actions import CallWebhook, SendNotification
from prefect.events.schemas.automations import EventTrigger, Posture
from prefect.exceptions import ObjectNotFound

from fathom.errors import InvalidInput
from fathom.tasks import events
from fathom.tasks.clients import prefect_client

ON = {
    "changed": events.CHANGED,
    "completed": "fathom.run.completed",
    "degraded": "fathom.run.degraded",
    "failed": events.FAILED,
    "budget": events.BUDGET,
    "waiting": events.WAITING,
}
"""The Prefect event of each occasion."""
_PREFIX = "fathom-notify-"
# The payload is JSON already; `tojson` keeps quotes in a question from breaking it.
_PAYLOAD = "{{ event.payload|tojson }}"
_SUBJECT, _TEXT = "Fathom: {{ event.payload.slack.question }}", "{{ event.payload.slack.text }}"


@dataclass(frozen=True)
class Notification:
    """A notification; `watch` is empty if it covers every run."""

    name: str
    on: list[str]
    watch: str
    to: str  # webhook, or Slack and the name of its block
    enabled: bool


def check_occasions(on: Sequence[str]) -> list[str]:
    """Return occasions, each once.

    Raises:
        InvalidInput: one is unknown, or there is none.
    """
    names = list(dict.fromkeys(name.strip() for some in on for name in some.split(",") if name.strip()))
    unknown = [name for name in names if name not in ON]
    if unknown or not names:
        what = f"--on {unknown[0]!r} is not known." if unknown else "Give --on."
        raise InvalidInput(what, next_step=f"one or more of {', '.join(ON)}")
    return names


def check_webhook(url: str) -> str:
    """Return the address of a webhook.

    Raises:
        InvalidInput: it is not a web address.
    """
    try:
        parts = urlsplit(url.strip())
        valid = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        valid = False
    if not valid:  # it may hold a key, so it is not repeated
        raise InvalidInput("The webhook is not a web address.", next_step="for example https://hooks.example.org/abc")
    return url.strip()


async def add(
    name: str, on: Sequence[str], *, webhook: str | None = None, slack_block: str | None = None, watch: str = ""
) -> Notification:
    """Notify a webhook, or a Slack channel by the block that holds its address, of some occasions.

    Raises:
        InvalidInput: there is a notification of that name, or no such block.
    """
    async with prefect_client() as client:
        if await client.read_automations_by_name(_PREFIX + name):
            how = f"choose another --name, or fathom notify remove {name}"
            raise InvalidInput(f"The notification {name!r} already exists.", next_step=how)
        action = await _webhook(name, webhook) if webhook else await _slack(client, slack_block or "")
    match = {"prefect.resource.id": "prefect.flow-run.*"} | ({"fathom.watch": watch} if watch else {})
    told = f"webhook block {_PREFIX}{name}" if webhook else f"Slack block {slack_block}"
    automation = Automation(
        name=_PREFIX + name,
        description=f"Made by `fathom notify`. On {', '.join(on)}; {told}.",
        trigger=EventTrigger(expect={ON[one] for one in on}, match=match, posture=Posture.Reactive, threshold=1),
        actions=[action],
    )
    return await _notification(await automation.acreate())


async def all_notifications() -> list[Notification]:
    """Return every notification, by name."""
    async with prefect_client() as client:
        found = [one for one in await client.read_automations() if one.name.startswith(_PREFIX)]
    return sorted([await _notification(one) for one in found], key=lambda one: one.name)


async def remove(name: str) -> None:
    """Remove a notification with the block of its address.

    Raises:
        InvalidInput: there is none of that name.
    """
    async with prefect_client() as client:
        found = await client.read_automations_by_name(_PREFIX + name)
        if not found:
            raise InvalidInput(f"There is no notification {name!r}.", next_step="fathom notify list shows them")
        for automation in found:
            await client.delete_automation(automation.id)
        try:
            block = await client.read_block_document_by_name(_PREFIX + name, "webhook")
        except ObjectNotFound:
            return
        await client.delete_block_document(block.id)


async def remove_of(watch: str) -> list[str]:
    """Remove the notifications of a watch, and return their names."""
    names = [one.name for one in await all_notifications() if one.watch == watch]
    for name in names:
        await remove(name)
    return names


async def _webhook(name: str, url: str) -> CallWebhook:
    block: Any = Webhook(url=url, headers={"Content-Type": "application/json"})
    saved = await block.save(_PREFIX + name, overwrite=True)
    return CallWebhook(block_document_id=UUID(str(saved)), payload=_PAYLOAD)


async def _slack(client: PrefectClient, name: str) -> SendNotification:
    try:
        block = await client.read_block_document_by_name(name, "slack-webhook")
    except ObjectNotFound:
        how = "create it in the UI (Blocks, Slack Webhook), which keeps its address"
        raise InvalidInput(f"There is no Slack Webhook block {name!r}.", next_step=how) from None
    return SendNotification(block_document_id=block.id, subject=_SUBJECT, body=_TEXT)


async def _notification(found: Any) -> Notification:
    expected = set(found.trigger.expect)
    watch = found.trigger.match.root.get("fathom.watch") or ""
    return Notification(
        name=found.name.removeprefix(_PREFIX),
        on=[name for name, event in ON.items() if event in expected],
        watch=watch if isinstance(watch, str) else watch[0],
        to="webhook" if isinstance(found.actions[0], CallWebhook) else await _slack_block(found.actions[0]),
        enabled=found.enabled,
    )


async def _slack_block(action: SendNotification) -> str:
    async with prefect_client() as client:
        try:
            block = await client.read_block_document(action.block_document_id, include_secrets=False)
        except ObjectNotFound:
            return "a Slack block that no longer exists"
    return f"Slack block {block.name}"

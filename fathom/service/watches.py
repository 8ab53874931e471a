"""Watched questions, for whoever may see them: a watch belongs to who made it, and so do its runs."""

from __future__ import annotations

import asyncio
from uuid import UUID

from prefect.client.orchestration import get_client

from fathom.client.shapes import Run
from fathom.client.standing import Watch, WatchChange, WatchHistory, WatchList, WatchRequest, WatchRun
from fathom.errors import Conflict, InvalidInput, NotAllowed, NotThere, RunBusy, WrongValue
from fathom.flows import notifying, watches
from fathom.flows.preflight import artifact_root, check_request
from fathom.flows.runs.comparing import runs_of
from fathom.service.caller import Caller, Ownership, Role
from fathom.service.outages import asking_patiently
from fathom.service.ownership import OWNER_TAG, tags_of
from fathom.service.run_list import RunFilter
from fathom.service.runs import Desk


async def add(desk: Desk, caller: Caller, request: WatchRequest) -> Watch:
    """Create a watch, whose runs are the caller's.

    Raises:
        NotAllowed: the caller may not ask, or not with these settings.
        InvalidInput: the question or the schedule cannot be used.
        Conflict: there is a watch of that name.
    """
    caller.check(Role.asker)
    settings = desk.settings_for(caller, request.settings, request.template)
    if bool(request.every) == bool(request.cron):
        raise InvalidInput("Give either `every` or `cron`.", next_step='for example "every": "1d"')
    schedule = watches.schedule_of(request.every, request.cron, request.timezone)
    _check_countable(caller)
    await desk.check_use(caller, settings)
    checked = await asyncio.to_thread(check_request, request.question, settings)
    name = watches.name_of(request.name or checked.query)
    if not name:
        raise InvalidInput(
            wrong=[WrongValue("name", request.name, "it has no letter or digit")], next_step="use at least one"
        )
    tags = tags_of(Ownership(owner=caller.name))
    try:
        with asking_patiently():
            made = await watches.add(name, checked.query, checked.settings, schedule, desk.options.work_pool, tags)
    except InvalidInput as error:
        raise Conflict(error.message, next_step="choose another name") from None
    return _shown(made)


async def everyone(desk: Desk, caller: Caller) -> WatchList:
    """Return the watches that the caller may see."""
    found = await watches.all_watches()
    return WatchList(watches=[_shown(one) for one in found if _is_here(desk, one) and _may_see(caller, one)])


async def one(desk: Desk, caller: Caller, name: str) -> Watch:
    """Return a watch.

    Raises:
        NotThere: there is none of that name, or the caller may not see it.
    """
    return _shown(await _find(desk, caller, name))


async def change(desk: Desk, caller: Caller, name: str, request: WatchChange) -> Watch:
    """Pause a watch, or have it run by its schedule again.

    Raises:
        NotThere: there is none of that name, or the caller may not see it.
        NotAllowed: the caller may not ask.
    """
    found = await _own(desk, caller, name)
    with asking_patiently():
        await (watches.pause if request.state == "paused" else watches.resume)(found)
    return _shown(await watches.find(found.name))


async def remove(desk: Desk, caller: Caller, name: str) -> None:
    """Remove a watch and its notifications; its runs stay.

    Raises:
        NotThere: there is none of that name, or the caller may not see it.
        NotAllowed: the caller may not ask.
    """
    found = await _own(desk, caller, name)
    with asking_patiently():
        await watches.remove(found)
        await notifying.remove_of(found.name)


async def run(desk: Desk, caller: Caller, name: str) -> Run:
    """Start a run of a watch now.

    Raises:
        NotThere: there is no watch of that name, or the caller may not see it.
        NotAllowed: the caller may not ask.
        RunBusy: another run of it is under way: both would tell the same changes.
    """
    found = await _own(desk, caller, name)
    _check_countable(caller)
    if busy := await watches.under_way(found.name):
        raise RunBusy(f"The run {busy} of the watch {found.name!r} is in progress.", next_step="wait for it")
    async with get_client() as client:
        with asking_patiently():
            flow_run = await client.create_flow_run_from_deployment(UUID(found.deployment_id), tags=list(found.tags))
    await desk.owners.record(str(flow_run.id), Ownership(owner=_owner(found)))
    return await desk.get(caller, str(flow_run.id))


async def history(desk: Desk, caller: Caller, name: str, limit: int) -> WatchHistory:
    """Return the runs of a watch, the newest first, with what changed.

    Raises:
        NotThere: there is no watch of that name, or the caller may not see it.
    """
    found = await _find(desk, caller, name)
    listed = (await desk.latest(caller, RunFilter(watch=found.name), limit=limit)).runs
    ended = await runs_of(desk.store, found.name)
    changes = {run.run_id: result.changes if result else "" for run, result in ended}
    runs = [WatchRun(**one.model_dump(), changes=changes.get(one.id, "")) for one in listed]
    return WatchHistory(name=found.name, runs=runs)


def _check_countable(caller: Caller) -> None:
    """A schedule starts runs of which no server hears, so they cannot be counted against what a day allows."""
    if caller.role is not Role.admin and (caller.limits.runs_per_day or caller.limits.daily_usd) is not None:
        raise NotAllowed(
            f"{caller.name} has a limit for each day, against which the runs of a watch are not counted.",
            next_step="ask an administrator to add the watch, or ask the question by itself",
        )


async def _own(desk: Desk, caller: Caller, name: str) -> watches.WatchedQuestion:
    found = await _find(desk, caller, name)
    caller.check(Role.asker)
    if caller.role is not Role.admin and _owner(found) != caller.name:
        raise NotAllowed("Only the owner of the watch and administrators may do this.")
    return found


async def _find(desk: Desk, caller: Caller, name: str) -> watches.WatchedQuestion:
    missing = NotThere(f"There is no watch {name[:60]!r}.", next_step="GET /api/v1/watches lists them")
    if watches.name_of(name) != name:
        raise missing
    try:
        found = await watches.find(name)
    except InvalidInput:
        raise missing from None
    if not _is_here(desk, found) or not _may_see(caller, found):
        raise missing
    return found


def _is_here(desk: Desk, found: watches.WatchedQuestion) -> bool:
    given = (found.parameters.get("settings") or {}).get("artifacts")
    return artifact_root(given) == desk.store.address()


def _may_see(caller: Caller, found: watches.WatchedQuestion) -> bool:
    return Ownership(owner=_owner(found)).readable_by(caller)


def _owner(found: watches.WatchedQuestion) -> str:
    return next((tag.removeprefix(OWNER_TAG) for tag in found.tags if tag.startswith(OWNER_TAG)), "")


def _shown(found: watches.WatchedQuestion) -> Watch:
    settings = found.parameters.get("settings") or {}
    return Watch.model_validate(
        {
            **{name: getattr(found, name) for name in ("name", "question", "schedule", "state")},
            "next_run": found.next_run or None,
            "owner": _owner(found),
            "settings": {name: value for name, value in settings.items() if name not in ("artifacts", "docs")},
        }
    )

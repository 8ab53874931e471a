"""Watched questions. A watch belongs to who made it, and so do its runs; for others it does not exist: `NotThere`."""

from __future__ import annotations

import asyncio
import hashlib
from contextlib import suppress
from uuid import UUID

from fathom.client.resources import Watch, WatchChange, WatchHistory, WatchList, WatchRequest, WatchRun
from fathom.client.shapes import Run
from fathom.config.environment import artifact_root
from fathom.errors import Conflict, InvalidInput, NotAllowed, NotThere, RunBusy, WrongValue
from fathom.flows import notifying, watches
from fathom.flows.execution.deploying import create_run
from fathom.flows.preflight import check_request
from fathom.flows.runs.comparing import runs_of
from fathom.flows.runs.following import taken_over
from fathom.service.caller import AccessRole, Caller, check_owner, owned_by
from fathom.service.run_list import RunFilter
from fathom.service.run_view import notices_of, settings_shown
from fathom.service.runs import RunHandle, RunService
from fathom.storage.ownership import Ownership
from fathom.tasks.clients import prefect_client
from fathom.tools.earlier_run import LibraryTool


async def add(service: RunService, caller: Caller, request: WatchRequest) -> Watch:
    """Create a watch, whose runs are the caller's, and whose name ends as all names of the caller's watches do.

    Raises:
        NotAllowed: the caller may not ask, not with these settings, or has enough watches.
        InvalidInput: the question or the schedule cannot be used.
        Conflict: the caller has a watch of that name.
        RunNotFound: there is no run whose report it could be made from.
    """
    caller.check(AccessRole.asker)
    settings = service.settings_for(caller, request.settings, request.template)
    if bool(request.every) == bool(request.cron):
        raise InvalidInput("Give either `every` or `cron`.", next_step='for example "every": "1d"')
    schedule = watches.schedule_of(request.every, request.cron, request.timezone)
    if not caller.is_admin:
        await watches.check_interval(schedule, service.options.watch_every)
    _check_countable(caller)
    if request.report:
        (await service.open(caller, request.report)).finished()
    settings = await service.check_use(caller, settings)
    checked = await asyncio.to_thread(check_request, request.question, settings, ask_prefect=False)
    name = watches.name_of(request.name or checked.query)
    if not name:
        raise InvalidInput(
            wrong=[WrongValue("name", request.name, "it has no letter or digit")], next_step="use at least one"
        )
    name, tags = _own_name(caller, name), owned_by(caller).tags
    async with service.adding_watch:
        await _check_count(service, caller)
        try:
            made = await watches.add(
                name,
                checked.query,
                checked.settings,
                schedule,
                pool=service.options.work_pool,
                tags=tags,
                report=request.report,
            )
        except InvalidInput as error:
            raise Conflict(error.message, next_step="choose another name") from None
    return _shown(made).model_copy(update={"notices": notices_of(checked.searched)})


async def add_of(service: RunService, run: RunHandle, every: str) -> Watch:
    """Watch the question of a finished run, with the settings, documents and tools that it had; as `add` does.

    The first run of the watch is compared with the report.
    What earlier runs have read is left out: a watch is there to notice what is new.

    Raises:
        NoReport: it has not finished.
        Conflict: the caller watches its question.
    """
    manifest = await run.finished().manifest()
    if manifest is None:
        raise NotThere("The run has no manifest.", next_step="watch the question by itself")
    settings = taken_over(manifest)
    settings.pop("library", None)
    if "tools" in settings:
        settings["tools"] = [name for name in settings["tools"] if name != LibraryTool.name]
    request = WatchRequest(
        question=manifest.understood or manifest.query,
        every=every,
        settings=settings,
        template=manifest.settings.get("template"),
        report=run.run_id,
    )
    try:
        return await add(service, run.caller, request)
    except Conflict:
        hint = "see Watches; remove that watch to have the question asked with what this run used"
        raise Conflict("You already watch this question.", next_step=hint) from None


async def everyone(service: RunService, caller: Caller) -> WatchList:
    """Return the watches that the caller may see."""
    found = await watches.all_watches()
    return WatchList(
        watches=[_shown(one) for one in found if _is_here(service, one) and _ownership(one).readable_by(caller)]
    )


async def watching(service: RunService, caller: Caller, run: Run) -> list[Watch]:
    """Return the watches that the caller may see which were made from a run's report or ask its question again."""
    asked = (run.question, run.understood)
    return [one for one in (await everyone(service, caller)).watches if one.report == run.id or one.question in asked]


async def one(service: RunService, caller: Caller, name: str) -> Watch:
    """Return a watch."""
    return _shown(await _find(service, caller, name))


async def change(service: RunService, caller: Caller, name: str, request: WatchChange) -> Watch:
    """Pause a watch, or have it run by its schedule again.

    Raises:
        NotAllowed: the caller may not ask.
    """
    found = await _own(service, caller, name)
    await (watches.pause if request.state == "paused" else watches.resume)(found)
    return _shown(await watches.find(found.name))


async def remove(service: RunService, caller: Caller, name: str) -> None:
    """Remove a watch and its notifications; its runs stay.

    Raises:
        NotAllowed: the caller may not ask.
    """
    found = await _own(service, caller, name)
    await watches.remove(found)
    await notifying.remove_of(found.name)


async def run(service: RunService, caller: Caller, name: str) -> Run:
    """Start a run of a watch now.

    Raises:
        NotAllowed: the caller may not ask.
        RunBusy: another run of it is under way: both would tell the same changes.
        TooManyRequests: enough runs wait.
    """
    found = await _own(service, caller, name)
    _check_countable(caller)
    if busy := await watches.under_way(found.name):
        raise RunBusy(f"The run {busy} of the watch {found.name!r} is in progress.", next_step="wait for it")
    async with prefect_client() as client:
        await service.submissions.check_room(client)
        flow_run = await create_run(client, UUID(found.deployment_id), tags=found.tags)
    await service.owners.record(str(flow_run.id), Ownership(owner=_ownership(found).owner))
    return await service.read(caller, str(flow_run.id))


async def history(service: RunService, caller: Caller, name: str, limit: int) -> WatchHistory:
    """Return the runs of a watch, the newest first, with what changed."""
    found = await _find(service, caller, name)
    listed = (await service.latest(caller, RunFilter(watch=found.name), limit=limit)).runs
    ended = await runs_of(service.store, lambda run: run.watch == found.key)
    changes = {run.run_id: result.changes if result else "" for run, result in ended}
    runs = [WatchRun(**one.model_dump(), changes=changes.get(one.id, "")) for one in listed]
    return WatchHistory(name=found.name, runs=runs)


def _check_countable(caller: Caller) -> None:
    """No server hears of the runs that a schedule starts, so they cannot be counted against what a day allows."""
    limits = caller.limits
    if not caller.is_admin and (limits.runs_per_day is not None or limits.daily_usd is not None):
        raise NotAllowed(
            f"{caller.name} has a limit for each day, against which the runs of a watch are not counted.",
            next_step="ask an administrator to add the watch, or ask the question by itself",
        )


async def _check_count(service: RunService, caller: Caller) -> None:
    most = service.options.watches
    if not caller.is_admin:
        own = [one for one in await watches.all_watches() if _ownership(one).owner == caller.name]
        if len(own) >= most:
            raise NotAllowed(
                f"{caller.name} has as many watches as allowed: {most}.",
                next_step="remove one; fathom serve --watches N allows more",
            )


async def _own(service: RunService, caller: Caller, name: str) -> watches.WatchedQuestion:
    found = await _find(service, caller, name)
    check_owner(_ownership(found), caller, "watch")
    return found


async def _find(service: RunService, caller: Caller, name: str) -> watches.WatchedQuestion:
    """Return a watch that the caller may see, by its name or by what the caller has named it."""
    missing = NotThere(f"There is no watch {name[:60]!r}.", next_step="GET /api/v1/watches lists them")
    if watches.name_of(name) == name:
        for each in dict.fromkeys((name, _own_name(caller, name))):
            with suppress(InvalidInput):
                found = await watches.find(each)
                if _is_here(service, found) and _ownership(found).readable_by(caller):
                    return found
    raise missing


def _own_name(caller: Caller, name: str) -> str:
    """Return the name of a caller's watch. Names of several users differ, so that none tells of another's."""
    if caller.is_admin:
        return name
    end = f"-{hashlib.sha256(caller.name.encode()).hexdigest()[:6]}"
    return name if name.endswith(end) else f"{name[: watches.LONGEST - len(end)].rstrip('-')}{end}"


def _is_here(service: RunService, found: watches.WatchedQuestion) -> bool:
    given = (found.parameters.get("settings") or {}).get("artifacts")
    return artifact_root(given) == service.store.address()


def _ownership(found: watches.WatchedQuestion) -> Ownership:
    return Ownership.of_tags(found.tags)


def _shown(found: watches.WatchedQuestion) -> Watch:
    return Watch.model_validate(
        {
            **{name: getattr(found, name) for name in ("name", "question", "schedule", "state", "report")},
            "next_run": found.next_run or None,
            "owner": _ownership(found).owner,
            "settings": settings_shown(found.parameters),
        }
    )

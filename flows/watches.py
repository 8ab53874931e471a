"""Watched questions: each is a deployment with a schedule, whose runs report the changes since the previous run.

Imports Prefect: call `fathom.flows.server.ensure_api` first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

from prefect.client.schemas.actions import DeploymentScheduleCreate
from prefect.client.schemas.filters import (
    DeploymentFilter,
    DeploymentFilterTags,
    FlowFilter,
    FlowFilterName,
    FlowRunFilter,
    FlowRunFilterState,
    FlowRunFilterStateType,
)
from prefect.client.schemas.objects import DeploymentSchedule, FlowRun, StateType
from prefect.client.schemas.responses import DeploymentResponse
from prefect.client.schemas.schedules import CronSchedule, IntervalSchedule
from prefect.exceptions import ObjectNotFound

from fathom.config.inputs import period
from fathom.config.settings import ResearchSettings
from fathom.errors import InvalidInput, RunBusy, WrongValue
from fathom.flows.deep_research import deep_research
from fathom.flows.execution.deploying import POOL, deploy
from fathom.flows.execution.local import create
from fathom.flows.runs.states import FLOW, UNDER_WAY, FlowRunRow, state_of
from fathom.models import RunState
from fathom.storage.names import slug, watch_key, watch_name, watch_report
from fathom.tasks.clients import prefect_client
from fathom.text.plain import counted, joined

TAGS = ("fathom", "watch")
_PREFIX = "watch-"
_SECONDS = {"m": 60, "h": 3_600, "d": 86_400, "w": 604_800}
_UNITS = {"m": "minute", "h": "hour", "d": "day", "w": "week"}
_CRON_FIELDS = 5  # Prefect takes a sixth one, for seconds
_DATES = 300  # of a schedule, in which its shortest interval is looked for: more than a day of one each 5 minutes
HORIZON_DAYS = 100  # the server plans no later run
LONGEST = 40  # characters of a name that is derived from a question
Schedule = CronSchedule | IntervalSchedule


@dataclass(frozen=True)
class WatchedQuestion:
    """A watched question. `next_run` is an ISO 8601 time in UTC; empty while it is paused or not planned yet."""

    name: str
    question: str
    schedule: str
    state: str  # active or paused
    next_run: str
    deployment: str  # the deployment's name in Prefect
    deployment_id: str
    parameters: dict[str, Any]
    tags: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        """The key by which its runs are known."""
        return str(self.parameters.get("watch") or "")

    @property
    def report(self) -> str:
        """The id of the run whose report it was made from; empty if it was made from none."""
        return watch_report(self.key)


def schedule_of(every: str | None, cron: str | None, timezone: str) -> Schedule:
    """Return the schedule from two options; exactly one must be given.

    Raises:
        InvalidInput: it is none.
    """
    if bool(every) == bool(cron):
        raise InvalidInput(
            "Give either --every or --cron.", next_step="for example --every 1d, or --cron '0 6 * * 1-5'"
        )
    try:
        ZoneInfo(timezone)
    except (KeyError, ValueError, OSError) as error:
        wrong = WrongValue("timezone", timezone, "this time zone does not exist")
        raise InvalidInput(wrong=[wrong], next_step="for example Europe/Berlin") from error
    if cron:
        how = "minute, hour, day, month, weekday, such as '0 6 * * 1-5'; or one of @hourly, @daily, @weekly, @monthly"
        if len(cron.split()) != _CRON_FIELDS and not cron.strip().startswith("@"):
            raise InvalidInput(wrong=[WrongValue("cron", cron, "it must have five fields")], next_step=how)
        try:
            return CronSchedule(cron=cron, timezone=timezone)
        except ValueError as error:
            raise InvalidInput(wrong=[WrongValue("cron", cron, "it is not a schedule")], next_step=how) from error
    try:
        return IntervalSchedule(interval=period(every or "", "every"), timezone=timezone)
    except (InvalidInput, OverflowError) as error:
        wrong = WrongValue("every", every, "it must be a length of time, such as 30m, 6h, 1d or 2w")
        raise InvalidInput(wrong=[wrong]) from error


async def check_interval(schedule: Schedule, least: timedelta) -> None:
    """Check that no two runs of a schedule are closer than a length of time.

    Raises:
        InvalidInput: two are, or there is never a run.
    """
    if isinstance(schedule, IntervalSchedule):
        path, given, shortest = "every", spoken(schedule.interval), schedule.interval
    else:
        from prefect.server.schemas.schedules import CronSchedule as Dates

        path, given = "cron", schedule.cron
        try:
            dates = await Dates(cron=given, timezone="UTC").get_dates(_DATES)
        except ValueError as error:
            never = WrongValue(path, given, "no date is like this")
            raise InvalidInput(wrong=[never], next_step="for example '0 6 * * 1-5'") from error
        shortest = min(later - earlier for earlier, later in pairwise(dates))
    if shortest < least:
        wrong = WrongValue(path, given, f"its runs must be at least {spoken(least)} apart")
        how = "ask less often; fathom serve --watch-every TIME changes this"
        raise InvalidInput(wrong=[wrong], next_step=how)


def name_of(text: str) -> str:
    """Return the name of a watch from a given name or a question, without the prefix of all deployments."""
    return slug(text).replace("_", "-").removeprefix(_PREFIX)[:LONGEST].strip("-")


async def add(
    name: str,
    question: str,
    settings: ResearchSettings,
    schedule: Schedule,
    *,
    pool: str = POOL,
    tags: Sequence[str] = (),
    report: str = "",
) -> WatchedQuestion:
    """Create a watch, whose runs a work pool takes; each run gets the tags, too.

    `report` is the id of the run whose report it is made from, if any: its first run says what changed since then.

    Raises:
        InvalidInput: there is one of that name.
    """
    if await _read(name):
        raise InvalidInput(
            f"The watch {name!r} already exists.", next_step=f"choose another --name, or fathom watch remove {name}"
        )
    # The cache of the web would show the pages of the last run.
    settings = settings.model_copy(update={"fresh": True, "people": settings.people.unattended})
    made = await deploy(
        f"{_PREFIX}{name}",
        deep_research,
        description=f"Watched: {question}",
        parameters={
            "query": question,
            "settings": settings.model_dump(mode="json", exclude_unset=True),
            "watch": watch_key(name, report),
        },
        schedules=[DeploymentScheduleCreate(schedule=schedule, active=True)],
        tags=list(dict.fromkeys([*TAGS, *tags])),
        pool=pool,
        one_at_a_time=True,
    )
    try:
        found = await _read(name)
        assert found, "it was made just now"
        return (await _with_next_run([found]))[0]
    except BaseException:
        await _delete(made)  # nobody is told of it, and its runs cost
        raise


async def all_watches() -> list[WatchedQuestion]:
    """Return every watch, by name."""
    wanted = DeploymentFilter(tags=DeploymentFilterTags(all_=list(TAGS)))
    found: list[DeploymentResponse] = []
    async with prefect_client() as client:
        while page := await client.read_deployments(deployment_filter=wanted, limit=200, offset=len(found)):
            found += page
    watches = await _with_next_run([one for one in found if one.name.startswith(_PREFIX)])
    return sorted(watches, key=lambda one: one.name)


async def find(name: str) -> WatchedQuestion:
    """Return a watch.

    Raises:
        InvalidInput: there is none of that name.
    """
    # Its shown name, or its deployment's name.
    if found := await _read(name) or await _read(name.removeprefix(_PREFIX)):
        return (await _with_next_run([found]))[0]
    raise InvalidInput(f"There is no watch {name!r}.", next_step="fathom watch list shows them")


async def only() -> WatchedQuestion:
    """Return the only watch.

    Raises:
        InvalidInput: there is none, or more than one.
    """
    match await all_watches():
        case [found]:
            return found
        case []:
            raise InvalidInput("There is no watch.", next_step='add one: fathom watch add "..." --every 1d')
        case several:
            names = joined([one.name for one in several], "and")
            raise InvalidInput(f"There are {len(several)} watches: {names}.", next_step="give the name of one")


async def pause(watch: WatchedQuestion) -> None:
    """Start no more runs of a watch until it is resumed; runs that were planned are dropped."""
    async with prefect_client() as client:
        await client.pause_deployment(watch.deployment_id)


async def resume(watch: WatchedQuestion) -> None:
    """Run a watch by its schedule again."""
    async with prefect_client() as client:
        await client.resume_deployment(watch.deployment_id)


async def remove(watch: WatchedQuestion) -> None:
    """Remove a watch; the stored files of its runs stay."""
    await _delete(UUID(watch.deployment_id))


async def start(name: str | None) -> FlowRun:
    """Create a run of a watch for this process; it does not belong to the deployment, so no worker takes it.

    Raises:
        InvalidInput: there is no watch of that name, or none was named and there is not exactly one.
        RunBusy: another run of it is under way: both would tell the same changes.
    """
    found = await only() if name is None else await find(name)
    if busy := await under_way(found.name):
        message = f"The run {busy[:8]} of the watch {found.name!r} is in progress."
        raise RunBusy(message, next_step="wait for it, or stop it first")
    settings = ResearchSettings.model_validate(found.parameters.get("settings") or {})
    return await create(found.question, settings, watch=found.key)


async def under_way(name: str) -> str:
    """Return the id of a run of a watch that a process works on, else nothing."""
    flow, states = FlowFilterName(any_=[FLOW]), FlowRunFilterStateType(any_=[StateType(one) for one in UNDER_WAY])
    async with prefect_client() as client:
        found = await client.read_flow_runs(
            flow_filter=FlowFilter(name=flow), flow_run_filter=FlowRunFilter(state=FlowRunFilterState(type=states))
        )
    for run in (FlowRunRow.model_validate(run.model_dump(mode="json")) for run in found):
        taken = run.state_type != "PENDING" or run.infrastructure_pid
        same = watch_name(str(run.parameters.get("watch") or "")) == name
        if same and taken and await state_of(run) is not RunState.interrupted:
            return run.id
    return ""


async def _delete(deployment_id: UUID) -> None:
    async with prefect_client() as client:
        await client.delete_deployment(deployment_id)


async def _read(name: str) -> DeploymentResponse | None:
    async with prefect_client() as client:
        try:
            return await client.read_deployment_by_name(f"{FLOW}/{_PREFIX}{name}")
        except ObjectNotFound:
            return None


def _watch(found: DeploymentResponse, next_run: str) -> WatchedQuestion:
    paused = found.paused or not any(schedule.active for schedule in found.schedules)
    return WatchedQuestion(
        name=found.name.removeprefix(_PREFIX),
        question=str(found.parameters.get("query", "")),
        schedule=", ".join(map(_words, found.schedules)) or "none",
        state="paused" if paused else "active",
        next_run="" if paused else next_run,
        deployment=f"{FLOW}/{found.name}",
        deployment_id=str(found.id),
        parameters=found.parameters,
        tags=tuple(found.tags),
    )


def _words(schedule: DeploymentSchedule) -> str:
    if isinstance(own := schedule.schedule, CronSchedule):
        return f"{own.cron} ({own.timezone or 'UTC'})"
    return f"every {spoken(own.interval)}" if isinstance(own, IntervalSchedule) else "its own schedule"


def spoken(length: timedelta) -> str:
    """Return a length of time in words, such as `2 hours`."""
    seconds = round(length.total_seconds())
    unit = next(unit for unit in ("w", "d", "h", "m") if seconds % _SECONDS[unit] == 0 or unit == "m")
    return counted(seconds // _SECONDS[unit], _UNITS[unit])


async def _with_next_run(found: Sequence[DeploymentResponse]) -> list[WatchedQuestion]:
    """Return the watches of some deployments, with the first of the runs that the server has planned for each."""
    async with prefect_client() as client:
        ids, horizon = [one.id for one in found], datetime.now(UTC) + timedelta(days=HORIZON_DAYS)
        planned = await client.get_scheduled_flow_runs_for_deployments(ids, scheduled_before=horizon) if found else []
    due: dict[UUID | None, str] = {}
    for run in planned:
        if run.expected_start_time:
            at = run.expected_start_time.astimezone(UTC).isoformat(timespec="minutes")
            due[run.deployment_id] = min(at, due.get(run.deployment_id, at))
    return [_watch(one, due.get(one.id, "")) for one in found]

"""What a caller may choose, how often he may ask, and what he may still start today.

A run takes the most that it may cost when it starts. What it did not spend is given back when the caller starts the
next run or asks what is left, so nothing is lost if no server was alive when the run ended. What a killed server had
taken for a run that never began counts as spent until the day is over.

Which settings a caller may choose: a run reads files, calls addresses and spends money as the server could.
Administrators may set everything that a command can. All others are refused what reaches beyond the run, and what
would take more of the server than a run needs. It is checked after a template was read, which sets settings, too.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import AsyncIterator, Hashable, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from operator import attrgetter
from typing import Any
from uuid import UUID

from prefect.client.schemas.filters import FlowRunFilter, FlowRunFilterId
from prefect.client.schemas.objects import FlowRun

from fathom.budget.caps import SharedAccount
from fathom.budget.ledger import Ledger
from fathom.config.environment import Environment
from fathom.config.form import SetBy, setting_of
from fathom.config.groups import DEFAULT_USD, EXTRACTIVE
from fathom.config.settings import SETTINGS, ResearchSettings
from fathom.errors import NotAllowed, TooManyRequests
from fathom.flows.execution.resuming import CRASHED_SECONDS
from fathom.flows.runs.states import place
from fathom.flows.server import MOST_AT_ONCE
from fathom.service.caller import Caller
from fathom.service.options import Options
from fathom.storage.store import ArtifactStore, json_bytes
from fathom.tasks.clients import prefect_client

HELD = ".serve/held"
_ENDING, _SETTLED = ".json", ".settled"


@dataclass(frozen=True)
class Taken:
    """What was taken for one or more runs. `usd` is zero for who has no cap in dollars."""

    day: str
    usd: Decimal
    runs: int = 1


class Spending:
    """The accounts of the callers of one store."""

    def __init__(self, store: ArtifactStore) -> None:
        self._store = store

    async def take(self, caller: Caller, usd: Decimal, count: int = 1) -> Taken | None:
        """Take what some runs may cost together, and the runs; None for a caller without such limits.

        Raises:
            TooManyRequests: there is not enough left today.
            InvalidInput: the store cannot keep accounts.
        """
        limits, day = caller.limits, _today()
        if limits.runs_per_day is None and limits.daily_usd is None:
            return None
        await self._settle(caller, day)
        runs, dollars = self._runs(caller, day), self._dollars(caller, day)
        if runs:
            await runs.check()
            if not await runs.change(Decimal(count)):
                free = max(0, int(runs.cap - await runs.spent()))
                raise _used_up(
                    f"{caller.name} may start {limits.runs_per_day} runs a day: {free} are left, and {count} asked for."
                )
        if dollars:
            await dollars.check()
            if not await dollars.change(usd):
                if runs:
                    await runs.change(Decimal(-count))
                left = max(Decimal(0), dollars.cap - await dollars.spent())
                raise _used_up(
                    f"{caller.name} has ${left:.2f} left today; this may cost ${usd:.2f}.",
                    next_step=f"set budget.max_usd to {left:.2f} or less, or wait for the next day (UTC)",
                )
        return Taken(day, usd if dollars else Decimal(0), count)

    @asynccontextmanager
    async def taking(self, caller: Caller, usd: Decimal, count: int = 1) -> AsyncIterator[Taken | None]:
        """Take what `take` does for what begins inside the block; it is given back if that does not begin."""
        taken = await self.take(caller, usd, count)
        try:
            yield taken
        except BaseException:
            if taken:
                await self.give_back(caller, taken)
            raise

    async def hold(self, caller: Caller, taken: Taken, run_id: str) -> None:
        """Write down for which run it was taken; it is given back if it was taken for that run before."""
        held = json_bytes({"usd": str(taken.usd)})
        path = f"{_folder(caller, taken.day)}/{run_id}{_ENDING}"
        if await self._store.exists(path) or not await self._store.create(path, held):
            await self.give_back(caller, taken)

    async def holds(self, caller: Caller, run_id: str) -> bool:
        """Whether what was taken for a run today has not been given back."""
        path = f"{_folder(caller, _today())}/{run_id}"
        return await self._store.exists(f"{path}{_ENDING}") and not await self._store.exists(f"{path}{_SETTLED}")

    async def hold_again(self, caller: Caller, taken: Taken, run_id: str) -> None:
        """Write down that it was taken for a run that goes on: when that ends, its whole cost is compared with it."""
        path = f"{_folder(caller, taken.day)}/{run_id}"
        await self._store.write(f"{path}{_ENDING}", json_bytes({"usd": str(taken.usd)}))
        await self._store.remove(f"{path}{_SETTLED}")

    async def give_back(self, caller: Caller, taken: Taken) -> None:
        """Give back what was taken for runs that did not begin."""
        if runs := self._runs(caller, taken.day):
            await runs.change(Decimal(-taken.runs))
        if dollars := self._dollars(caller, taken.day):
            await dollars.change(-taken.usd)

    async def left(self, caller: Caller) -> tuple[int | None, float | None]:
        """Return how many runs and US dollars are left today; None where there is no limit."""
        day = _today()
        await self._settle(caller, day)
        runs, dollars = self._runs(caller, day), self._dollars(caller, day)
        return (
            max(0, int(runs.cap - await runs.spent())) if runs else None,
            max(0.0, float(dollars.cap - await dollars.spent())) if dollars else None,
        )

    async def _settle(self, caller: Caller, day: str) -> None:
        """Give back what the runs of a day that have ended did not spend."""
        dollars, folder = self._dollars(caller, day), _folder(caller, day)
        if not dollars:
            return
        names = {*await self._store.list(folder)}
        held = [name.removesuffix(_ENDING) for name in names if name.endswith(_ENDING)]
        open_ones = [run_id for run_id in held if f"{run_id}{_SETTLED}" not in names]
        for run_id, flow_run in (await flow_runs(open_ones)).items():
            if flow_run is None or not _has_ended(flow_run):
                continue
            _, key = place(run_id, flow_run.parameters)
            cost = (await Ledger.read(self._store, key)).total.usd
            taken = Decimal(json.loads(await self._store.read(f"{folder}/{run_id}{_ENDING}"))["usd"])
            # Whoever creates the file gives back, so that only one of several servers does.
            mark = json_bytes({"cost": str(cost), "at": datetime.now(UTC).isoformat()})
            if await self._store.create(f"{folder}/{run_id}{_SETTLED}", mark):
                await dollars.change(min(Decimal(0), cost - taken))

    def _runs(self, caller: Caller, day: str) -> SharedAccount | None:
        most = caller.limits.runs_per_day
        return None if most is None else self._account(caller, day, "runs", Decimal(most))

    def _dollars(self, caller: Caller, day: str) -> SharedAccount | None:
        most = caller.limits.daily_usd
        return None if most is None else self._account(caller, day, "usd", Decimal(str(most)))

    def _account(self, caller: Caller, day: str, unit: str, cap: Decimal) -> SharedAccount:
        return SharedAccount(self._store, f"callers/{caller.name}/{day}/{unit}", cap, f"the limit of {caller.name}")


def _has_ended(flow_run: FlowRun) -> bool:
    """Whether a run spends no more, unless somebody resumes it: one that has crashed goes on by itself."""
    if flow_run.state is None or not flow_run.state.is_final():
        return False
    since = (datetime.now(UTC) - flow_run.state.timestamp).total_seconds()
    return not flow_run.state.is_crashed() or since > CRASHED_SECONDS


async def flow_runs(run_ids: list[str]) -> dict[str, FlowRun | None]:
    """Return what Prefect knows of runs, by id; None for those that it has forgotten."""
    found: dict[str, FlowRun | None] = dict.fromkeys(run_ids)
    async with prefect_client() as client:
        for start in range(0, len(run_ids), MOST_AT_ONCE):
            ids = FlowRunFilterId(any_=[UUID(run_id) for run_id in run_ids[start : start + MOST_AT_ONCE]])
            for flow_run in await client.read_flow_runs(flow_run_filter=FlowRunFilter(id=ids)):
                found[str(flow_run.id)] = flow_run
    return found


def _used_up(message: str, next_step: str = "wait for the next day (UTC)") -> TooManyRequests:
    now = datetime.now(UTC)
    tomorrow = (now + timedelta(days=1)).replace(hour=0, minute=0, second=0, microsecond=0)
    return TooManyRequests(message, next_step=next_step, retry_after=(tomorrow - now).total_seconds())


def _today() -> str:
    return datetime.now(UTC).date().isoformat()


def _folder(caller: Caller, day: str) -> str:
    return f"{HELD}/{caller.name}/{day}"


OF_ADMINS = [path for path, field in SETTINGS.items() if setting_of(field).set_by is SetBy.admins]
MOST = {path: most for path, field in SETTINGS.items() if (most := setting_of(field).most) is not None}
"""The largest values for callers who are no administrators."""


def check_choice(caller: Caller, settings: ResearchSettings, options: Options) -> None:
    """Check what a caller has chosen, by themselves or by a template; everybody may search the server's documents.

    Raises:
        NotAllowed: only administrators may set it.
    """
    if caller.is_admin:
        return
    for name in OF_ADMINS:
        if (chosen := attrgetter(name)(settings)) and not (name == "docs" and chosen == [*options.docs]):
            raise NotAllowed(f"Only administrators may set {name!r}.", next_step="leave it out")
    allowed = {EXTRACTIVE, *options.models} | {name for name in (Environment.read().model,) if name}
    if refused := [name for name in _models(settings) if name not in allowed]:
        raise NotAllowed(
            f"Only administrators may choose the model {refused[0][:100]!r}.",
            next_step=f"choose one of {', '.join(sorted(allowed))}; fathom serve --allow-model NAME allows others",
        )


def check_most(caller: Caller, settings: ResearchSettings) -> None:
    """Check what a run would take of the server.

    Raises:
        NotAllowed: it is more than the caller may have.
    """
    usd, cap = settings.budget.max_usd, caller.limits.daily_usd
    most = cap if cap is not None else None if caller.is_admin else DEFAULT_USD
    if most is not None and usd is not None and usd > most:
        whose = "a day" if cap is not None else "a run, without a token that has --daily-usd"
        raise NotAllowed(f"budget.max_usd is {usd:g}; {caller.name} may spend {most:g} {whose}.")
    if caller.is_admin:
        return
    for name, limit in MOST.items():
        if (value := attrgetter(name)(settings)) > limit:
            raise NotAllowed(f"{name} is {value:,}; only administrators may set more than {limit:,}.")


def choosable(caller: Caller, taken: Mapping[str, Any], options: Options) -> dict[str, Any]:
    """Return what a follow-up takes over of its earlier run: its documents, and what else the caller may set."""

    def allowed(name: str) -> bool:
        one = ResearchSettings.model_validate({name: taken[name]})
        try:
            check_choice(caller, one, options)
            check_most(caller, one)
        except NotAllowed:
            return False
        return True

    return {name: value for name, value in taken.items() if name == "docs" or allowed(name)}


def capped(caller: Caller, settings: ResearchSettings) -> ResearchSettings:
    """Return the settings with a cap in dollars, if the caller has one for the day."""
    cap = caller.limits.daily_usd
    if cap is None or settings.budget.max_usd is not None:
        return settings
    budget = settings.budget.model_copy(update={"max_usd": min(DEFAULT_USD, cap)})
    return settings.model_copy(update={"budget": budget})


def most_usd(settings: ResearchSettings) -> Decimal:
    """Return the most that a run may cost whose settings are capped."""
    usd = settings.budget.max_usd
    return Decimal(str(DEFAULT_USD if usd is None else usd))


def _models(settings: ResearchSettings) -> Iterator[str]:
    if settings.model:
        yield settings.model
    yield from settings.fallback_models
    if settings.cheaper_model:
        yield settings.cheaper_model
    for chosen in settings.role_models.values():
        yield from (chosen.model, *chosen.fallbacks)


MOST_KNOWN = 10_000
STREAMS = 50
"""Event streams that a caller may have open at once on one server."""


class RequestRates:
    """A bucket of requests for each caller: a minute's worth at once, refilled evenly."""

    def __init__(self) -> None:
        self._buckets: dict[Hashable, tuple[float, float]] = {}  # what is left, and when it was counted
        self._streams: Counter[str] = Counter()  # open ones, by the name of the caller

    def take(self, key: Hashable, per_minute: int) -> None:
        """Count a request.

        Raises:
            TooManyRequests: there were too many.
        """
        now = time.monotonic()
        left, at = self._buckets.pop(key, (float(per_minute), now))
        left = min(float(per_minute), left + (now - at) * per_minute / 60)
        self._buckets[key] = (max(0.0, left - 1 if left >= 1 else left), now)
        if len(self._buckets) > MOST_KNOWN:  # the one that was used longest ago is the first
            del self._buckets[next(iter(self._buckets))]
        if left < 1:
            raise TooManyRequests(
                f"There were more than {per_minute} requests in a minute.", retry_after=(1 - left) * 60 / per_minute
            )

    def left(self, key: Hashable, per_minute: int) -> int:
        """Return how many requests can be made at once now."""
        left, at = self._buckets.get(key, (float(per_minute), time.monotonic()))
        return int(min(float(per_minute), left + (time.monotonic() - at) * per_minute / 60))

    def open_stream(self, name: str) -> None:
        """Count an event stream of a caller, until `close_stream`.

        Raises:
            TooManyRequests: enough are open.
        """
        if self._streams[name] >= STREAMS:
            raise TooManyRequests(f"{STREAMS} event streams are open already.", retry_after=10)
        self._streams[name] += 1

    def close_stream(self, name: str) -> None:
        """Count one no longer."""
        self._streams[name] -= 1
        if not self._streams[name]:
            del self._streams[name]

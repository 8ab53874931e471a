"""The costs of a store's runs, by model, day or deployment."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from fathom.errors import ServerUnreachable
from fathom.flows.server import MOST_AT_ONCE, ask_api, find_api
from fathom.run.usage import ModelUse, RunUse, UsageReader, unsettled_usd
from fathom.storage.ownership import RUN_ID
from fathom.storage.steering import Rated, Ratings
from fathom.storage.store import ArtifactStore

AD_HOC = "ad hoc"
UNKNOWN = "not known to Prefect"
NO_MODEL = "no model"


class By(StrEnum):
    """The grouping of the runs."""

    model = "model"
    day = "day"  # in UTC, on which the run began
    deployment = "deployment"


@dataclass
class CostRow:
    """The usage of a group of runs. `unpriced_runs` counts runs with at least one call whose price is not known."""

    name: str
    runs: int = 0
    unpriced_runs: int = 0
    used: ModelUse = field(default_factory=ModelUse)

    def add(self, uses: Iterable[ModelUse]) -> None:
        """Add a run's use of models."""
        unpriced = self.used.unpriced
        for use in uses:
            self.used.add(use)
        self.runs += 1
        self.unpriced_runs += self.used.unpriced > unpriced


@dataclass(frozen=True)
class Costs:
    """The costs of the runs that began since a time. `total` counts each run once.

    Attributes:
        unsettled_usd: maximum cost of requests that failed or are not answered yet, in addition to the total.
        unreadable: folders of runs that could not be read.
        rated: how readers rated the reports.
    """

    since: datetime
    by: By
    rows: list[CostRow]
    total: CostRow
    unsettled_usd: float
    unreadable: list[str]
    rated: Rated


async def costs_of(store: ArtifactStore, since: datetime, by: By) -> Costs:
    """Return the costs of a store's runs.

    Raises:
        ServerUnreachable: costs by deployment need the Prefect server, and none answers.
    """
    reader = UsageReader(store)
    await reader.read()
    runs = [run for run in reader.runs.values() if run.started >= since]
    keys = {run.run_key for run in runs}
    # A ledger holds the amounts of all runs with its key.
    unsettled = unsettled_usd(run for run in reader.runs.values() if run.run_key in keys)
    rows: dict[str, CostRow] = {}
    total = CostRow("total")
    groups = _groups(by, runs)
    for run in runs:
        total.add(run.uses.values())
        for name, uses in groups(run):
            rows.setdefault(name, CostRow(name)).add(uses)
    ordered = sorted(rows.values(), key=lambda row: row.name if by is By.day else (-row.used.usd, -row.used.sent))
    rated = await Ratings(store).total(run.run_id for run in runs)
    return Costs(since, by, ordered, total, unsettled, sorted(reader.unreadable), rated)


def _groups(by: By, runs: Sequence[RunUse]) -> Callable[[RunUse], Iterator[tuple[str, list[ModelUse]]]]:
    """Return a function that yields the groups of a run, with its usage in each."""
    deployments = _deployments(runs) if by is By.deployment else {}

    def groups(run: RunUse) -> Iterator[tuple[str, list[ModelUse]]]:
        if by is By.model:
            yield from ((name, [use]) for name, use in run.uses.items() or {NO_MODEL: ModelUse()}.items())
        elif by is By.day:
            yield run.started.date().isoformat(), list(run.uses.values())
        else:
            yield deployments.get(run.run_id, UNKNOWN), list(run.uses.values())

    return groups


def _deployments(runs: Sequence[RunUse]) -> dict[str, str]:
    """Return the name of the deployment of each run that Prefect knows."""
    if not find_api():
        how = "start it, or set PREFECT_API_URL; --by model and --by day work without one"
        raise ServerUnreachable("Costs by deployment need a Prefect server, and none is running.", next_step=how)
    deployment_of: dict[str, str | None] = {}
    for ids in _pages([run.run_id for run in runs if RUN_ID.fullmatch(run.run_id)]):
        found = _asked("flow_runs", ids)
        deployment_of |= {run["id"]: run.get("deployment_id") for run in found}
    names = dict[str, str]()
    for ids in _pages(sorted({found for found in deployment_of.values() if found})):
        found = _asked("deployments", ids)
        names |= {deployment["id"]: deployment["name"] for deployment in found}
    return {
        run_id: names.get(deployment_id, "deleted deployment") if deployment_id else AD_HOC
        for run_id, deployment_id in deployment_of.items()
    }


def _asked(kind: str, ids: Sequence[str]) -> list[dict[str, Any]]:
    found = ask_api(f"{kind}/filter", {kind: {"id": {"any_": ids}}, "limit": MOST_AT_ONCE})
    if not isinstance(found, list):
        how = "check it with fathom doctor, and try again; --by model and --by day work without one"
        raise ServerUnreachable("The Prefect server does not say which deployments the runs belong to.", next_step=how)
    return found


def _pages(ids: Sequence[str]) -> Iterator[Sequence[str]]:
    yield from (ids[start : start + MOST_AT_ONCE] for start in range(0, len(ids), MOST_AT_ONCE))

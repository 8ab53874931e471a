"""The usage of each run of a store, from its audit log, which holds every call, and from its ledger.

The log has the usage by model and tool, also for unfinished and failed runs, and only grows. The ledger may hold a
larger amount: the maximum cost of requests that failed or are not answered yet.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from fathom.budget.ledger import Ledger
from fathom.config.groups import EXTRACTIVE
from fathom.errors import StoreError
from fathom.models import Account, Ending
from fathom.storage.atomic import side_by_side
from fathom.storage.lease import RESULTS, read_lease
from fathom.storage.store import RUNS, ArtifactStore
from fathom.telemetry.audit_events import AuditEvent, AuditType, ChainedEvent, events_in
from fathom.telemetry.audit_log import AUDIT_FILE, PENDING_FILE

_LOOKED_AT = 200  # finished runs that one reading checks for changes
_STARTS = (AuditType.session_created, AuditType.session_resumed)
_WITH_RESULT = frozenset(Ending) - {Ending.failed}


@dataclass
class ModelUse:
    """The usage of a model or paid service. `usd` is the known cost; `unpriced` counts calls without a known price."""

    calls: int = 0
    sent: int = 0  # tokens
    cached: int = 0  # sent tokens read from the provider's cache
    received: int = 0
    usd: float = 0.0
    unpriced: int = 0

    def add(self, other: ModelUse) -> None:
        """Add another use of the model."""
        self.calls += other.calls
        self.sent += other.sent
        self.cached += other.cached
        self.received += other.received
        self.usd += other.usd
        self.unpriced += other.unpriced


BOUNDS: Mapping[str, Sequence[float]] = {
    "run": (5, 15, 30, 60, 120, 300, 600, 1_200, 1_800, 3_600, 7_200),
    **dict.fromkeys(("step", "model", "tool"), (0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 30, 60, 120, 300, 600)),
    "sufficiency": tuple(range(1, 11)),
    "quality": tuple(tenth / 10 for tenth in range(1, 11)),
    "rounds": tuple(range(1, 6)),
}
"""Upper bounds of the buckets: of the seconds of a run, step, model call and tool call, of the critic's scores, of the
overall scores of sources, and of the rounds of a run."""


class Histogram:
    """Values by the first bound that they do not exceed; the last of the `counts` is for larger ones."""

    def __init__(self, bounds: Sequence[float]) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.sum = 0.0

    def add(self, value: float) -> None:
        """Add a value."""
        self.counts[bisect_left(self.bounds, value)] += 1
        self.sum += value

    def merge(self, other: Histogram) -> None:
        """Add the values of another histogram with the same bounds."""
        self.counts = [own + more for own, more in zip(self.counts, other.counts, strict=True)]
        self.sum += other.sum


@dataclass
class RunUse:
    """The usage of one run, over all of its attempts.

    `state` is its ending, or `running`, or `failed`, `stopped` or `interrupted`; in the last three it may be resumed.
    `endings` counts the attempts by ending, so a run that failed and was resumed has two.
    """

    run_id: str
    run_key: str
    started: datetime
    state: str = "interrupted"
    endings: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0  # of work, until the last ending with a result
    models: dict[str, ModelUse] = field(default_factory=dict)
    charges: dict[str, ModelUse] = field(default_factory=dict)  # paid searches and pages, by service
    tools: Counter[str] = field(default_factory=Counter)  # calls by name
    cached: int = 0  # of them
    faults: Counter[tuple[str, str]] = field(default_factory=Counter)  # by tool, model or `run`, and code
    histograms: dict[str, Histogram] = field(default_factory=dict)  # by the names of `BOUNDS`, without `run`
    account: Account | None = None  # usage of all runs with its key so far
    shared: frozenset[str] = frozenset()  # ids of the events before its folder, which runs of the same key may share

    @property
    def ended(self) -> bool:
        """Whether it has a result, so that nothing will be added."""
        return self.state in _WITH_RESULT

    @property
    def uses(self) -> dict[str, ModelUse]:
        """Its usage, by model and paid service."""
        return self.models | self.charges

    @property
    def usd(self) -> float:
        """The known cost of all answered calls."""
        return sum(use.usd for use in self.uses.values())

    @property
    def unpriced(self) -> int:
        """The number of answered calls whose price is not known."""
        return sum(use.unpriced for use in self.uses.values())


class UsageReader:
    """Reads the usage of the runs of a store; a finished run is read once, unless its log is replaced.

    Attributes:
        runs: the runs of the store, by folder.
        gone: runs that an earlier reading found: their usage still counts.
        unreadable: the folders that could not be read.
    """

    def __init__(self, store: ArtifactStore) -> None:
        self._store = store
        self._sizes = dict[str, int]()  # bytes of the logs of runs that have ended, the one looked at last at the end
        self.runs: dict[str, RunUse] = {}
        self.gone: list[RunUse] = []
        self._folders = dict[str, set[str]]()  # of these runs, by run key
        self._counted = dict[str, set[str]]()  # ids of events of runs that are gone, by run key
        self.unreadable = set[str]()

    async def read(self) -> None:
        """Read new runs and events.

        Raises:
            StoreError: the store itself cannot be read.
        """
        self.unreadable.clear()
        names = [f"{RUNS}/{name}" for name in await self._store.list(RUNS)]
        keys = await self._store.list(RESULTS)
        for folder in {*self.runs} - {*names} - {f"{RESULTS}/{key}" for key in keys}:
            self._leave(folder)
        look = [*self._sizes][:_LOOKED_AT]
        await self._each(look, self._look)
        unknown = [folder for folder in names if folder not in self._sizes]
        await self._each(unknown, lambda folder: self._read(folder, AUDIT_FILE, ChainedEvent))
        # Before its plan has a title, a run has no folder.
        with_folder = {self.runs[folder].run_key for folder in names if folder in self.runs}
        pending = [f"{RESULTS}/{key}" for key in keys if key not in with_folder]
        await self._each(pending, lambda folder: self._read(folder, PENDING_FILE, AuditEvent))

    async def _each(self, folders: Sequence[str], action: Callable[[str], Awaitable[None]]) -> None:

        async def read(folder: str) -> None:
            try:
                await action(folder)
            except FileNotFoundError:
                return
            except StoreError:  # one damaged run must not hide the others
                self.unreadable.add(folder)

        await side_by_side(folders, read)

    async def _look(self, folder: str) -> None:
        """Forget the size of a log that has grown, or that belongs to another run in the same folder."""
        path, size = f"{folder}/{AUDIT_FILE}", self._sizes.pop(folder)
        if (await self._store.sizes(path)).get(path) == size:
            self._sizes[folder] = size

    async def _read(self, folder: str, file: str, kind: type[AuditEvent]) -> None:
        data = await self._store.read(f"{folder}/{file}")
        events = events_in(data, kind)
        key = next((str(event.details.get("run_key")) for event in events if event.type in _STARTS), None)
        if key is None:
            return
        others = [self.runs[other].shared for other in self._folders.get(key, ()) if other != folder]
        elsewhere = frozenset(self._counted.get(key, ())).union(*others)
        if file == PENDING_FILE and all(event.id in elsewhere for event in events):
            return  # a log in a folder is a run's, even if another of its key has copied all of it
        run, before = use_of(key, events, elsewhere), self.runs.get(folder)
        if before and (before.run_key, before.started) != (run.run_key, run.started):
            self._leave(folder)
        # Nothing is awaited in between: readers of other folders see a whole state.
        self.runs[folder] = run
        if file == AUDIT_FILE:
            self._folders.setdefault(key, set()).add(folder)
            self.runs.pop(f"{RESULTS}/{key}", None)
            if run.ended:
                self._sizes[folder] = len(data)
        if not run.ended:
            lease = await read_lease(self._store, key)
            run.state = "running" if lease and lease.alive else run.state
            run.account = (await Ledger.read(self._store, key)).account

    def _leave(self, folder: str) -> None:
        """Count a run as gone from the store."""
        run = self.runs.pop(folder)
        self._sizes.pop(folder, None)
        self._folders.get(run.run_key, set()).discard(folder)
        self._counted.setdefault(run.run_key, set()).update(run.shared)
        self.gone.append(run)


def unsettled_usd(runs: Iterable[RunUse]) -> float:
    """Return the maximum cost of requests that failed or are not answered yet."""
    known, reserved = dict[str, float](), dict[str, float]()
    for run in runs:
        known[run.run_key] = known.get(run.run_key, 0.0) + run.usd
        reserved[run.run_key] = max(reserved.get(run.run_key, 0.0), run.account.usd if run.account else 0.0)
    return round(sum(max(0.0, usd - known[key]) for key, usd in reserved.items()), 6)


def use_of(run_key: str, events: Sequence[AuditEvent], elsewhere: frozenset[str] = frozenset()) -> RunUse:
    """Return the usage of a run from the events of its log, except events (by id) that are counted elsewhere."""
    own = [event for event in events if event.id not in elsewhere]
    first = next((n for n, event in enumerate(own) if event.type is AuditType.step_started), len(own))
    run = RunUse("", run_key, datetime.fromisoformat((own or events)[0].at))
    run.shared = frozenset(event.id for event in own[:first])
    for event in own:
        _count(run, event)
    for name, value in _observed(own):
        run.histograms.setdefault(name, Histogram(BOUNDS[name])).add(value)
    return run


def _observed(events: Iterable[AuditEvent]) -> Iterator[tuple[str, float]]:
    """Yield what the histograms of a run count. A step's seconds are without the pauses before the run was resumed."""
    begun, last = dict[str, datetime](), datetime.now(UTC)
    for event in events:
        at, data = datetime.fromisoformat(event.at), event.details
        step: Any = data.get("step_id")
        seconds: Any = data.get("seconds")
        if event.type is AuditType.session_resumed:
            begun = {step: since + (at - last) for step, since in begun.items()}
        elif event.type is AuditType.step_started:
            begun[step] = at
        elif event.type is AuditType.step_completed and step in begun:
            yield "step", (at - begun.pop(step)).total_seconds()
        elif event.type is AuditType.llm_called and data.get("model") != EXTRACTIVE and seconds is not None:
            yield "model", seconds
        elif event.type is AuditType.tool_called and seconds is not None:
            yield "tool", seconds
        else:
            yield from _scores(event)
        last = at


def _scores(event: AuditEvent) -> Iterator[tuple[str, float]]:
    data: Any = event.details
    if event.type is AuditType.reflection_completed:
        yield "sufficiency", data["score"]
    elif event.type is AuditType.synthesis_completed:
        for quality in data.get("qualities") or []:  # not in logs of earlier versions, as the next
            yield "quality", quality
    elif event.type is AuditType.session_completed and (rounds := (data.get("metrics") or {}).get("rounds")):
        yield "rounds", rounds


def _count(run: RunUse, event: AuditEvent) -> None:
    data: Any = event.details
    if event.type in _STARTS:
        run.run_id, run.state = str(data.get("run_id")), "interrupted"
    elif event.type is AuditType.llm_called and data.get("model") != EXTRACTIVE:
        model = run.models.setdefault(str(data.get("model")), ModelUse())
        if data.get("success"):
            model.calls += 1
            model.sent += data.get("prompt_tokens") or 0
            model.cached += data.get("cached_tokens") or 0
            model.received += data.get("completion_tokens") or 0
            model.usd += data.get("cost_usd") or 0.0
            model.unpriced += data.get("cost_usd") is None
        else:
            run.faults[str(data.get("model")), str(data.get("code"))] += 1
    elif event.type is AuditType.tool_called:
        run.tools[str(data.get("tool"))] += 1
        run.cached += bool(data.get("cached"))
        for charge in data.get("charges") or []:
            usd = charge.get("usd")
            use = ModelUse(calls=1, usd=usd or 0.0, unpriced=usd is None)
            run.charges.setdefault(str(charge.get("service")), ModelUse()).add(use)
        for failure in data.get("failures") or []:
            run.faults[str(data.get("tool")), str(failure.get("code"))] += 1
    elif event.type is AuditType.error_occurred and data.get("code"):
        run.faults["run", str(data["code"])] += 1
    elif event.type is AuditType.session_completed:
        run.state = str(data.get("status") or event.action)
        run.endings[run.state] += 1
        if metrics := data.get("metrics"):
            run.account = Account.model_validate(metrics["account"]) if metrics.get("account") else None
            run.seconds = run.account.seconds if run.account else float(metrics.get("seconds") or 0)

"""One seed: a run, or two, that are started, killed, suspended and resumed until all have ended; and what must hold."""

from __future__ import annotations

import asyncio
import json
import shutil
import tempfile
from contextlib import ExitStack
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path

from fathom.budget.caps import SharedAccount
from fathom.budget.ledger import Cost
from fathom.config.groups import Budget
from fathom.errors import FathomError
from fathom.models import AuditHead
from fathom.storage.lease import RESULTS, LeaseFile, read_lease
from fathom.storage.store import REPORT_TEXT, RESULT, RUNS, ArtifactStore
from fathom.telemetry.audit_events import ChainedEvent, check, events_in
from fathom.telemetry.audit_log import AUDIT_FILE, COMPUTED
from simulator.disk import Disk, broken, full, mounted
from simulator.machine import running
from simulator.objects import ObjectStore
from simulator.provider import Provider
from simulator.research import Order, attempt
from simulator.world import Loop, Process, World, inside

FAULTS = ("kill", "kill", "power", "suspend", "suspend", "full", "broken", "jump", "cancel")
HOSTS = ("one", "two")
LAST_TRIES = 6
"""Attempts at a run once nothing fails any more; each must come as far as it can."""


class Violation(AssertionError):
    """Something that must hold does not."""


@dataclass
class Faults:
    """What happens at which change, counted over the whole world; `at` is drawn from the seed, or enumerated."""

    at: dict[int, str] = field(default_factory=dict)
    objects: bool = False
    lying: bool = False
    store_failing: float = 0.0
    provider_failing: float = 0.0


class Scenario:
    """A world with its runs, and what is watched in it."""

    def __init__(self, seed: int, faults: Faults | None = None) -> None:
        """Draw everything from the seed; with faults that are given, a run of one round is made."""
        self.world = World(seed)
        random = self.world.random
        self.faults = faults or self._drawn()
        self.changes = 0
        self.calm = False
        self.provider = Provider(self.world, self.faults.provider_failing)
        self.temporary = tempfile.mkdtemp(
            prefix="fathom-simulator-", dir="/dev/shm" if Path("/dev/shm").is_dir() else None
        )
        root = Path(self.temporary, "disk")
        root.mkdir()
        self.root = "simulated://bucket" if self.faults.objects else str(root)
        self.disk = Disk(self.world, root, self.before)
        self.disk.lies = self.faults.lying
        if faults:  # the run whose every change is tried
            budget, runs, daily, rounds, breadth = Budget(max_calls=60, research_share=1), 1, Decimal(100), 1, 2
        else:
            usd, calls = random.choice((None, 0.05)), random.choice((60, 60, 12))
            budget = Budget(max_usd=usd, max_calls=calls, max_tokens=10_000, research_share=1)
            runs, daily = random.choice((1, 1, 2)), random.choice((Decimal(100), Decimal(100), Decimal("0.15")))
            rounds, breadth = random.choice((1, 2)), random.choice((1, 2, 3))
        self.orders = [
            Order(self.world, self.provider, self.root, f"run{n}", budget, daily, rounds, breadth) for n in range(runs)
        ]
        self.files: list[str] = []
        self.lines = 0
        self.computed: list[str] = []
        """What the runs left."""
        self.owners: dict[str, dict[Process, LeaseFile]] = {order.key: {} for order in self.orders}
        self.attempts: dict[str, list[Process]] = {order.key: [] for order in self.orders}

    def _drawn(self) -> Faults:
        random = self.world.random
        objects = random.random() < 0.3
        kinds = [one for one in FAULTS if not objects or one not in {"power", "full", "broken"}]
        at = {int(random.expovariate(1 / 250)) + 1: random.choice(kinds) for _ in range(random.randint(0, 5))}
        return Faults(
            at,
            objects=objects,
            lying=not objects and random.random() < 0.1,
            store_failing=random.choice((0.0, 0.02, 0.1)) if objects else 0.0,
            provider_failing=random.choice((0.0, 0.1)),
        )

    # faults

    def before(self, what: str, path: str) -> None:
        """Watch a change that is about to be made, and let happen what the seed wants to happen there."""
        current = self.world.current
        assert current
        if what == "get":
            return
        self.changes += 1
        self._only_the_owner(current.process, what, path)
        fault = None if self.calm else self.faults.at.get(self.changes)
        if fault:
            self.world.say(f"{fault} at change {self.changes}: {what} {path.removeprefix(self.temporary)}")
        if fault == "kill":
            current.process.kill()
        elif fault == "power":
            self._power_cut()
        elif fault == "suspend":
            current.process.wants_sleep = self.world.random.choice((5, 60, 60, 300))
        elif fault == "cancel":
            current.process.cancel()
        elif fault == "full" and what in {"create", "write"}:
            raise full(path)
        elif fault == "broken" and what in {"create", "write", "flush", "rename"}:
            raise broken(path)
        elif fault == "jump":
            seconds = (-3.0, 3.0) if self.faults.objects else (-3600.0, -3.0, 3.0, 3600.0)
            self.world.jumps[current.process.host] = self.world.random.choice(seconds)

    def _power_cut(self) -> None:
        for process in self.world.processes[1:]:
            process.kill()
        self.disk.lose_power()

    def _only_the_owner(self, process: Process, what: str, path: str) -> None:
        """Check that a change which others can see is made by the process that took the run last."""
        name = path.rpartition("/")[2]
        if self.faults.lying:  # it may have lost the leases
            return
        if name.startswith(".") or (what in {"create", "flush"} and not self.faults.objects):
            return
        for key, leases in self.owners.items():
            place = (f"/{RESULTS}/{key}/", f"/{RUNS}/{key}_plan")
            if process not in leases or "/lease/" in path or not any(one in path for one in place):
                continue
            last = max(leases, key=lambda one: leases[one].path)
            if last is not process:
                raise Violation(f"{process.pid} changes {path} of a run that {last.pid} has taken")

    # the course of events

    def run(self) -> None:
        """Let all happen, and check what must hold.

        Raises:
            Violation: it does not.
        """
        try:
            with ExitStack() as stack:
                stack.enter_context(inside(self.world))
                ObjectStore.empty(self.world, self.before)
                ObjectStore.failing = self.faults.store_failing
                stack.enter_context(mounted(self.disk))
                stack.enter_context(running(self.world))
                operator = self.world.start("operator", lambda process: self._operate())
                self.world.run(lambda: operator.ended)
                self._check()
        finally:
            shutil.rmtree(self.temporary)

    def _operate(self) -> None:
        """Start each run, and again whenever no attempt goes on; sometimes although one does."""
        world, random = self.world, self.world.random
        for _ in range(40):
            if all(self._done(order) for order in self.orders):
                break
            for order in self.orders:
                alive = [process for process in self.attempts[order.key] if process.alive]
                if not self._done(order) and (not alive or random.random() < 0.03):
                    self._start(order)
            if random.random() < 0.1:
                self._start(random.choice([order for order in self.orders if not self._done(order)]))
            world.sleep(random.choice((1.0, 10.0, 60.0)))
        self.calm, ObjectStore.failing, self.provider.failing = True, 0.0, 0.0
        world.jumps.clear()
        for order in self.orders:
            for _ in range(LAST_TRIES):
                if self._done(order):
                    break
                world.wait(lambda order=order: not any(p.alive for p in self.attempts[order.key]), 1_000)  # type: ignore[misc]
                if not self._done(order):
                    self._start(order)
                    world.sleep(100)
        world.wait(lambda: not any(one.alive for one in world.processes[1:]), 2_000)

    def _start(self, order: Order) -> None:
        def work(process: Process) -> str:
            loop = Loop(self.world, process)
            asyncio.events.set_event_loop(loop)
            try:
                ended = loop.run_until_complete(attempt(order, self.owners[order.key], process))
            except FathomError as error:
                if not self.faults.lying:
                    raise
                ended = f"failed: {error!r}"
            self.world.say(f"{order.key} ended: {ended.replace(self.temporary, '')}")
            return ended

        host = self.world.random.choice(HOSTS) if self.faults.objects else HOSTS[0]
        process = self.world.start(host, work)
        self.world.say(f"{order.key} is started as {process.pid} on {host}")
        self.attempts[order.key].append(process)

    def _done(self, order: Order) -> bool:
        return any(process.result == "complete" for process in self.attempts[order.key])

    # what must hold at the end

    def _check(self) -> None:
        if self.faults.lying:  # nothing can be kept; but a run that cannot go on says which file is damaged
            silent = [one for order in self.orders for one in self.attempts[order.key] if one.alive]
            if silent:
                raise Violation(f"{silent[0].pid} has no ending")
            return
        for order in self.orders:
            if not self._done(order):
                results = [one.result for one in self.attempts[order.key]]
                raise Violation(f"{order.key} has no ending: {results[-4:]}")
            paid, budget = self.provider.by_run.get(order.key, Cost()), order.budget
            if paid.calls > budget.max_calls or (budget.max_usd and paid.usd > Decimal(str(budget.max_usd))):
                raise Violation(f"{order.key} was paid {paid}, over {budget}")
        if self.provider.paid.usd > self.orders[0].daily:
            raise Violation(f"all runs were paid {self.provider.paid.usd} dollars, over {self.orders[0].daily}")
        if self.provider.again:
            raise Violation(f"asked again although the answer was stored: {self.provider.again}")
        if self.provider.changed:
            raise Violation("; ".join(self.provider.changed))
        reader = self.world.start("reader", lambda process: Loop(self.world, process).run_until_complete(self._read()))
        self.world.run(lambda: reader.ended)

    async def _read(self) -> None:
        store = ArtifactStore(self.root)
        for order in self.orders:
            folder = f"{RUNS}/{order.key}_plan"
            result = json.loads(await store.read(f"{folder}/{RESULT}"))
            log = await store.read(f"{folder}/{AUDIT_FILE}")
            if broken_at := check(log, AuditHead.model_validate(result["head"])):
                raise Violation(f"the audit log of {order.key} is broken: {broken_at}")
            ids = {event.id for event in events_in(log, ChainedEvent)}
            if lost := [one for one in order.recorded if one not in ids]:
                raise Violation(f"recorded events are not in the log of {order.key}: {lost}")
            report = (await store.read(f"{folder}/{REPORT_TEXT}")).decode()
            if report != "\n".join(result["known"]):
                raise Violation("the report is not of the result")
            self.files += await store.list(folder)
            self.lines += len(result["known"])
            self.computed += [event.type.value for event in events_in(log, ChainedEvent) if event.type in COMPUTED]
            lease = await read_lease(store, order.key)
            if lease is None or not lease.released:
                raise Violation(f"{order.key} has ended, and its lease has not: {lease}")
            for place in (folder, f"{RESULTS}/{order.key}", f"{RESULTS}/{order.key}/ledger"):
                if odd := [name for name in await store.list(place) if name.endswith(".tmp")]:
                    raise Violation(f"temporary files count as files: {odd}")
        spent = await SharedAccount(store, "2026-03-01", self.orders[0].daily, "FATHOM_DAILY_USD").spent()
        if spent < self.provider.paid.usd:
            raise Violation(f"the account of the day says {spent}, the provider {self.provider.paid.usd}")

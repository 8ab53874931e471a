"""A small run that makes of the engine all that makes a run durable: lease, ledger, results, audit log, folder, files.

Its shape is a run's shape: a plan, steps side by side whose calls depend on what was answered before, a report. What
it says is nothing, so that a thousand of them take seconds.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass, field
from decimal import Decimal

from fathom.budget.caps import SharedAccount, StoreBudget
from fathom.budget.ledger import Cost, Ledger
from fathom.clock import now
from fathom.config.groups import Budget, Role
from fathom.errors import BudgetExceeded, FathomError, RunBusy, RunCancelled, StoreError
from fathom.models import SourceText, ToolOutput
from fathom.storage.atomic import OUTAGE_SECONDS
from fathom.storage.lease import RESULTS, LeaseFile, LeaseKeeper, journals_of
from fathom.storage.store import REPORT_TEXT, RESULT, ArtifactStore, RunFolder, json_bytes
from fathom.tasks.durable import outside_prefect, recorded_task, storing
from fathom.telemetry.audit_events import Actor, AuditType
from fathom.telemetry.audit_log import PENDING_FILE, AuditLog
from simulator.provider import MOST_TOKENS, USD_A_TOKEN, Provider, ProviderDown
from simulator.world import Process, World

TRIES = 3
NOTHING = "no answer"


@dataclass
class Order:
    """What a run is asked to do, the same at each attempt; and who counts."""

    world: World
    provider: Provider
    root: str
    key: str
    budget: Budget
    daily: Decimal
    rounds: int = 2
    breadth: int = 3
    recorded: list[str] = field(default_factory=list)
    """Ids of the events that are on the disk."""


class Research:
    """One attempt at a run, by one process."""

    def __init__(self, order: Order, store: ArtifactStore, ledger: Ledger, audit: AuditLog) -> None:
        self.order = order
        self.store = store
        self.ledger = ledger
        self.audit = audit
        self.folder: RunFolder | None = None

    async def run(self) -> None:
        """Research, from the plan to the result."""
        kind = AuditType.session_resumed if await self.audit.exists() else AuditType.session_created
        session = await self.audit.record(kind, "user", self.order.key)
        with self.audit.under(session):
            day = await today(self)
            plan = await self._asked(f"plan {self.order.key} {day}")
            place = await claim(f"{self.order.key} plan", self)
            self.folder = RunFolder(self.store, place)
            await self.audit.settle(place)
            await self.noted(AuditType.plan_generated, Role.planner, plan)
            known = [plan]
            for number in range(self.order.rounds):
                steps = [self._step(number, step, known[-1]) for step in range(self.order.breadth)]
                known += await asyncio.gather(*steps)
                known.append(await self._asked(f"criticise {known}"))
            await self.folder.save_text(REPORT_TEXT, "\n".join(known))
            await self.audit.record(AuditType.session_completed, "system", "complete")
        head = self.audit.head
        assert head
        result = json_bytes({"status": "complete", "known": known, "head": head})
        await self.store.close_journal({f"{place}/{RESULT}": result})

    async def _step(self, round_number: int, step: int, known: str) -> str:
        await self.noted(AuditType.step_started, Role.researcher, f"{round_number}.{step}", known=known)
        found = await search(f"{known} {round_number} {step}", f"round{round_number}__step{step}", self)
        note = await self._asked(f"compress {found}")
        await self.noted(AuditType.note_created, Role.compressor, note)
        return note

    async def noted(self, type: AuditType, actor: Actor, action: str, **details: object) -> None:
        """Record an event, and remember that it is certain."""
        event = await self.audit.record(type, actor, action, **details)
        await self.store.commit()
        self.order.recorded.append(event)

    async def _asked(self, question: str) -> str:
        """Return the answer to a question, the stored one if there is one, and let the provider see that it is used."""
        try:
            answer = await ask(question, self)
        except BudgetExceeded:
            return NOTHING
        await self.store.commit()
        before = self.order.provider.used.setdefault(f"{self.order.key} {question}", answer)
        if before != answer:
            self.order.provider.changed.append(f"the answer to {question!r} was {before!r} and is {answer!r}")
        return answer


@recorded_task(name="today", run_name="read the date")
async def today(_run: Research) -> str:
    """Return the time: whoever resumes must find the first one."""
    return now().isoformat()


@recorded_task(name="claim folder", run_name="create the folder")
async def claim(title: str, _run: Research) -> str:
    """Return the run's folder."""
    folder = await RunFolder.claim(_run.store, title, _run.order.key, _run.order.key, {"plan_title": title})
    return folder.folder


@recorded_task(name="tool", run_name="search")
async def search(query: str, name: str, _run: Research) -> str:
    """Store what a tool found, and return it."""
    await asyncio.sleep(_run.order.world.random.random())
    assert _run.folder
    text = f"found for {query}"
    source = SourceText(source_id="a" * 8, url="https://example.org", title=query, kind="web", text=text)
    await _run.folder.save_raw(f"{name}.txt", ToolOutput(results=[source], structured=False))
    await _run.noted(AuditType.tool_called, Role.researcher, query)
    return text


@recorded_task(name="model call", run_name="ask")
async def ask(question: str, _run: Research) -> str:
    """Ask the provider, again if it fails, each time within the budget."""
    worst = Cost(MOST_TOKENS * USD_A_TOKEN, MOST_TOKENS, 1)
    for _ in range(TRIES):
        async with _run.ledger.attempt(lambda left: worst, research=False) as attempt:
            with suppress(ProviderDown):
                answer, tokens = await _run.order.provider.answer(_run.order.key, question)
                attempt.took(Cost(tokens * USD_A_TOKEN, tokens, 1))
                await _run.noted(AuditType.llm_called, Role.researcher, question, tokens=tokens)
                return answer
    return NOTHING


async def attempt(order: Order, owners: dict[Process, LeaseFile], process: Process) -> str:
    """Take a run, go on with it, and give it up; return how it ended, as `Supervision` does in a flow run."""
    patient, own = ArtifactStore(order.root, OUTAGE_SECONDS), ArtifactStore(order.root)
    try:
        lease = await LeaseFile.take(own, order.key, order.key, {})
    except RunBusy:
        return "busy"
    except StoreError as error:
        return f"failed: {error}"
    owners[process] = lease
    body = asyncio.current_task()
    loop = asyncio.get_running_loop()
    assert body
    why: list[FathomError] = []

    def stop(reason: FathomError) -> None:
        why.append(reason)
        body.cancel()

    process.cancel = lambda: loop.call_soon_threadsafe(stop, RunCancelled("The run was cancelled."))
    keeper = LeaseKeeper(lease, lambda reason: loop.call_soon_threadsafe(stop, reason))
    patient.guard(keeper)
    ended = "complete"
    try:
        await patient.open_journal(journals_of(order.key))
        await _continued(order, patient)
    except asyncio.CancelledError:
        ended = f"stopped: {why}"
    except (RunBusy, StoreError) as error:
        ended = f"failed: {error}"
    try:
        await patient.close_journal()
    except (RunBusy, StoreError, asyncio.CancelledError) as error:
        ended = f"{ended}, its journal is left: {error!r}"
    try:
        await keeper.release()
    except (StoreError, asyncio.CancelledError) as error:
        ended = f"{ended}, not given up: {error!r}"
    return ended


async def _continued(order: Order, store: ArtifactStore) -> None:
    with outside_prefect(storing(store, order.key)):
        account = SharedAccount(
            ArtifactStore(order.root, OUTAGE_SECONDS), "2026-03-01", order.daily, "FATHOM_DAILY_USD"
        )
        spending = StoreBudget([account])
        ledger = await Ledger.open(order.budget, store, f"{RESULTS}/{order.key}/ledger", spending)
        try:
            await spending.check()
            await Research(order, store, ledger, AuditLog(store, f"{RESULTS}/{order.key}/{PENDING_FILE}")).run()
        finally:
            await ledger.aclose()

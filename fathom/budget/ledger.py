"""What a run, or several on one budget, has spent: the worst case is reserved first, and then settled.

The sum of settled and reserved amounts never exceeds a cap, however many attempts are in progress. It is stored
before a request is sent, so the open reservations of a killed process count as spent.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from decimal import ROUND_DOWN, Decimal
from enum import StrEnum
from math import ceil
from typing import NamedTuple, Self
from uuid import uuid4

from fathom.budget.caps import StoreBudget
from fathom.clock import monotonic
from fathom.config.groups import Budget
from fathom.errors import BudgetExceeded, CircuitOpen, StoreError
from fathom.models import Account
from fathom.storage.lease import RESULTS, as_restored
from fathom.storage.store import ArtifactStore

NARROW_FROM = 0.9  # share of what research may spend
WARN_FROM = 0.8
LEAST_SECONDS = 0.5  # with less time a request would be cut off, and paid for in vain


class Allowance(StrEnum):
    """How much research may still do."""

    full = "full"
    narrow = "narrow"  # the next calls of important steps, one at a time
    none = "none"


class Cost(NamedTuple):
    """US dollars, tokens in both directions, and requests."""

    usd: Decimal = Decimal(0)
    tokens: int = 0
    calls: int = 0

    def plus(self, other: Cost) -> Cost:
        """Return the sum."""
        return Cost(self.usd + other.usd, self.tokens + other.tokens, self.calls + other.calls)

    def minus(self, other: Cost) -> Cost:
        """Return the difference."""
        return Cost(self.usd - other.usd, self.tokens - other.tokens, self.calls - other.calls)

    def least(self, other: Cost) -> Cost:
        """Return the smaller one of each."""
        return Cost(min(self.usd, other.usd), min(self.tokens, other.tokens), min(self.calls, other.calls))

    def fits(self, left: Cost) -> bool:
        """Whether every amount fits into what is left."""
        return self.usd <= left.usd and self.tokens <= left.tokens and self.calls <= left.calls


class Attempt:
    """One request in progress. Unless `took` is called, it counts as the whole reservation."""

    def __init__(self, reserved: Cost) -> None:
        self.cost = reserved

    def took(self, cost: Cost) -> None:
        """Record what the request cost."""
        self.cost = cost


class Ledger:
    """The account of one run, shared by all of its steps; every process has its own file in the folder.

    `earlier` is what earlier processes spent, and for how many seconds they worked.
    """

    def __init__(
        self,
        budget: Budget,
        store: ArtifactStore,
        folder: str,
        earlier: tuple[Cost, float] = (Cost(), 0.0),
        *,
        clock: Callable[[], float] = monotonic,
        store_budget: StoreBudget | None = None,
    ) -> None:
        self.budget = budget
        self.store = store
        self._path = f"{folder}/{uuid4().hex}.json"
        self._earlier, self._earlier_seconds = earlier
        self._spent = self._held = Cost()
        self._open = 0  # reservations
        self._store_budget = store_budget or StoreBudget()
        self._clock = clock
        self._began = clock()
        self.rested = 0.0
        """Seconds that this process waited for people, which do not count as work."""
        self._settled = asyncio.Event()
        self._saving = asyncio.Lock()
        self._version = self._saved = 0
        self.exhausted = False
        """Whether the budget kept a research role from calling its model; set by the caller."""

    @classmethod
    async def open(
        cls, budget: Budget, store: ArtifactStore, folder: str, store_budget: StoreBudget | None = None
    ) -> Self:
        """Return the ledger of a run, with what earlier processes spent on it; the store budget is of this process.

        Raises:
            StoreError: an account cannot be read.
        """
        spent, seconds = Cost(), 0.0
        for name in await store.list(folder):
            try:
                account = json.loads(await store.read(f"{folder}/{name}"))
                cost = Cost(Decimal(account["usd"]), int(account["tokens"]), int(account["calls"]))
                spent, seconds = spent.plus(cost), seconds + float(account["seconds"])
            except (ValueError, KeyError, TypeError, ArithmeticError) as error:
                raise StoreError(
                    f"{store.address(f'{folder}/{name}')} is not a valid account of the budget: {error!r}.",
                    next_step="restore the file; without it the budget cannot be kept",
                ) from error
        return cls(budget, store, folder, (spent, seconds), store_budget=store_budget)

    @classmethod
    async def read(cls, store: ArtifactStore, run_key: str) -> Self:
        """Return the ledger of a run, to read what it has spent; after an interruption, as it will be restored.

        Raises:
            StoreError: an account cannot be read.
        """
        return await cls.open(Budget(), await as_restored(store, run_key), f"{RESULTS}/{run_key}/ledger")

    async def aclose(self) -> None:
        """Give back what this process took from the caps of all runs and did not use."""
        await self._store_budget.close()

    @property
    def total(self) -> Cost:
        """What the run has spent, open reservations included."""
        return self._earlier.plus(self._spent).plus(self._held)

    @property
    def seconds(self) -> float:
        """Seconds of work on the run so far."""
        return self._earlier_seconds + self._own_seconds

    @property
    def _own_seconds(self) -> float:
        return self._clock() - self._began - self.rested

    @contextmanager
    def resting(self) -> Iterator[None]:
        """Leave out the time inside the block, in which the run waits for a person."""
        since = self._clock()
        try:
            yield
        finally:
            self.rested += self._clock() - since

    @property
    def account(self) -> Account:
        """What the run has spent so far, without open reservations."""
        total = self._earlier.plus(self._spent)
        return Account(usd=float(total.usd), tokens=total.tokens, calls=total.calls, seconds=round(self.seconds, 3))

    @property
    def level(self) -> float:
        """The largest share that is spent or reserved of what research may spend, over all caps; 1 is everything."""
        budget, total = self.budget, self.total
        spent = (float(total.usd), total.tokens, total.calls, self.seconds)
        caps = (budget.max_usd, budget.max_tokens, budget.max_calls, budget.max_seconds)
        return max(
            float(used) / (float(cap) * budget.research_share) if cap else 1.0
            for used, cap in zip(spent, caps, strict=True)
            if cap is not None
        )

    def allowance(self, *, notes: bool) -> Allowance:
        """Return what research may still do; until there is a note it continues, if necessary without a model."""
        if (self.exhausted or self.level >= 1) and notes:
            return Allowance.none
        return Allowance.narrow if self.exhausted or self.level >= NARROW_FROM else Allowance.full

    def seconds_left(self, *, research: bool) -> float:
        """Return how long a request may take at most."""
        if self.budget.max_seconds is None:
            return float("inf")
        return self.budget.max_seconds * self._share(research) - self.seconds

    @asynccontextmanager
    async def attempt(
        self, worst: Callable[[Cost], Cost | None], *, research: bool, timed: bool = True
    ) -> AsyncIterator[Attempt]:
        """Make one request inside the block, when its worst case fits into what is left.

        While other requests have reserved what it needs, it waits until they have settled.

        Args:
            worst: the most that the request can cost, given what is left; None when too little is left.
            research: whether it is part of the research, and so may not use what is kept for the report.
            timed: whether it may no longer be made when the time is up.

        Raises:
            BudgetExceeded: it does not fit, and no reservation could become free.
        """
        reserved = await self._reserve(worst, research, timed)
        attempt = Attempt(reserved)
        broken_off = covered = False
        try:
            await self._store_budget.cover(reserved.usd)
            covered = True
            await self._save()
            await self.store.commit()
            await self.store.confirm()
            yield attempt
        except (BudgetExceeded, CircuitOpen):  # no request was made
            attempt.took(Cost())
            raise
        except asyncio.CancelledError:
            broken_off = True  # it counts as its reservation, which the file says already
            raise
        finally:
            self._held = self._held.minus(reserved)
            self._open -= 1
            self._spent = self._spent.plus(attempt.cost)
            self._version += 1
            self._settled.set()
            if covered:
                self._store_budget.give_back(reserved.usd - attempt.cost.usd)
            if not broken_off:
                await self._save()

    async def _reserve(self, worst: Callable[[Cost], Cost | None], research: bool, timed: bool) -> Cost:
        while True:
            late = timed and self.seconds_left(research=research) < LEAST_SECONDS
            left = Cost() if late else self._left(research)
            wanted = worst(left.plus(self._held))
            if wanted and wanted.fits(left):
                self._held = self._held.plus(wanted)
                self._open += 1
                self._version += 1
                return wanted
            if not self._open or late:
                raise BudgetExceeded(
                    f"A request exceeds what is left of the {'research' if research else 'run'}'s budget: "
                    + ", ".join(self._remainder(left, research)),
                    next_step="raise the cap: --max-usd, --max-tokens, --max-calls or --max-seconds",
                )
            self._settled.clear()
            await self._settled.wait()

    def _share(self, research: bool) -> float:
        return self.budget.research_share if research else 1.0

    def _left(self, research: bool) -> Cost:
        budget, share, total = self.budget, self._share(research), self.total
        usd = Decimal("Infinity") if budget.max_usd is None else Decimal(str(budget.max_usd)) * Decimal(str(share))
        return Cost(usd, int(budget.max_tokens * share), int(budget.max_calls * share)).minus(total)

    def _remainder(self, left: Cost, research: bool) -> Iterator[str]:
        if self.budget.max_usd is not None:
            yield f"{left.usd:.4f} USD"
        yield f"{left.tokens:,} tokens"
        yield f"{left.calls:,} requests"
        if self.budget.max_seconds is not None:
            yield f"{max(0.0, self.seconds_left(research=research)):.0f} s."

    async def _save(self) -> None:
        """Store what is spent and reserved; callers that wait together share one write."""
        version = self._version
        async with self._saving:
            if self._saved >= version:
                return
            saving = self._version
            mine = self._spent.plus(self._held)
            account = {**mine._asdict(), "usd": str(mine.usd), "seconds": round(self._own_seconds, 3)}
            await self.store.write(self._path, json.dumps(account).encode())
            self._saved = saving


LEAST_SHARE = Decimal("0.25")
"""Of its share, with which a run still starts; with less it would wait, and then not start at all."""
LEAST_TOKENS, LEAST_CALLS = 50_000, 20
"""A share is no smaller, however many are asked at once: with less, no question is researched."""
_MICRO = Decimal("0.000001")
_NO_CAP = Cost(Decimal(10**9), 10**15, 10**12)
"""More than all runs together can use; finite, so that it can be subtracted."""


def caps(usd: float | None, tokens: int | None, calls: int | None) -> Cost:
    """Return caps as a cost; None is no cap."""
    return Cost(
        _NO_CAP.usd if usd is None else Decimal(str(usd)),
        _NO_CAP.tokens if tokens is None else tokens,
        _NO_CAP.calls if calls is None else calls,
    )


class SharedBudget:
    """Caps over several runs, up to `at_once` of them in progress.

    What is reserved and used together never exceeds a cap. Each run reserves an equal share of the caps (1/`at_once`),
    or all that is left if that is less.
    """

    def __init__(self, caps: Cost, at_once: int) -> None:
        self._left = caps
        usd = (self._left.usd / at_once).quantize(_MICRO, ROUND_DOWN)  # shares add up to no more than the cap
        tokens, calls = -(-self._left.tokens // at_once), -(-self._left.calls // at_once)
        self._share = Cost(usd, max(tokens, LEAST_TOKENS), max(calls, LEAST_CALLS))
        self._open = 0

    def reserve(self, own: Cost) -> Cost | None:
        """Return what a run may use, at most its own caps; None while it must wait for others to settle.

        Raises:
            BudgetExceeded: too little is left, and no run could give anything back.
        """
        wanted = own.least(self._share)
        given = wanted.least(self._left)
        least = Cost(wanted.usd * LEAST_SHARE, ceil(wanted.tokens * LEAST_SHARE), ceil(wanted.calls * LEAST_SHARE))
        if not least.fits(given):
            if self._open:
                return None
            raise BudgetExceeded(
                "Too little of the batch's budget is left for another question.",
                next_step="raise --max-usd, --max-tokens or --max-calls, and run the same command again",
            )
        self.take(given)
        return given

    def take(self, reserved: Cost) -> None:
        """Count a reservation that was made earlier."""
        self._left = self._left.minus(reserved)
        self._open += 1

    def settle(self, reserved: Cost, used: Cost) -> None:
        """Give back what a run did not use of its reservation."""
        self._left = self._left.plus(reserved).minus(used)
        self._open -= 1

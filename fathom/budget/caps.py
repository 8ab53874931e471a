"""What all runs on a store may spend in a day or a month: `FATHOM_DAILY_USD` and `FATHOM_MONTHLY_USD`.

An account is a folder of numbered entries; each entry holds the sum so far. The process that creates the next number
has changed the account: a race has one winner, and the others read the new sum and try again. So the cap holds over any
number of machines without a lock. A run takes a little at a time and gives back what it did not use; what a killed
process had taken counts as spent.
"""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Sequence
from datetime import datetime
from decimal import Decimal
from uuid import uuid4

from fathom.config.environment import Environment
from fathom.errors import BudgetExceeded, InvalidInput, StoreError
from fathom.storage.names import numbers_in
from fathom.storage.store import ArtifactStore

CAPS = ("FATHOM_DAILY_USD", "FATHOM_MONTHLY_USD")
SPENDING = ".spending"
PORTIONS = 100  # parts into which a cap is divided; a run takes one at a time, or more if it needs more
_DIGITS = 8
LOST_SECONDS = 0.05  # at most, before another attempt at an entry that somebody else made


class SharedAccount:
    """One period's account in a store, with its cap in US dollars."""

    def __init__(self, store: ArtifactStore, period: str, cap: Decimal, name: str) -> None:
        self.cap = cap
        self.name = name  # of the variable that sets the cap
        self._store = store
        self._folder = f"{SPENDING}/{period}"
        self._number = 0  # of the last entry known, as is the next

    async def check(self) -> None:
        """Check that the store can keep the account.

        Raises:
            InvalidInput: two processes could create the same entry.
        """
        if not await self._store.exclusive():
            raise InvalidInput(
                f"{self._store.address()} ignores conditional writes, so {self.name} cannot be kept there.",
                next_step="choose a store that has them, as Amazon S3 does, or unset the variable",
            )

    async def spent(self) -> Decimal:
        """Return the amount that is spent or taken."""
        return (await self._last())[1]

    async def change(self, usd: Decimal) -> bool:
        """Add an amount, unless the sum would exceed the cap; a negative one gives back.

        Raises:
            StoreError: the account cannot be read or written.
        """
        while True:
            number, total = await self._last()
            if usd > 0 and total + usd > self.cap:
                return False
            entry = {"total": str(max(Decimal(0), total + usd)), "change": str(usd), "token": uuid4().hex}
            if await self._store.create(self._path(number + 1), json.dumps(entry).encode()):
                self._number = number + 1
                return True
            await asyncio.sleep(random.uniform(0, LOST_SECONDS))  # noqa: S311 - so that the others differ

    async def _last(self) -> tuple[int, Decimal]:
        """Return the number and the sum of the last entry. Entries after the last known one are few."""
        number = self._number
        if not number:
            number = max(numbers_in(await self._store.list(self._folder)), default=0)
        while await self._store.exists(self._path(number + 1)):
            number += 1
        self._number = number
        if not number:
            return 0, Decimal(0)
        try:
            return number, Decimal(json.loads(await self._store.read(self._path(number)))["total"])
        except (ValueError, KeyError, TypeError, ArithmeticError) as error:
            address = self._store.address(self._path(number))
            raise StoreError(f"{address} is not a valid entry: {error!r}.", next_step="remove that file") from error

    def _path(self, number: int) -> str:
        return f"{self._folder}/{number:0{_DIGITS}}.json"


class StoreBudget:
    """What one process of a run has taken from the accounts of the day and the month.

    The day and the month are the ones in which the process began.
    """

    def __init__(self, accounts: Sequence[SharedAccount] = ()) -> None:
        self._accounts = accounts
        self._taken = Decimal(0)
        self._used = Decimal(0)
        self._changing = asyncio.Lock()
        self._taking: asyncio.Future[None] | None = None

    async def check(self) -> None:
        """Check that some of the budget is left.

        Raises:
            BudgetExceeded: there is not.
            InvalidInput: the store cannot keep the accounts.
        """
        for account in self._accounts:
            await account.check()
            if await account.spent() >= account.cap:
                raise _exceeded(account)

    async def cover(self, usd: Decimal) -> None:
        """Take what is needed so that another amount can be spent.

        Raises:
            BudgetExceeded: an account has too little left.
        """
        async with self._changing:
            if self._accounts and (needed := self._used + usd - self._taken) > 0:
                # Whatever happens to the run, what an account has given is known, so that it can be given back.
                self._taking = asyncio.ensure_future(self._take(needed))
                await asyncio.shield(self._taking)
            self._used += usd

    def give_back(self, usd: Decimal) -> None:
        """Count a part of what was covered as not spent."""
        self._used -= usd

    async def close(self) -> None:
        """Give back what was taken and not used."""
        if self._taking:
            await asyncio.wait([self._taking])
        async with self._changing:
            if rest := self._taken - self._used:
                self._taken -= rest
                await asyncio.gather(*(account.change(-rest) for account in self._accounts))

    async def _take(self, needed: Decimal) -> None:
        portion = min(account.cap / PORTIONS for account in self._accounts)
        for amount in sorted({max(needed, portion), needed}, reverse=True):
            changed: list[SharedAccount] = []
            for account in self._accounts:
                if not await account.change(amount):
                    break
                changed.append(account)
            else:
                self._taken += amount
                return
            for account in changed:
                await account.change(-amount)
        raise _exceeded(account)


def store_budget_of(store: ArtifactStore, environment: Environment, now: datetime) -> StoreBudget:
    """Return the budget of a run in its store that begins now (UTC), with the caps of the environment."""
    day, month = now.date().isoformat(), f"{now:%Y-%m}"
    caps = [(period, environment.cap(name), name) for period, name in zip((day, month), CAPS, strict=True)]
    return StoreBudget([SharedAccount(store, period, cap, name) for period, cap, name in caps if cap is not None])


def _exceeded(account: SharedAccount) -> BudgetExceeded:
    return BudgetExceeded(
        f"All runs together have spent {account.name} ({account.cap} US dollars), or too little of it is left.",
        next_step=f"raise {account.name}, or wait for the next day or month (UTC)",
    )

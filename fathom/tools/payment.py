"""Paying for searches and pages: a request is reserved in the run's budget before it is sent, like a call to a model.

Few vendors state the cost in an answer, so a request counts at the price in the vendor's list, even if the answer never
came or could not be read. A request that the vendor refused (HTTP 4xx) costs nothing.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from decimal import Decimal
from typing import TypeVar

from fathom.budget.ledger import Cost, Ledger
from fathom.errors import ToolError
from fathom.models import Charge

T = TypeVar("T")
Price = Decimal | None
"""The maximum cost of a request in US dollars; None when it is not known."""

_receipt: ContextVar[list[Charge] | None] = ContextVar("fathom_receipt", default=None)


@contextmanager
def receipt() -> Iterator[list[Charge]]:
    """Yield the charges of the paid requests that are answered inside the block."""
    charges: list[Charge] = []
    token = _receipt.set(charges)
    try:
        yield charges
    finally:
        _receipt.reset(token)


class SearchBudget:
    """Pays from the budget of a run, if there is one; `prices` are the user's, in dollars a search by vendor."""

    def __init__(self, ledger: Ledger | None = None, prices: Mapping[str, float] | None = None) -> None:
        self._ledger = ledger
        self._prices = {vendor.strip().lower(): usd for vendor, usd in (prices or {}).items()}

    def price(self, vendor: str, listed: Price, *, search: bool = True) -> Price:
        """Return the price of a search by a vendor, the user's or else the listed one, or of a page that it reads.

        A vendor whose searches cost the user nothing, as in a free plan, reads pages for nothing too.
        """
        own = self._prices.get(vendor)
        return Decimal(str(own)) if own is not None and (search or not own) else listed

    async def pay(
        self, what: str, price: Price, ask: Callable[[], Awaitable[T]], cost: Callable[[T], Decimal] | None = None
    ) -> T:
        """Make one request if its price fits into the remaining budget; `cost` returns the cost from the answer.

        What the run has recorded so far is certain before the request is sent.

        Raises:
            BudgetExceeded: it does not fit, and no reservation could become free.
            ToolError: the request failed.
        """
        if not price:
            if self._ledger:
                await self._ledger.store.commit()
            answer = await ask()
            if price is None:
                _note(Charge(service=what, usd=None))
            return answer
        if self._ledger is None:
            return await ask()
        # Whether there is time for a search is decided with the step's next calls, not here.
        async with self._ledger.attempt(lambda _left: Cost(price), research=True, timed=False) as attempt:
            try:
                answer = await ask()
            except ToolError as error:
                if error.status is not None and error.status < 500:
                    attempt.took(Cost())
                raise
            attempt.took(Cost(max(Decimal(0), min(price, cost(answer))) if cost else price))
        _note(Charge(service=what, usd=float(attempt.cost.usd)))
        return answer


def _note(charge: Charge) -> None:
    if (charges := _receipt.get()) is not None:
        charges.append(charge)

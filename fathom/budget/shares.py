"""One budget for several runs: each reserves its own caps before it starts, and then settles what it used."""

from __future__ import annotations

from decimal import ROUND_DOWN, Decimal
from math import ceil

from fathom.budget.ledger import Cost
from fathom.errors import BudgetExceeded

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
    """Caps over runs of which up to `at_once` are in progress.

    What is reserved and used together never exceeds a cap. A run reserves an equal share for each of those at once,
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
        """Count a reservation that was made before."""
        self._left = self._left.minus(reserved)
        self._open += 1

    def settle(self, reserved: Cost, used: Cost) -> None:
        """Give back what a run did not use of its reservation."""
        self._left = self._left.plus(reserved).minus(used)
        self._open -= 1

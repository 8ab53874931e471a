"""A provider of models: it outlives every process, counts what it is paid, and never gives the same answer twice."""

from __future__ import annotations

import asyncio
import hashlib
from decimal import Decimal

from fathom.budget.ledger import Cost
from simulator.world import World

USD_A_TOKEN = Decimal("0.0001")
MOST_TOKENS = 100


class ProviderDown(Exception):
    """It failed; it may have been paid for the request or not."""


class Provider:
    """Answers questions, once for each request; `stored` holds the answers that a run has been given to use."""

    def __init__(self, world: World, failing: float) -> None:
        self._world = world
        self.failing = failing
        self._answers = 0
        self.again: list[str] = []
        self.changed: list[str] = []
        self.by_run: dict[str, Cost] = {}
        self.paid = Cost()
        self.used: dict[str, str] = {}

    async def answer(self, run: str, question: str) -> tuple[str, int]:
        """Return an answer and its tokens.

        Raises:
            ProviderDown: it failed.
        """
        random = self._world.random
        self._world.say(f"asks {question!r}")
        if f"{run} {question}" in self.used:
            self.again.append(question)
        tokens = random.randint(1, MOST_TOKENS)
        fails = random.random() < self.failing
        if not fails or random.random() < 0.5:
            cost = Cost(tokens * USD_A_TOKEN, tokens, 1)
            self.paid = self.paid.plus(cost)
            self.by_run[run] = self.by_run.get(run, Cost()).plus(cost)
        await asyncio.sleep(random.choice((0.01, 0.5, 3.0, 20.0)) * random.random())
        if fails:
            raise ProviderDown
        self._answers += 1
        return f"{hashlib.sha256(question.encode()).hexdigest()[:8]} {self._answers}", tokens

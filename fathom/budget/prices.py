"""What model calls cost: by the user's prices, else by litellm's table; a model that is in neither has no known price.

Amounts are US dollars as decimals.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal
from types import ModuleType

from fathom.config.caps import Price

MILLION = Decimal(1_000_000)
LOCAL = frozenset({"ollama", "ollama_chat", "llamafile", "lm_studio"})
"""Providers that are a server of the user's own."""

# What a tier costs that Fathom never asks for.
_OTHER_TIERS = ("_priority", "_flex", "_batches")
_INPUT = ("input_cost_per_token", "cache_creation_input_token_cost")
_OUTPUT = ("output_cost_per_token", "output_cost_per_reasoning_token")


class Rates:
    """US dollars per token, sent and received."""

    def __init__(self, sent: Decimal, received: Decimal) -> None:
        self.sent = sent
        self.received = received

    def of(self, sent: int, received: int) -> Decimal:
        """Return what so many tokens cost."""
        return sent * self.sent + received * self.received


class Pricing:
    """The prices of a run.

    Args:
        litellm: the module, whose `model_cost` is the table.
        prices: the user's, by model name; they win.
    """

    def __init__(self, litellm: ModuleType, prices: Mapping[str, Price]) -> None:
        self._litellm = litellm
        self._prices = prices

    def highest(self, model: str) -> Rates | None:
        """Return the most a token can cost, whatever the length of the prompt; None when no price is known."""
        if price := self._prices.get(model):
            return _rates(price)
        entry = self._entry(model)
        if entry is not None and entry.get("input_cost_per_token") is not None:
            return Rates(_most(entry, _INPUT), _most(entry, _OUTPUT))
        return Rates(Decimal(0), Decimal(0)) if model.partition("/")[0] in LOCAL else None

    def cost(self, model: str, sent: int, received: int) -> Decimal | None:
        """Return what a call took. Cached tokens count in full, so it is an upper bound; None: no price is known."""
        if price := self._prices.get(model):
            return _rates(price).of(sent, received)
        entry = self._entry(model)
        if entry is None or entry.get("input_cost_per_token") is None:
            return None if self.highest(model) is None else Decimal(0)
        rates = Rates(_rate(entry, "input_cost_per_token", sent), _rate(entry, "output_cost_per_token", sent))
        return rates.of(sent, received)

    def _entry(self, model: str) -> Mapping[str, object] | None:
        table: Mapping[str, Mapping[str, object]] = self._litellm.model_cost
        return table.get(model) or table.get(model.partition("/")[2])


def _rate(entry: Mapping[str, object], name: str, sent: int) -> Decimal:
    """Return what a token costs in a call of so many sent ones: some models are dearer from a length on."""
    tiers = {0: entry.get(name)}
    for key, rate in entry.items():
        if found := re.fullmatch(rf"{name}_above_(\d+)k_tokens", key):
            tiers[int(found[1]) * 1_000] = rate
    rate = tiers[max(above for above in tiers if above == 0 or sent > above)]
    return Decimal(str(rate)) if isinstance(rate, int | float) else Decimal(0)


def _rates(price: Price) -> Rates:
    return Rates(Decimal(str(price.input)) / MILLION, Decimal(str(price.output)) / MILLION)


def _most(entry: Mapping[str, object], names: tuple[str, ...]) -> Decimal:
    rates = [
        Decimal(str(rate))
        for name, rate in entry.items()
        if name.startswith(names) and not name.endswith(_OTHER_TIERS) and isinstance(rate, int | float)
    ]
    return max(rates, default=Decimal(0))

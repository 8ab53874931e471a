"""What model calls cost, in US dollars: by the user's prices, else by litellm's table, else unknown."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import NamedTuple

from fathom.budget.model_table import model_entry
from fathom.config.caps import Price

_MILLION = Decimal(1_000_000)
_LOCAL = frozenset({"ollama", "ollama_chat", "llamafile", "lm_studio"})  # servers of the user's own
# Prices of tiers that Fathom never asks for.
_OTHER_TIERS = ("_priority", "_flex", "_batches")
_INPUT = ("input_cost_per_token", "cache_creation_input_token_cost")
_OUTPUT = ("output_cost_per_token", "output_cost_per_reasoning_token")


class Rates(NamedTuple):
    """US dollars per token, sent and received."""

    sent: Decimal = Decimal(0)
    received: Decimal = Decimal(0)

    def of(self, sent: int, received: int) -> Decimal:
        """Return the cost of a number of tokens."""
        return sent * self.sent + received * self.received


class Pricing:
    """The prices of a run: the user's by model name, which replace those of litellm's table."""

    def __init__(self, prices: Mapping[str, Price]) -> None:
        self._prices = prices

    def highest(self, model: str) -> Rates | None:
        """Return the most a token can cost, whatever the length of the prompt; None when the price is unknown."""
        return self._rates(model, lambda entry: Rates(_most(entry, _INPUT), _most(entry, _OUTPUT)))

    def cost(self, model: str, sent: int, received: int) -> Decimal | None:
        """Return the cost of a call; None when the price is unknown. Cached tokens count in full: an upper bound."""
        names = ("input_cost_per_token", "output_cost_per_token")
        rates = self._rates(model, lambda entry: Rates(*(_rate(entry, name, sent) for name in names)))
        return None if rates is None else rates.of(sent, received)

    def _rates(self, model: str, of_entry: Callable[[Mapping[str, object]], Rates]) -> Rates | None:
        if price := self._prices.get(model):
            return Rates(Decimal(str(price.input)) / _MILLION, Decimal(str(price.output)) / _MILLION)
        entry = model_entry(model)
        if entry.get("input_cost_per_token") is not None:
            return of_entry(entry)
        return Rates() if model.partition("/")[0] in _LOCAL else None


def _rate(entry: Mapping[str, object], name: str, sent: int) -> Decimal:
    """Return the price of a token in a call that sends this many: some models cost more above a length."""
    tiers = {0: entry.get(name)}
    for key, rate in entry.items():
        if found := re.fullmatch(rf"{name}_above_(\d+)k_tokens", key):
            tiers[int(found[1]) * 1_000] = rate
    rate = tiers[max(above for above in tiers if above == 0 or sent > above)]
    return Decimal(str(rate)) if isinstance(rate, int | float) else Decimal(0)


def _most(entry: Mapping[str, object], names: tuple[str, ...]) -> Decimal:
    rates = [
        Decimal(str(rate))
        for name, rate in entry.items()
        if name.startswith(names) and not name.endswith(_OTHER_TIERS) and isinstance(rate, int | float)
    ]
    return max(rates, default=Decimal(0))

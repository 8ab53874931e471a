"""What model calls cost, in US dollars: by the user's prices, else by litellm's table, else unknown."""

from __future__ import annotations

import importlib.util
import json
import re
from collections.abc import Callable, Mapping
from decimal import Decimal
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from fathom.config.groups import Price

_MILLION = Decimal(1_000_000)
_LOCAL = frozenset({"ollama", "ollama_chat", "llamafile", "lm_studio"})  # servers of the user's own
# Prices of tiers that Fathom never asks for, and of a cache that is kept for longer.
_OTHER_TIERS = re.compile(r"_(?:priority|flex|batches)$|_above_1hr")
_READ, _WRITTEN = "cache_read_input_token_cost", "cache_creation_input_token_cost"
_INPUT = ("input_cost_per_token", _WRITTEN)
_OUTPUT = ("output_cost_per_token", "output_cost_per_reasoning_token")


class Rates(NamedTuple):
    """US dollars per token: sent, received, read from a cache and written to a cache."""

    sent: Decimal = Decimal(0)
    received: Decimal = Decimal(0)
    cached: Decimal = Decimal(0)
    written: Decimal = Decimal(0)

    def of(self, sent: int, received: int, cached: int = 0, written: int = 0) -> Decimal:
        """Return the cost of a number of tokens; some of the sent tokens are read from the cache or written to it."""
        fresh = sent - cached - written
        return fresh * self.sent + cached * self.cached + written * self.written + received * self.received


class Pricing:
    """The prices of a run: the user's prices by model name, which override litellm's table."""

    def __init__(self, prices: Mapping[str, Price]) -> None:
        self._prices = prices

    def highest(self, model: str) -> Rates | None:
        """Return the most a token can cost, whatever the length of the prompt; None when the price is unknown."""
        return self._rates(model, lambda entry: Rates(_most(entry, _INPUT), _most(entry, _OUTPUT)))

    def cost(self, model: str, sent: int, received: int, cached: int = 0, written: int = 0) -> Decimal | None:
        """Return the cost of a call; None when the price is unknown.

        Of the tokens sent, some were read from a cache and others written to it. Where these have no price of their
        own, they count in full; and what is written never counts less.
        """
        rates = self._rates(model, lambda entry: _rates_of(entry, sent))
        if rates is None:
            return None
        cached = min(cached, sent)
        written = min(written, sent - cached)
        return rates.of(sent, received, cached, written)

    def _rates(self, model: str, of_entry: Callable[[Mapping[str, object]], Rates]) -> Rates | None:
        if price := self._prices.get(model):
            cached = price.input if price.cached is None else price.cached
            dollars = (price.input, price.output, cached, price.input)
            return Rates(*(Decimal(str(each)) / _MILLION for each in dollars))
        entry = model_entry(model)
        if entry.get("input_cost_per_token") is not None:
            return of_entry(entry)
        return Rates() if model.partition("/")[0] in _LOCAL else None


def _rates_of(entry: Mapping[str, object], sent: int) -> Rates:
    full = _rate(entry, "input_cost_per_token", sent)
    return Rates(
        full,
        _rate(entry, "output_cost_per_token", sent),
        _rate(entry, _READ, sent) if isinstance(entry.get(_READ), int | float) else full,
        max(full, _rate(entry, _WRITTEN, sent)),
    )


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
        if name.startswith(names) and not _OTHER_TIERS.search(name) and isinstance(rate, int | float)
    ]
    return max(rates, default=Decimal(0))


_FILE = "model_prices_and_context_window_backup.json"


@lru_cache(maxsize=100)
def model_entry(model: str) -> Mapping[str, object]:
    """Return litellm's entry of a model, by its name with or without its provider; empty for an unknown one.

    `litellm_provider` and `mode`, such as `chat`, tell how it is called, `input_cost_per_token` and others what it
    costs in US dollars, `supports_reasoning` that it thinks before it answers.
    """
    spec = importlib.util.find_spec("litellm")
    assert spec and spec.origin
    table = json.loads(Path(spec.origin).with_name(_FILE).read_bytes())
    entry: Mapping[str, object] = table.get(model) or table.get(model.partition("/")[2]) or {}
    return entry


def provider_and_name(model: str) -> tuple[str, str]:
    """Return a model's provider, named or known from the table, and its name there."""
    provider, slash, name = model.partition("/")
    return (provider, name) if slash else (str(model_entry(model).get("litellm_provider") or "openai"), model)

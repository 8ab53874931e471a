"""What a model call costs, by litellm's table of prices; a model that is not in it has no known price."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["cost_usd"]


def cost_usd(
    prices: Mapping[str, Mapping[str, Any]], model: str, prompt_tokens: int, completion_tokens: int
) -> float | None:
    """Return the price of a call in US dollars, or None when the table does not know the model.

    Args:
        prices: litellm's `model_cost`: model -> `input_cost_per_token`, `output_cost_per_token` in USD.
        model: litellm model name; a table entry without the provider's prefix is taken too.
        prompt_tokens: tokens sent. Cached ones count in full, so the figure is an upper bound.
        completion_tokens: tokens received, reasoning included.
    """
    entry = prices.get(model) or prices.get(model.partition("/")[2])
    if not entry or entry.get("input_cost_per_token") is None:
        return None
    return float(
        prompt_tokens * entry["input_cost_per_token"] + completion_tokens * (entry.get("output_cost_per_token") or 0.0)
    )

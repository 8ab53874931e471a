"""Support of a claim by its references, for the engine's `support` operation."""

from __future__ import annotations

from typing import Any

import fathom.text

__all__ = ["support"]


def support(request: dict[str, Any]) -> dict[str, float]:
    """Return how far the references support the claim, from 0 to 1."""
    return {"score": fathom.text.support(request["claim"], request["references"])}

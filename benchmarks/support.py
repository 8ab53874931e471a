"""Support of a claim by its references, for the engine's `support` operation."""

from __future__ import annotations

from typing import Any

from fathom.evidence.comparing import Passage, objections
from fathom.evidence.support import support as covered

GRAVE = 0.07  # what a number, date or name that is nowhere in the references costs


def support(request: dict[str, Any]) -> dict[str, float]:
    """Return how far the references support the claim, from 0 to 1, as Fathom's check of a report sees it."""
    claim, references = request["claim"], request["references"]
    whole = "\n".join(references)
    found = objections(claim, [Passage(quote=whole, best=whole, near="", source=whole)])
    cost = GRAVE if any(objection.grave for objection in found) else 0.0
    return {"score": max(0.0, covered(claim, references) - cost)}

"""The confidence of a short answer: what its writer states, and no more than the check of its claims allows."""

from __future__ import annotations

from collections.abc import Sequence

from fathom.models import Claim, Corroboration, Verdict

MOST = {Verdict.supported: 1.0, Verdict.not_checked: 1.0, Verdict.not_stated: 0.3, Verdict.contradicted: 0.1}
"""Highest confidence of an answer by the worst verdict on its sentences. A convention, not a measurement."""
DISPUTED = 0.5  # highest where another source contradicts it


def confidence_within(stated: float | None, claims: Sequence[Claim]) -> float | None:
    """Return the stated confidence, 0 to 1, lowered to what the evidence allows; None if none is stated."""
    if stated is None:
        return None
    return min([stated, *(_most(claim) for claim in claims)])


def _most(claim: Claim) -> float:
    most = MOST[claim.verdict]
    return min(most, DISPUTED) if claim.corroboration is Corroboration.contradicted else most

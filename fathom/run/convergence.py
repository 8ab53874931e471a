"""Whether another round follows: a pure decision with a typed reason."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from fathom.models import Reflection


class Reason(StrEnum):
    """Why the research continues or stops."""

    gaps = "gaps remain"
    sufficient = "the evidence is sufficient"
    depth = "the last round is done"
    nothing_new = "the round found nothing new"
    no_follow_up = "no follow-up step was proposed"
    no_evidence = "nothing was found"
    budget = "the budget for research is spent"


class Decision(NamedTuple):
    """Whether to go on, and why."""

    go_on: bool
    reason: Reason


def decide(
    *,
    round_number: int,
    depth: int,
    reflection: Reflection | None,
    new_notes: int,
    notes: int,
    sufficiency: int,
    cut: bool = False,
) -> Decision:
    """Decide after a round, counted from 1, of `depth` at most; `notes` are the useful ones so far.

    From a score of `sufficiency`, 1 to 10, the evidence suffices. `cut`: the budget ended the research.
    """
    if cut:
        return Decision(False, Reason.budget)
    if reflection is not None and notes and reflection.sufficiency_score >= sufficiency:
        return Decision(False, Reason.sufficient)
    if reflection is None or round_number >= depth:
        return Decision(False, Reason.depth if notes else Reason.no_evidence)
    if not reflection.follow_up_steps:
        return Decision(False, Reason.no_follow_up if notes else Reason.no_evidence)
    if round_number > 1 and not new_notes:
        return Decision(False, Reason.nothing_new if notes else Reason.no_evidence)
    return Decision(True, Reason.gaps)

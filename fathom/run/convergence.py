"""Whether another round follows: a pure decision with a typed reason."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import NamedTuple

from fathom.models import PlanStep, Reflection


class Reason(StrEnum):
    """Why the research continues or stops."""

    gaps = "gaps remain"
    blocked = "a step found nothing and is tried again"
    remark = "a person asked for more"
    sufficient = "the evidence is sufficient"
    depth = "the last round is done"
    nothing_new = "the round found nothing new"
    no_follow_up = "no follow-up step was proposed"
    no_evidence = "nothing was found"
    budget = "the budget for research is spent"
    stopped = "a person stopped the research"


class Decision(NamedTuple):
    """Whether to go on, and why."""

    go_on: bool
    reason: Reason


def decide(
    *,
    round_number: int,
    depth: int,
    reflection: Reflection | None,
    steps: Sequence[PlanStep],
    new_notes: int,
    notes: int,
    sufficiency: int,
    cut: bool = False,
    stopped: bool = False,
    asked: bool = False,
) -> Decision:
    """Decide after a round, counted from 1, of `depth` at most; `notes` are the useful ones so far.

    `steps` are those that another round would have. From a score of `sufficiency`, 1 to 10, the evidence suffices,
    whatever step is blocked. `cut`: the budget ended the research. `stopped`: a person did. `asked`: a person asked for
    something, which a round beyond the last one may look for.
    """
    if stopped or cut:
        return Decision(False, Reason.stopped if stopped else Reason.budget)
    if asked and steps:
        return Decision(True, Reason.remark)
    if reflection is not None and notes and reflection.sufficiency_score >= sufficiency:
        return Decision(False, Reason.sufficient)
    last = round_number >= depth
    if last or not steps or (round_number > 1 and not new_notes):
        why = Reason.depth if last else Reason.nothing_new if steps else Reason.no_follow_up
        return Decision(False, why if notes else Reason.no_evidence)
    return Decision(True, Reason.blocked if all(step.retries for step in steps) else Reason.gaps)

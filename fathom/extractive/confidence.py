"""How likely a quoted answer is right, by what the ranking knows of it.

The weights are those of a logistic regression on every other question of five public sets (HotpotQA, MuSiQue,
2WikiMultihopQA, XQuAD, COVID-QA), a sixth of which are asked of pages without an answer.
`python -m benchmarks.calibration` fits them again and measures them on the other half.
"""

from __future__ import annotations

import math
from typing import NamedTuple

CONSTANT = -2.46
WEIGHTS = (0.91, 2.17, 0.55, -1.22)  # of the signs, in their order


class Signs(NamedTuple):
    """What tells a right answer from a wrong one; each from 0 to 1."""

    share: float  # of the question's terms, by worth, that the excerpt or its surroundings hold
    held: float  # share of the question's terms that the answer itself holds
    of_kind: bool  # the question tells what kind of thing it asks for, and the answer holds one
    rival: float  # score of the best answer from another text, as a share of this one's

    def confidence(self) -> float:
        """Return the probability that the answer is right, with two decimals."""
        logit = CONSTANT + sum(weight * sign for weight, sign in zip(WEIGHTS, self, strict=True))
        return round(1 / (1 + math.exp(-logit)), 2)

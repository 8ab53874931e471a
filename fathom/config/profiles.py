"""How deep a run goes: profiles, and whether the question decides how much of one is used."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any


class Profile(StrEnum):
    """Named sets of values; see `PROFILES`."""

    quick = "quick"
    standard = "standard"
    deep = "deep"


class Effort(StrEnum):
    """Whether the kind of the question decides how much of the profile a run uses."""

    auto = "auto"
    fixed = "fixed"


class Execution(StrEnum):
    """Whether the steps of a round run one after another or independent ones together."""

    sequential = "sequential"
    parallel = "parallel"


ABOUT: Mapping[Profile, str] = {
    Profile.quick: "One round of searching. For a fact, or a first look.",
    Profile.standard: "Two rounds, with a check of what is missing in between.",
    Profile.deep: "Three wider rounds, with more steps and searches. For a broad or difficult matter.",
}
"""What each is for, as a person who chooses one reads it."""
_SEQUENTIAL = {"execution": Execution.sequential}
_PARALLEL = {"execution": Execution.parallel}
PROFILES: Mapping[Profile, Mapping[str, Any]] = {
    Profile.quick: {"depth": 1, "breadth": 2, "max_steps": 3, "turns": 1, "passage_tokens": 0, **_SEQUENTIAL},
    Profile.standard: {"depth": 2, "breadth": 3, "max_steps": 5, "turns": 2, "passage_tokens": 0, **_PARALLEL},
    Profile.deep: {"depth": 3, "breadth": 4, "max_steps": 7, "turns": 3, "passage_tokens": 1_500, **_PARALLEL},
}
"""`quick` is the core specification to the letter: one round, no reflection, one step after another. `deep` reads the
sources again for each section: elsewhere only the compressor sees them."""

"""How much work a question deserves: the planner judges what kind it is and how wide, and this makes numbers of it.

The profile's numbers are the most. What the user has set to another number stays as it is, and a plan without a
judgement, as some small models make it, has the whole profile.
"""

from __future__ import annotations

from math import ceil
from typing import Any, NamedTuple

from fathom.config.groups import PROFILES, Effort
from fathom.config.settings import ResearchSettings, ResolvedSettings
from fathom.models import Kind, Width

SIMPLE_RESULTS = 3  # pages or documents that a simple fact is looked up in, for each call
_EACH_SIDE = (Kind.comparison, Kind.decision)  # have a step for each side, however narrow they are


class Scope(NamedTuple):
    """What a run works with. `simple`: one fact, for which no critic is asked and no outline is made."""

    settings: ResolvedSettings
    simple: bool = False


def scope_of(settings: ResolvedSettings, kind: Kind | None, width: Width | None) -> Scope:
    """Return what a question of a kind and a width deserves, within the bounds of the settings."""
    if settings.effort is Effort.fixed or not kind or width in (None, Width.broad) or kind is Kind.survey:
        return Scope(settings)
    if kind is Kind.fact and width is Width.narrow:
        least = {"max_steps": 1, "turns": 1, "depth": min(2, settings.depth)}
        # Reading more costs nothing without a model, which also finds less in what it reads.
        less = {} if settings.extractive else {"breadth": 1, "max_results": min(SIMPLE_RESULTS, settings.max_results)}
        return Scope(_narrowed(settings, {**least, **less}), True)
    share = 1 / 2 if width is Width.narrow else 3 / 4
    steps = settings.max_steps if kind in _EACH_SIDE else ceil(share * settings.max_steps)
    breadth = ceil(share * settings.breadth)
    return Scope(_narrowed(settings, {"max_steps": steps, "breadth": breadth, "depth": min(2, settings.depth)}))


def _narrowed(settings: ResolvedSettings, numbers: dict[str, Any]) -> ResolvedSettings:
    usual = {**PROFILES[settings.profile], "max_results": ResearchSettings.model_fields["max_results"].default}
    return settings.model_copy(
        update={name: n for name, n in numbers.items() if getattr(settings, name) == usual[name]}
    )

"""What a run would take: calls, tokens and dollars by phase, as is usual and at most."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from fathom.budget.prices import Rates
from fathom.config.models import EXTRACTIVE, Role
from fathom.config.settings import Mode, ResolvedSettings
from fathom.roles.reporter import MAX_SECTIONS

# Tokens sent and received by a usual call: medians of `make bench` with pages of 20 kB, rounded up.
_USUAL = {
    Role.planner: (1_200, 500),
    Role.researcher: (2_500, 150),
    Role.critic: (5_000, 500),
    Role.reporter: (6_000, 700),
}
_PAGE_TOKENS, _NOTE_TOKENS = 2_000, 600  # of one page as the compressor is shown it, and of its note
_PROMPT_TOKENS = 2_000  # instructions, schema and plan, around what a prompt is about
_USUAL_STEPS, _USUAL_SECTIONS, _USUAL_FOLLOW_UPS = 4, 4, 2


@dataclass(frozen=True)
class Bounds:
    """A count as is usual, and at most."""

    usual: float
    most: float

    def plus(self, other: Bounds) -> Bounds:
        """Return the sums."""
        return Bounds(self.usual + other.usual, self.most + other.most)


@dataclass(frozen=True)
class PhaseEstimate:
    """A phase of the run; `usd` is None where a price is unknown.

    The most counts every call once more for a re-ask, and no repetition after a fault.
    """

    phase: str
    model: str
    tool_calls: Bounds
    model_calls: Bounds
    tokens: Bounds
    usd: Bounds | None


def estimate(settings: ResolvedSettings, rates_of: Callable[[str], Rates | None]) -> list[PhaseEstimate]:
    """Estimate each phase, and the whole.

    Args:
        settings: of the run; its budget bounds the whole.
        rates_of: returns the price of a model.
    """
    phases = list(_phases(settings, rates_of))
    known = [phase.usd for phase in phases if phase.usd]
    usd = _sum(known) if len(known) == len(phases) else None
    budget = settings.budget
    whole = PhaseEstimate(
        phase="whole run",
        model="",
        tool_calls=_sum(phase.tool_calls for phase in phases),
        model_calls=_capped(_sum(phase.model_calls for phase in phases), budget.max_calls),
        tokens=_capped(_sum(phase.tokens for phase in phases), budget.max_tokens),
        usd=usd and _capped(usd, budget.max_usd),
    )
    return [*phases, whole]


def _phases(settings: ResolvedSettings, rates_of: Callable[[str], Rates | None]) -> Iterator[PhaseEstimate]:
    rounds, steps = settings.depth, settings.max_steps
    usual_steps = min(steps, _USUAL_STEPS) + min(steps, _USUAL_FOLLOW_UPS) * (min(rounds, 2) - 1)
    most_calls_a_turn = settings.breadth + int("web_search" in settings.tools)  # pages that searches left out
    tools = Bounds(usual_steps * min(settings.breadth, 2), steps * rounds * settings.turns * most_calls_a_turn)
    turns = Bounds(usual_steps * min(settings.turns, 2), steps * rounds * settings.turns)
    shown = settings.compression.max_input_tokens
    pages = min(settings.max_results * _PAGE_TOKENS, shown)
    context = settings.max_context_tokens
    sections = Bounds(_USUAL_SECTIONS + 1, MAX_SECTIONS + 1) if settings.mode is Mode.report else Bounds(1, 1)
    reflections = Bounds(min(rounds, 2), rounds) if rounds > 1 else Bounds(0, 0)
    none = Bounds(0, 0)
    rows = [
        ("plan", Role.planner, none, Bounds(1, 1), _USUAL[Role.planner], 0),
        ("decide on calls", Role.researcher, none, turns, _USUAL[Role.researcher], context),
        ("call and compress", Role.compressor, tools, tools, (pages + _PROMPT_TOKENS // 2, _NOTE_TOKENS), shown),
        ("reflect", Role.critic, none, reflections, _USUAL[Role.critic], context),
        ("write", Role.reporter, none, sections, _USUAL[Role.reporter], context),
    ]
    for phase, role, tool_calls, calls, (sent, received), material in rows:
        model = settings.role_models[role]
        if model.model == EXTRACTIVE:
            yield PhaseEstimate(phase, model.model, tool_calls, none, none, none)
            continue
        most_calls, most_sent = calls.most * 2, material + _PROMPT_TOKENS
        rates = rates_of(model.model)
        yield PhaseEstimate(
            phase=phase,
            model=model.model,
            tool_calls=tool_calls,
            model_calls=Bounds(calls.usual, most_calls),
            tokens=Bounds(calls.usual * (sent + received), most_calls * (most_sent + model.max_tokens)),
            usd=_dollars(rates, (sent, received), calls.usual, (most_sent, model.max_tokens), most_calls),
        )


def _dollars(
    rates: Rates | None, usual: tuple[int, int], usual_calls: float, most: tuple[int, int], most_calls: float
) -> Bounds | None:
    if rates is None:
        return None
    return Bounds(
        round(float(rates.of(*usual)) * usual_calls, 6),
        round(float(rates.of(*most)) * most_calls, 6),
    )


def _sum(bounds: Iterable[Bounds]) -> Bounds:
    total = Bounds(0, 0)
    for one in bounds:
        total = total.plus(one)
    return total


def _capped(bounds: Bounds, cap: float | None) -> Bounds:
    return bounds if cap is None else Bounds(min(bounds.usual, cap), min(bounds.most, cap))

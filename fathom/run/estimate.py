"""Estimates of a run's calls, tokens, dollars and time, by the question's kind and the model's speed.

The planner judges the kind and the breadth of a question, and this module turns them into numbers. The profile's
numbers are the maximum. A number that the user has set stays as it is, and a plan without a judgement, as some small
models make it, gets the whole profile.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import astuple, replace
from math import ceil
from typing import Any, NamedTuple

from fathom.budget.ledger import WARN_FROM
from fathom.budget.prices import Pricing, Rates
from fathom.config.environment import Environment
from fathom.config.groups import EXTRACTIVE, PROFILES, UNLESS_BROAD, Budget, Clarify, Effort, Role
from fathom.config.settings import Mode, ResearchSettings, ResolvedSettings, SearchMode
from fathom.llm.base import Completion, Pace
from fathom.llm.dialects import dialect_of
from fathom.models import Kind, PlanCost, Width
from fathom.models.run import PhaseCost, Range
from fathom.retrieval.portions import MOST_REQUESTS
from fathom.roles.reporter import MAX_SECTIONS
from fathom.telemetry.progress import Event, publish
from fathom.tools.registry import REGISTRY, prices_of

# Tokens sent and received by a usual call: medians of `make bench` with pages of 20 kB, rounded up.
_USUAL = {
    Role.clarifier: (900, 150),
    Role.planner: (1_200, 500),
    Role.researcher: (2_500, 150),
    Role.critic: (5_000, 500),
    Role.reporter: (6_000, 700),
    Role.judge: (7_000, 1_300),
}
_PAGE_TOKENS, _NOTE_TOKENS = 5_000, 1_200  # tokens of one page, which the compressor sees whole, and of its note
_PROMPT_TOKENS = 2_000  # tokens of instructions, schema and plan around the material of a prompt
_JUDGED_TOKENS = 12_000  # tokens of a request with the passages for 40 claims
_USUAL_CORRECTION = (1_200, 300)
_USUAL_WITHOUT_MODEL = 3  # tool calls: the median of ten runs, which made 1 to 8
_WHOLE = "whole run"
_USUAL_STEPS, _USUAL_SECTIONS, _USUAL_FOLLOW_UPS = 4, 4, 2


def estimate(
    settings: ResolvedSettings,
    rates_of: Callable[[str], Rates | None],
    search_usd: Range | None,
    scope: Scope | None = None,
) -> list[PhaseCost]:
    """Estimate each phase that calls something, then the whole run, which its budget limits.

    `rates_of` returns the price of a model, and `search_usd` is the price of a tool call, None if unknown. `scope` is
    the scope that the form of the question suggests: the usual case and, if no model plans, also the maximum.
    """
    rows = _rows(settings)
    if scope:
        narrow = _rows(scope.settings, simple=scope.simple)
        exact = settings.role_models[Role.planner].model == EXTRACTIVE
        rows = narrow if exact else [_usually(row, less) for row, less in zip(rows, narrow, strict=True)]
    phases = [p for p in _phases(settings, rows, rates_of, search_usd) if p.tool_calls.most or p.model_calls.most]
    known = [phase.usd for phase in phases if phase.usd]
    budget = settings.budget
    whole = PhaseCost(
        phase=_WHOLE,
        model="",
        tool_calls=_sum(phase.tool_calls for phase in phases),
        model_calls=_sum((phase.model_calls for phase in phases), budget.max_calls),
        tokens=_sum((phase.tokens for phase in phases), budget.max_tokens),
        usd=_sum(known, budget.max_usd) if len(known) == len(phases) else None,
    )
    return [*phases, whole]


def added_up(phases: Iterable[PhaseCost]) -> list[PhaseCost]:
    """Return the phases of several runs, added up by name and model, the whole last."""
    groups: dict[tuple[str, str], list[PhaseCost]] = {}
    for phase in phases:
        groups.setdefault((phase.phase, phase.model), []).append(phase)
    whole = groups.pop((_WHOLE, ""), [])
    return [_added(*name, group) for name, group in [*groups.items(), (("all questions", ""), whole)]]


def _added(phase: str, model: str, group: Sequence[PhaseCost]) -> PhaseCost:
    usd = [one.usd for one in group if one.usd]
    return PhaseCost(
        phase,
        model,
        _sum(one.tool_calls for one in group),
        _sum(one.model_calls for one in group),
        _sum(one.tokens for one in group),
        _sum(usd) if len(usd) == len(group) else None,
    )


def plan_cost(settings: ResolvedSettings, environment: Environment, steps: int, *, simple: bool = False) -> PlanCost:
    """Return what a run with a plan of some steps usually takes, not limited by its budget."""
    rows = _rows(settings, simple=simple, planned=steps)
    rates_of = Pricing(settings.prices).highest
    phases = list(_phases(settings, rows, rates_of, price_of_search(settings, environment)))
    usd = [phase.usd.usual for phase in phases if phase.usd]
    return PlanCost(
        llm_calls=round(sum(phase.model_calls.usual for phase in phases)),
        tokens=round(sum(phase.tokens.usual for phase in phases)),
        usd=round(sum(usd), 4) if len(usd) == len(phases) else None,
    )


def beyond(cost: PlanCost | None, budget: Budget) -> str:
    """Return in words that a plan takes more than 80 % of a cap; empty if it does not."""
    if cost is None:
        return ""
    counts = ((cost.tokens, budget.max_tokens, "tokens"), (cost.llm_calls, budget.max_calls, "model calls"))
    over = [f"{n:,} of {most:,} allowed {what}" for n, most, what in counts if n > WARN_FROM * most]
    if budget.max_usd is not None and (cost.usd or 0) > WARN_FROM * budget.max_usd:
        over.insert(0, f"${cost.usd:,.2f} of the ${budget.max_usd:,.2f} allowed")
    return f"The plan usually takes {' and '.join(over)}: the research may end early." if over else ""


def price_of_search(settings: ResolvedSettings, environment: Environment) -> Range | None:
    """Return the cost of a search call; None when a price is not known."""
    prices = [*prices_of(settings, environment, REGISTRY.vendors).values()] if "web_search" in settings.tools else []
    if None in prices:
        return None
    usd = [float(price or 0) for price in prices]
    return Range(sum(usd if settings.search_mode is SearchMode.all else usd[:1]), sum(usd))


def usual_tokens(settings: ResolvedSettings, model: str) -> tuple[float, float]:
    """Return the tokens that a usual run sends to a model and receives from it."""
    rows = [row for row in _rows(settings) if settings.role_models[row.role].model == model]
    sent = sum(row.model_calls.usual * row.usual[0] for row in rows)
    return sent, sum(row.model_calls.usual * row.usual[1] for row in rows)


class _Row(NamedTuple):
    """The calls of a role; `usual` holds the tokens sent and received by a call, `material` the maximum it is shown."""

    phase: str
    role: Role
    tool_calls: Range
    model_calls: Range
    usual: tuple[int, int]
    material: int


def _usually(row: _Row, less: _Row) -> _Row:
    return less._replace(
        tool_calls=replace(row.tool_calls, usual=less.tool_calls.usual),
        model_calls=replace(row.model_calls, usual=less.model_calls.usual),
    )


def _rows(settings: ResolvedSettings, *, simple: bool = False, planned: int = 0) -> list[_Row]:
    rounds, steps = settings.depth, settings.max_steps
    usual_steps = (planned or min(steps, _USUAL_STEPS)) + min(steps, _USUAL_FOLLOW_UPS) * (min(rounds, 2) - 1) * (
        not simple
    )
    follow_ups = sum(bool(tool.follows) and name in settings.tools for name, tool in REGISTRY.tools.items())
    calls_a_turn = settings.breadth + follow_ups
    tools = Range(usual_steps * min(settings.breadth, 2), steps * rounds * settings.turns * calls_a_turn)
    if settings.role_models[Role.researcher].model == EXTRACTIVE:
        tools = replace(tools, usual=min(_USUAL_WITHOUT_MODEL, tools.usual))
    # The first calls of a step are the planner's queries; the maximum is for a plan without queries.
    turns = Range(usual_steps * min(settings.turns - 1, 1), steps * rounds * settings.turns)
    shown, context = settings.compression.max_input_tokens, settings.max_context_tokens
    output = settings.max_results * _PAGE_TOKENS
    requests = min(MOST_REQUESTS, ceil(output / shown))
    compressed = (min(ceil(output / requests), shown) + _PROMPT_TOKENS // 2, _NOTE_TOKENS)
    compressions = Range(tools.usual * requests, tools.most * MOST_REQUESTS)
    none, one = Range(0, 0), Range(1, 1)
    several = settings.mode is Mode.report and not simple
    sections = Range(_USUAL_SECTIONS + 1, MAX_SECTIONS + 1) if several else one
    reflections = Range(min(rounds, 2), rounds) if rounds > 1 and not simple else none
    clarifications = none if settings.people.clarify is Clarify.never else one
    return [
        _Row("clarify", Role.clarifier, none, clarifications, _USUAL[Role.clarifier], 0),
        _Row("plan", Role.planner, none, Range(1, 1), _USUAL[Role.planner], 0),
        _Row("decide on calls", Role.researcher, none, turns, _USUAL[Role.researcher], context),
        _Row("call and compress", Role.compressor, tools, compressions, compressed, shown),
        _Row("reflect", Role.critic, none, reflections, _USUAL[Role.critic], context),
        _Row("write", Role.reporter, none, sections, _USUAL[Role.reporter], context),
        _Row("judge claims", Role.judge, none, _judging(settings, sections), _USUAL[Role.judge], _JUDGED_TOKENS),
        _Row("correct", Role.reporter, none, _correcting(settings, sections), _USUAL_CORRECTION, _JUDGED_TOKENS),
    ]


def _judging(settings: ResolvedSettings, sections: Range) -> Range:
    """Return the number of requests to the judge: claims in batches, some of them twice, and corrected claims."""
    if not settings.judges or settings.extractive:
        return Range(0, 0)
    return Range(2, 4) if sections.most == 1 else Range(sections.usual, 4 * sections.most)


def _correcting(settings: ResolvedSettings, sections: Range) -> Range:
    """Return the requests for corrections: at most one a section, and usually for one in four."""
    if not settings.judges or settings.extractive:
        return Range(0, 0)
    return Range(max(1, sections.usual // 4), sections.most)


def _phases(
    settings: ResolvedSettings, rows: Iterable[_Row], rates_of: Callable[[str], Rates | None], search_usd: Range | None
) -> Iterator[PhaseCost]:
    none = Range(0, 0)
    for phase, role, tool_calls, calls, usual, material in rows:
        model = settings.role_models[role]
        paid: Range | None = none
        if tool_calls.most:
            paid = search_usd and Range(
                round(tool_calls.usual * search_usd.usual, 6), round(tool_calls.most * search_usd.most, 6)
            )
        if model.model == EXTRACTIVE:
            yield PhaseCost(phase, model.model, tool_calls, none, none, paid)
            continue
        model_calls = Range(calls.usual, calls.most * 2)
        thoughts = model.thinking_tokens if dialect_of(model.model, own_server=False).thinks else 0
        most = (material + _PROMPT_TOKENS, model.max_tokens + thoughts)
        tokens = Range(model_calls.usual * sum(usual), model_calls.most * sum(most))
        usd = None
        if (rates := rates_of(model.model)) and paid:
            costs = zip((usual, most), astuple(model_calls), astuple(paid), strict=True)
            usd = Range(*(round(float(rates.of(*one)) * calls + more, 6) for one, calls, more in costs))
        yield PhaseCost(phase, model.model, tool_calls, model_calls, tokens, usd)


def _sum(bounds: Iterable[Range], cap: float | None = None) -> Range:
    usual, most = (sum(counts) for counts in zip(*map(astuple, bounds), strict=True))
    return Range(usual, most) if cap is None else Range(min(usual, cap), min(most, cap))


SIMPLE_RESULTS = 3  # pages or documents per call for a simple fact
_EACH_SIDE = (Kind.comparison, Kind.decision)  # kinds with a step for each side, however narrow they are


class Scope(NamedTuple):
    """The scope of a run. `simple`: one fact, for which no critic is asked and no outline is made."""

    settings: ResolvedSettings
    simple: bool = False


def scope_of(settings: ResolvedSettings, kind: Kind | None, width: Width | None) -> Scope:
    """Return the scope that a question of a kind and a width deserves, within the bounds of the settings."""
    if settings.effort is Effort.fixed or not kind or width in (None, Width.broad) or kind is Kind.survey:
        return Scope(settings)
    if kind is Kind.fact and width is Width.narrow:
        least = {"max_steps": 1, "turns": 1, "depth": min(UNLESS_BROAD, settings.depth)}
        # Reading more costs nothing without a model, which also finds less in what it reads.
        less = {} if settings.extractive else {"breadth": 1, "max_results": min(SIMPLE_RESULTS, settings.max_results)}
        return Scope(_narrowed(settings, {**least, **less}), True)
    share = 1 / 2 if width is Width.narrow else 3 / 4
    steps = settings.max_steps if kind in _EACH_SIDE else ceil(share * settings.max_steps)
    breadth = ceil(share * settings.breadth)
    return Scope(
        _narrowed(settings, {"max_steps": steps, "breadth": breadth, "depth": min(UNLESS_BROAD, settings.depth)})
    )


def _narrowed(settings: ResolvedSettings, numbers: dict[str, Any]) -> ResolvedSettings:
    usual = {**PROFILES[settings.profile], "max_results": ResearchSettings.model_fields["max_results"].default}
    return settings.model_copy(
        update={name: n for name, n in numbers.items() if getattr(settings, name) == usual[name]}
    )


SLOW_MINUTES = 10
LEAST_MINUTES = 1  # a faster run needs no notice


class Speed:
    """Observes the completions of a run and reports the speed of its models."""

    def __init__(self, settings: ResolvedSettings) -> None:
        self._settings = settings
        self._told = set[str]()

    def heard(self, completion: Completion) -> None:
        """Publish a notice on a model's speed once it is known."""
        if completion.pace and completion.model not in self._told:
            self._told.add(completion.model)
            if words := self._words(completion, completion.pace):
                publish(Event("speed", words))

    def _words(self, completion: Completion, pace: Pace) -> str:
        sent, received = usual_tokens(self._settings, completion.model)
        read = pace.wait / completion.usage.prompt_tokens if completion.usage.prompt_tokens else 0.0
        minutes = (sent * read + received / pace.tokens_per_second) / 60
        if minutes < LEAST_MINUTES:
            return ""
        said = f"{completion.model} makes {pace.tokens_per_second:.0f} tokens a second; such a run often takes "
        said += f"{minutes:.0f} minutes"
        if minutes < SLOW_MINUTES:
            return said
        return f"{said}. Faster: --profile quick, or --role-model compressor=extractive"

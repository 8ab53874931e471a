"""What a run took, as a whole, by role and by step."""

from __future__ import annotations

from collections.abc import Iterable

from fathom.models import Account, Charge, Metrics, Phase, Usage
from fathom.run.state import RunState


def measure(run: RunState, account: Account, seconds: float) -> Metrics:
    """Return the counts of a run that took some seconds of wall time."""
    calls, usage = run.all_calls, run.usage
    raw = sum(call.result.raw_tokens for call in calls)
    context = sum(note.tokens for note in run.notes)
    return Metrics(
        llm_calls=usage.llm_calls,
        tool_calls=len(calls),
        raw_tokens=raw,
        context_tokens=context,
        narrowed_tokens=sum(call.narrowed_tokens for call in calls),
        context_reduction=round(1 - context / raw, 4) if raw else 0.0,
        prompt_tokens=usage.prompt_tokens,
        cached_tokens=usage.cached_tokens,
        completion_tokens=usage.completion_tokens,
        cost_usd=run.cost_usd,
        seconds=round(seconds, 3),
        phases=phases_of(run),
        steps=_phases((spent.step_id, spent.usage) for spent in run.spent if spent.step_id),
        charges=_sums(run.charges),
        account=account,
    )


def _sums(charges: Iterable[Charge]) -> list[Phase]:
    """Return what the searches and pages of each service cost."""
    by_service: dict[str, list[float | None]] = {}
    for charge in charges:
        by_service.setdefault(charge.service, []).append(charge.usd)
    return [
        Phase(
            name=service,
            calls=len(costs),
            seconds=0.0,
            cost_usd=None if None in costs else round(sum(cost for cost in costs if cost), 9),
        )
        for service, costs in sorted(by_service.items())
    ]


def phases_of(run: RunState) -> list[Phase]:
    """Return what the model calls of each role took."""
    return _phases((spent.role, spent.usage) for spent in run.spent)


def _phases(spent: Iterable[tuple[str, Usage]]) -> list[Phase]:
    sums: dict[str, Usage] = {}
    for name, usage in spent:
        sums[name] = sums.get(name, Usage()) + usage
    return [
        Phase(
            name=name,
            calls=usage.llm_calls,
            tokens=usage.prompt_tokens + usage.completion_tokens,
            seconds=usage.seconds,
            cost_usd=usage.cost_usd,
        )
        for name, usage in sums.items()
    ]

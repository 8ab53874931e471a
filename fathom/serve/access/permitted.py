"""Which settings a caller may choose: a run reads files, calls addresses and spends money as the server could.

Administrators may set everything that a command can. All others are refused what reaches beyond the run, and what would
take more of the server than a run needs. It is checked after a template was read, which sets settings, too.
"""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal

from fathom.config.caps import DEFAULT_USD, Budget
from fathom.config.environment import Environment
from fathom.config.models import EXTRACTIVE
from fathom.config.settings import ResearchSettings
from fathom.errors.serving import NotAllowed
from fathom.serve.caller import Caller, Role

OF_ADMINS = ("docs", "fetch_allow_hosts", "prices", "search_prices", "embed_model")
"""Settings that let a run read files of the server or its network, load a file as a model, or spend uncounted."""
_USUAL = Budget()
MOST = {
    "concurrency": 8,
    "model_calls.at_once": 8,
    "model_calls.seconds": 600,
    "people.wait_minutes": 60,
    "budget.max_tokens": _USUAL.max_tokens,
    "budget.max_calls": _USUAL.max_calls,
}
"""The largest values for callers who are no administrators."""


def check_choice(caller: Caller, settings: ResearchSettings, models: tuple[str, ...]) -> None:
    """Check what a caller has chosen, by themselves or by a template.

    Raises:
        NotAllowed: only administrators may set it.
    """
    if caller.role is Role.admin:
        return
    for name in OF_ADMINS:
        if getattr(settings, name):
            raise NotAllowed(f"Only administrators may set {name!r}.", next_step="leave it out")
    allowed = {EXTRACTIVE, *models} | {name for name in (Environment.read().model,) if name}
    if refused := [name for name in _models(settings) if name not in allowed]:
        raise NotAllowed(
            f"Only administrators may choose the model {refused[0][:100]!r}.",
            next_step=f"choose one of {', '.join(sorted(allowed))}; fathom serve --allow-model NAME allows others",
        )


def check_most(caller: Caller, settings: ResearchSettings) -> None:
    """Check what a run would take of the server.

    Raises:
        NotAllowed: it is more than the caller may have.
    """
    usd, cap = settings.budget.max_usd, caller.limits.daily_usd
    most = cap if cap is not None else None if caller.role is Role.admin else DEFAULT_USD
    if most is not None and usd is not None and usd > most:
        whose = "a day" if cap is not None else "a run, without a token that has --daily-usd"
        raise NotAllowed(f"budget.max_usd is {usd:g}; {caller.name} may spend {most:g} {whose}.")
    if caller.role is Role.admin:
        return
    for name, limit in MOST.items():
        group, _, field = name.rpartition(".")
        value = getattr(getattr(settings, group) if group else settings, field)
        if value > limit:
            raise NotAllowed(f"{name} is {value:,}; only administrators may set more than {limit:,}.")


def capped(caller: Caller, settings: ResearchSettings) -> ResearchSettings:
    """Return the settings with a cap in dollars, if the caller has one for the day."""
    cap = caller.limits.daily_usd
    if cap is None or settings.budget.max_usd is not None:
        return settings
    budget = settings.budget.model_copy(update={"max_usd": min(DEFAULT_USD, cap)})
    return settings.model_copy(update={"budget": budget})


def most_usd(settings: ResearchSettings) -> Decimal:
    """Return the most that a run may cost whose settings are capped."""
    usd = settings.budget.max_usd
    return Decimal(str(DEFAULT_USD if usd is None else usd))


def _models(settings: ResearchSettings) -> Iterator[str]:
    if settings.model:
        yield settings.model
    yield from settings.fallback_models
    for chosen in settings.role_models.values():
        yield from (chosen.model, *chosen.fallbacks)

"""Which settings a caller may choose: a run reads files, calls addresses and spends money as the server could.

Administrators may set everything that a command can. All others are refused what reaches beyond the run, and what would
take more of the server than a run needs. It is checked after a template was read, which sets settings, too.
"""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from operator import attrgetter

from fathom.config.environment import Environment
from fathom.config.form import SetBy, setting_of
from fathom.config.groups import DEFAULT_USD, EXTRACTIVE
from fathom.config.settings import SETTINGS, ResearchSettings
from fathom.errors import NotAllowed
from fathom.serve.caller import Caller, Role

OF_ADMINS = [path for path, field in SETTINGS.items() if setting_of(field).set_by is SetBy.admins]
MOST = {path: most for path, field in SETTINGS.items() if (most := setting_of(field).most) is not None}
"""The largest values for callers who are no administrators."""


def check_choice(caller: Caller, settings: ResearchSettings, models: tuple[str, ...]) -> None:
    """Check what a caller has chosen, by themselves or by a template.

    Raises:
        NotAllowed: only administrators may set it.
    """
    if caller.role is Role.admin:
        return
    for name in OF_ADMINS:
        if attrgetter(name)(settings):
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
        if (value := attrgetter(name)(settings)) > limit:
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

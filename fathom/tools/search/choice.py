"""The search vendors of a run, and the check that they exist, are configured, and have a price if one is needed."""

from __future__ import annotations

from collections.abc import Sequence

from fathom.budget.caps import CAPS
from fathom.config.environment import Environment
from fathom.config.settings import ResearchSettings
from fathom.errors import InvalidInput, MissingCredential
from fathom.tools.base import SearchVendor
from fathom.tools.payment import Price, SearchBudget
from fathom.tools.search.over_litellm import PREFIX, PROVIDERS, vendor_of


def named(names: Sequence[str], vendors: Sequence[type[SearchVendor]]) -> list[type[SearchVendor]]:
    """Return the vendors of some names, each once and in their order, from these or over litellm.

    Raises:
        InvalidInput: there is no such vendor.
    """
    known = {vendor.key(): vendor for vendor in vendors}
    found: list[type[SearchVendor]] = []
    for name in dict.fromkeys(name.strip().lower() for name in names):
        provider = name.removeprefix(PREFIX)
        if name in known:
            found.append(known[name])
        elif name != provider and provider in PROVIDERS:
            found.append(vendor_of(provider))
        else:
            others = ", ".join([*known, *(f"{PREFIX}{provider}" for provider in PROVIDERS)])
            raise InvalidInput(f"The search vendor {name!r} does not exist.", next_step=f"vendors: {others}")
    return found


def check_vendors(settings: ResearchSettings, environment: Environment, vendors: Sequence[type[SearchVendor]]) -> None:
    """Check the vendors that the settings ask for, or the configured ones.

    Raises:
        InvalidInput: one does not exist, or has no known price while there is a cap in dollars.
        MissingCredential: one that is asked for is not configured.
    """
    named([*settings.search_prices], vendors)
    asked = named(settings.search or (), vendors)
    for vendor in asked:
        if missing := [name for name in vendor.variables if not environment.variables.get(name)]:
            message = f"The search vendor {vendor.key()} is not configured."
            raise MissingCredential(message, next_step=f"set {' and '.join(missing)}")
    if settings.budget.max_usd is None and not any(environment.cap(name) is not None for name in CAPS):
        return
    for name, price in prices_of(settings, environment, vendors).items():
        if price is None:
            raise InvalidInput(
                f"The price of a search by {name} is unknown, so a cap in dollars cannot be kept.",
                next_step=f"give it in dollars a search, --search-price {name}=USD (setting search_prices), or use "
                "--max-tokens instead of --max-usd",
            )


def prices_of(
    settings: ResearchSettings, environment: Environment, vendors: Sequence[type[SearchVendor]]
) -> dict[str, Price]:
    """Return the price of a search by each vendor of a run, in their order."""
    search_budget = SearchBudget(prices=settings.search_prices)
    return {
        vendor.key(): search_budget.price(vendor.key(), vendor.price(settings.max_results))
        for vendor in _asked(settings, environment, vendors)
    }


def without_limits(
    settings: ResearchSettings, environment: Environment, vendors: Sequence[type[SearchVendor]]
) -> list[str]:
    """Return a line for each vendor of a run that cannot limit a search as the settings want it."""
    web = settings.web
    wanted = {"dates": bool(web.since or web.until), "region": bool(web.region), "safe": web.safe}
    lacking = {
        vendor.key(): [name for name, is_set in wanted.items() if is_set and name not in vendor.limits]
        for vendor in _asked(settings, environment, vendors)
    }
    return [f"{key} searches without these limits: {', '.join(names)}." for key, names in lacking.items() if names]


def _asked(
    settings: ResearchSettings, environment: Environment, vendors: Sequence[type[SearchVendor]]
) -> list[type[SearchVendor]]:
    usual = [one for one in vendors if one.is_configured(environment) and not one.only_named]
    return named(settings.search or (), vendors) or usual

"""Whether the configured search vendors and sources answer: one real question to each, all at the same time."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable

from fathom.config.environment import Environment
from fathom.config.secrets import Scrubber
from fathom.config.settings import ResearchSettings, resolve
from fathom.errors import ToolError, ToolRejected, ToolTimeout, UserError
from fathom.flows.findings import Finding
from fathom.models import ToolOutput
from fathom.tools.base import Configurable, RunContext, SearchVendor, Tool
from fathom.tools.registry import REGISTRY, Registry, check_addresses

QUESTION = "water"  # of which every service knows something
SECONDS = 20.0


async def reach(environment: Environment, registry: Registry = REGISTRY) -> list[Finding]:
    """Ask each configured vendor and source; a vendor charges for its search. The findings hold no secrets."""
    vendors = [vendor for vendor in registry.vendors if vendor.is_configured(environment)]
    sources = [tool for tool in registry.tools.values() if tool.searches and tool.network and not tool.by_vendors]
    sources = [tool for tool in sources if tool.is_configured(environment)]
    try:
        check_addresses([*vendors, *sources], environment)
    except UserError as error:
        return [Finding("online", "broken", f"{error.code} {error.message}", error.next_step)]
    settings = resolve(ResearchSettings(fresh=True, max_results=1), environment, [])
    run = RunContext(settings, environment, _Nothing(), QUESTION, configured_vendors=vendors, fetchable=[])
    scrubber = Scrubber(environment.secrets)
    waiting = [_asked(kind, kind.name, _search(kind.open(run)), scrubber) for kind in vendors]
    waiting += [_asked(kind, kind.name.replace("_", " "), _look_up(kind.open(run)), scrubber) for kind in sources]
    return list(await asyncio.gather(*waiting))


async def _search(vendor: SearchVendor) -> int:
    return len(await vendor.search(QUESTION, 1))


async def _look_up(source: Tool) -> int:
    return len((await source.run(QUESTION)).results)


async def _asked(kind: type[Configurable], name: str, asking: Awaitable[int], scrubber: Scrubber) -> Finding:
    """Return what became of a question; what the user has configured, and nothing else, is broken if it fails."""
    began = time.monotonic()
    try:
        async with asyncio.timeout(SECONDS):
            found = await asking
    except TimeoutError:
        error: ToolError = ToolTimeout(f"No answer within {SECONDS:g} seconds.")
    except ToolError as failure:
        error = failure
    else:
        usd = kind.price(1) if issubclass(kind, SearchVendor) else 0
        listed = f"at most ${float(usd):g} by its price list" if usd else "for a price that is not known"
        charged = "" if usd == 0 else f", {listed}"
        nothing = "" if found else f"; it found nothing about {QUESTION!r}"
        return Finding(name, "ok", f"answers in {time.monotonic() - began:.1f} s{charged}{nothing}")
    how = error.next_step or (kind.setup if isinstance(error, ToolRejected) else "try again later; runs ask another")
    detail = scrubber.message(f"{error.code} {error.message}")
    return Finding(name, "broken" if kind.variables else "off", detail, scrubber.message(how))


class _Nothing:
    """The outputs of a run that has read nothing."""

    async def list(self) -> list[str]:
        return []

    async def read(self, name: str) -> ToolOutput:
        raise KeyError(name)

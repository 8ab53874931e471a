"""The MCP servers join a run: asked once what they offer, which the run keeps to however often it is resumed."""

from __future__ import annotations

from collections.abc import Sequence

from fathom.errors import ToolUnavailable
from fathom.models import Model
from fathom.run.engine import Engine
from fathom.tasks.durable import recorded_task, run_logger
from fathom.tools.mcp.offer import Offer


class Offers(Model):
    """What the MCP servers of a run offered when it began."""

    offers: list[Offer]


@recorded_task(name="mcp servers", run_name="ask the MCP servers for their tools")
async def ask_servers(tools: list[str], _engine: Engine) -> Offers:
    """Ask the servers of the chosen tools what they offer."""
    servers = _engine.tools.servers
    offers = await servers.offers() if servers else []
    if servers and not (servers.tools(offers) or _engine.tools.searching):
        why = "; ".join(_lacking(offers, servers.chosen))
        raise ToolUnavailable(f"The run has nothing to search with. {why}", next_step="look at it with `fathom doctor`")
    return Offers(offers=offers)


async def take_up_servers(engine: Engine) -> None:
    """Offer the researcher the tools of MCP servers; those that cannot be had are named in the log and the report.

    Raises:
        InvalidInput: the run is resumed, and a server has changed since it began or is not configured here.
    """
    if (servers := engine.tools.servers) is None:
        return
    offers: Offers = await ask_servers(servers.chosen, _engine=engine)
    await engine.take_up(offers.offers)
    lacking = _lacking(offers.offers, sorted({*servers.chosen} - engine.tools.offered.keys()))
    for message in lacking:
        engine.warnings.warn(run_logger(), message, message)
    engine.start = engine.start.model_copy(update={"warnings": [*engine.start.warnings, *lacking]})


def _lacking(offers: Sequence[Offer], unknown: Sequence[str]) -> list[str]:
    """Return why tools of MCP servers cannot be had, of which `unknown` are the allowed ones that none offers."""
    failed = [f"The tools of the MCP server {o.server} were not used: {o.failure}" for o in offers if o.failure]
    if unknown and not failed:
        return [f"These tools were allowed, but no MCP server offers them: {', '.join(unknown)}."]
    return failed

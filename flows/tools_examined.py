"""Which tools, search vendors, plug-ins and MCP servers a run could use, and how to set up the others."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from functools import partial

from fathom.config.environment import CONTACT, Environment
from fathom.errors import UserError
from fathom.flows.findings import Finding, checked
from fathom.flows.preflight import artifact_root
from fathom.flows.runs.index import RunIndex
from fathom.storage.store import ArtifactStore
from fathom.tools.base import Tool
from fathom.tools.fetch.render import find_browser
from fathom.tools.mcp.configuration import read_servers
from fathom.tools.mcp.offer import Offer
from fathom.tools.mcp.servers import McpServers, allowed_tools
from fathom.tools.registry import DEFAULT, Registry, check_addresses
from fathom.tools.search.over_litellm import PROVIDERS, vendor_of


def examine_tools(registry: Registry, environment: Environment) -> Iterator[Finding]:
    """Check every tool, vendor, plug-in and MCP server."""
    for tool in registry.tools.values():
        if registry.variables(tool) and not tool.follows:
            yield checked(tool.name.replace("_", " "), partial(_tool, tool, registry, environment))
    yield checked("contact", lambda: _contact(registry, environment))
    yield _groups(registry)
    yield from _vendors(registry, environment)
    yield from examine_plugins(registry)
    yield from examine_servers(environment)
    yield _browser(environment)


def examine_plugins(registry: Registry) -> Iterator[Finding]:
    """Name the tools and vendors of other packages, and those that cannot be used."""
    for name, package in registry.plugins.packages.items():
        yield Finding(f"plug-in {name}", "ok", f"of the package {package}")
    for name, problem in registry.plugins.broken.items():
        yield Finding(f"plug-in {name}", "broken", problem, "mend or remove the package; the other tools work")


def examine_servers(environment: Environment) -> Iterator[Finding]:
    """Ask every MCP server of the file what it offers, and say what of it a run may use."""
    try:
        allowed_tools(environment)
        offers, known_hashes = asyncio.run(_offers(environment))
        servers = read_servers(environment).servers
    except UserError as error:
        yield Finding("MCP", "broken", f"{error.code} {error.message}", error.next_step)
        return
    for offer in offers:
        name, allowed = f"MCP {offer.server}", servers[offer.server].allow
        offered = [tool.name for tool in offer.tools]
        run, before = known_hashes.get(offer.server, ("", offer.hash))
        others = f"; not allowed: {', '.join(offer.others)}" if offer.others else ""
        if offer.failure:
            yield Finding(name, "broken", offer.failure, "a run goes on without its tools")
        elif lacking := sorted({*allowed} - {*offered}):
            yield Finding(name, "broken", f"it has no {', '.join(lacking)}{others}", "correct `allow` in the file")
        elif not allowed:
            yield Finding(name, "off", f"no tool is allowed{others}", "name the tools to use in `allow`, in the file")
        elif before != offer.hash:
            how = "compare the server with what you know of it; that run can no longer be resumed"
            yield Finding(name, "off", f"changed since the run {run[:8]}: {', '.join(offered)}{others}", how)
        else:
            yield Finding(name, "ok", f"{', '.join(offered)}{others}")


async def _offers(environment: Environment) -> tuple[list[Offer], dict[str, tuple[str, str]]]:
    """Return what the servers offer, and of each the last run that asked it, with the hash of what it offered then."""
    servers = McpServers(environment)
    try:
        offers = await servers.offers()
    finally:
        await servers.aclose()
    if not offers:
        return [], {}
    runs = sorted(await RunIndex(ArtifactStore(artifact_root())).read(), key=lambda run: run.started)
    found = ((server, (run.run_id, hash_)) for run in runs for server, hash_ in run.mcp.items())
    return offers, dict(found)


def _tool(tool: type[Tool], registry: Registry, environment: Environment) -> Finding:
    name, ways = tool.name.replace("_", " "), registry.configured_by(tool)
    check_addresses(ways, environment)
    if found := [" and ".join(way.variables) for way in ways if way.is_configured(environment)]:
        return Finding(name, "ok", f"configured by {', '.join(found)}")
    if tool.by_vendors:
        return Finding(name, "off", "no search vendor is configured", "set up one of those below")
    return Finding(name, "off", f"no {registry.variables(tool)}", "set " + ", or ".join(way.setup for way in ways))


def _groups(registry: Registry) -> Finding:
    members = [
        f"{group}: {', '.join(tool.name for tool in registry.tools.values() if tool.group == group)}"
        for group in registry.groups
    ]
    how = f"--tools {','.join([DEFAULT, *registry.groups])} uses them; fathom doctor --online asks each one question"
    return Finding("sources", "ok", "; ".join(members), how)


def _contact(registry: Registry, environment: Environment) -> Finding:
    groups = dict.fromkeys(tool.group for tool in registry.tools.values() if CONTACT in tool.optional)
    asking = f"the services of --tools {','.join(groups)}"
    if environment.contact:
        return Finding("contact", "ok", f"{environment.contact}, given to {asking}")
    return Finding("contact", "off", f"{asking} are not told who asks", f"set {CONTACT} to your e-mail address")


def _vendors(registry: Registry, environment: Environment) -> Iterator[Finding]:
    """Say of each search vendor whether it is configured, or how to do so."""
    others = [vendor_of(provider) for provider in PROVIDERS]
    for vendor in (*registry.vendors, *(other for other in others if other.is_configured(environment))):
        name, named = vendor.key(), f"; asked with --search {vendor.key()}" if vendor.only_named else ""
        if vendor.is_configured(environment):
            yield Finding(name, "ok", f"{' and '.join(vendor.variables)} is set{named}")
        else:
            yield Finding(name, "off", f"set {vendor.setup}")
    yield Finding("litellm:NAME", "off", "; ".join(other.setup for other in others))


def _browser(environment: Environment) -> Finding:
    found = find_browser(lambda name: environment.variables.get(name, ""))
    if isinstance(found, str):
        return Finding("browser", "off", "pages without text until their scripts have run are not read", found)
    return Finding("browser", "ok", f"{found.path}{'' if found.sandbox else ', without its sandbox'}")

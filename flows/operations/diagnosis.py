"""Diagnosis: the configuration, the reachable services, the usable tools, and instructions for missing parts."""

from __future__ import annotations

import asyncio
import os
import platform
import re
import sys
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from functools import partial
from importlib.metadata import PackageNotFoundError, requires, version
from importlib.util import find_spec
from pathlib import Path

from fathom.budget.prices import Pricing
from fathom.client.resources import Condition
from fathom.config.environment import CONTACT, Environment, artifact_root, installing
from fathom.config.form import as_text
from fathom.config.given import settings_from
from fathom.config.groups import EXTRACTIVE, ModelCallSettings, Role
from fathom.config.layers import Layer, layered, origins
from fathom.config.secrets import Scrubber
from fathom.config.settings import ResearchSettings, ResolvedSettings, resolve
from fathom.config.settings_file import NAME, user_folder
from fathom.errors import InvalidInput, ModelError, ToolError, ToolRejected, ToolTimeout, UserError
from fathom.flows.runs.index import RunIndex
from fathom.flows.server import find_api
from fathom.llm.base import CutOff
from fathom.llm.model_checks import FIRST, SECOND, Probe, check_models, probe
from fathom.run.estimate import SLOW_MINUTES, usual_tokens
from fathom.storage.store import ArtifactStore
from fathom.tools.base import Configurable, RunContext, SearchVendor, Tool
from fathom.tools.documents.recognition import HOW, missing_commands
from fathom.tools.fetch.render import find_browser
from fathom.tools.mcp.configuration import read_servers
from fathom.tools.mcp.offer import OfferedTools
from fathom.tools.mcp.servers import McpServers, allowed_tools
from fathom.tools.registry import DEFAULT, REGISTRY, Registry, check_addresses
from fathom.tools.search.over_litellm import PROVIDERS, vendor_of

_EXTRA = re.compile(r"(?m)^([\w.-]+).*\bextra == ['\"](\w+)['\"]")
_PIP = f"{sys.executable} -m pip install"
PROBE_CALLS = ModelCallSettings(seconds=120, backoff_seconds=0.5)


def examine(
    model: str | None = None, given: Sequence[Layer] = (), registry: Registry = REGISTRY
) -> Iterator[Condition]:
    """Check everything that a run with given settings needs, and ask a model one question if it is named.

    A problem that breaks several parts is reported once. The findings hold no secrets.
    """
    said: set[str] = set()
    for finding in _findings_of(model, given, registry):
        if finding.state != "broken" or finding.detail not in said:
            yield finding
            said.add(finding.detail)


def _findings_of(model: str | None, given: Sequence[Layer], registry: Registry) -> Iterator[Condition]:
    environment = Environment.read()
    yield from examine_settings(given, environment)
    yield Condition("python", "ok", platform.python_version())
    for package in ("prefect", "litellm"):
        yield _package(package)
    yield checked("Prefect API", _api)
    if model is None:
        yield checked("model", lambda: _model(environment))
    else:
        yield from examine_model(model, environment)
    yield from examine_tools(registry, environment)
    yield _extras()
    yield _corpus()
    yield _scans()
    yield checked("artifacts", lambda: _artifacts(environment))
    yield _cache(environment)


def examine_settings(given: Sequence[Layer], environment: Environment) -> Iterator[Condition]:
    """Report the settings that differ from their defaults, and the origin of each."""
    try:
        found = origins(layered(given, environment))
    except InvalidInput as error:
        yield Condition("settings", "broken", f"{error.code} {error.message}", error.next_step)
        return
    scrubber = Scrubber(environment.secrets)
    for path, value, where in found:
        yield Condition(path, "ok", scrubber.message(f"{as_text(value)} ({where})"))
    if not found:
        yield Condition("settings", "ok", f"all defaults; no {NAME} here or in {user_folder(environment.variables)}")


def examine_model(model: str, environment: Environment) -> Iterator[Condition]:
    """Ask a model one question, and report the consequences of its answer for a run."""
    try:
        settings = settings_from({"model": model or " "})
        resolved = resolve(settings, environment, [])
        check_models(resolved, environment)
        if model == EXTRACTIVE:
            yield Condition("model", "ok", "extractive: quotations, without a language model")
            return
        found = asyncio.run(probe(model, environment, PROBE_CALLS))
    except (UserError, ModelError) as error:
        yield Condition("model", "broken", f"{error.code} {error.message}", error.next_step or error.remedy)
        return
    yield from _findings(model, found, resolved)


def _findings(model: str, found: Probe, settings: ResolvedSettings) -> Iterator[Condition]:
    yield Condition("model", "ok", f"{model} answers" + (", after it has thought" if found.thinks else ""))
    if found.debris and not found.fits:
        how = "choose an instruct or chat model; on a server of your own, check its chat template"
        yield Condition("template", "broken", "its answer has marks around it that no chat model writes", how)
    form = found.structured.value
    if found.fits:
        yield Condition("JSON", "ok", f"{form}: the answer fits the schema")
    else:
        why = {None: "is not JSON that fits the schema", CutOff.limit: "has no end"}.get(
            found.cut_off, "repeats itself"
        )
        how = "choose a larger model, or set the role's structured_output to json_object or prompt"
        yield Condition("JSON", "broken", f"{form}: the answer {why}", how)
    if found.fits and not found.right:
        how = "expect little of its reports; every sentence is checked, and what is not in its sources is left out"
        yield Condition(
            "knowledge", "off", f"it does not know the capital of France, or that {FIRST}+{SECOND} is 42", how
        )
    yield _speed(found, settings)
    yield _window(found, settings)
    yield _price(model, settings)


def _speed(found: Probe, settings: ResolvedSettings) -> Condition:
    if found.tokens_per_second is None:
        return Condition("speed", "off", "unknown: the answer came in one piece")
    _sent, received = usual_tokens(settings, settings.model)
    minutes = received / found.tokens_per_second / 60
    said = f"{found.tokens_per_second:.0f} tokens a second, the first after {found.wait:.1f} s"
    about = f"{said}; the answers of a standard run often take {max(1, round(minutes))} min"
    if minutes < SLOW_MINUTES:
        return Condition("speed", "ok", about)
    return Condition("speed", "off", about, "--profile quick, or --role-model compressor=extractive")


def _window(found: Probe, settings: ResolvedSettings) -> Condition:
    needed = settings.max_context_tokens + settings.role_models[Role.reporter].max_tokens
    if found.window is None:
        return Condition("window", "off", "unknown: a prompt that is refused is halved", "set the role's window")
    part = "; of longer material the best part is shown" if found.window < needed else ""
    return Condition("window", "ok", f"{found.window:,} tokens{part}")


def _price(model: str, settings: ResolvedSettings) -> Condition:
    rates = Pricing(settings.prices).highest(model)
    if rates is None:
        how = f"--price {model}=INPUT,OUTPUT, in dollars per million tokens, allows a cap in dollars"
        return Condition("price", "off", "unknown: tokens and requests are capped, dollars are not", how)
    sent, received = (float(rate) * 1_000_000 for rate in rates)
    free = not sent and not received
    return Condition("price", "ok", "free" if free else f"at most ${sent:g} and ${received:g} per million tokens")


def _package(name: str) -> Condition:
    if _is_installed(name):
        return Condition(name, "ok", version(name))
    return Condition(name, "broken", "not installed", f"{_PIP} {name}")


def _api() -> Condition:
    if server := find_api():
        return Condition("Prefect API", "ok", f"{server.api_url}, its pages: {server.ui_url}")
    detail = "none is running; `fathom research` starts one on this machine"
    return Condition("Prefect API", "off", detail, "set PREFECT_API_URL to use another")


def _model(environment: Environment) -> Condition:
    settings = ResearchSettings()
    check_models(resolve(settings, environment, []), environment)
    if environment.model in (None, EXTRACTIVE):
        how = "set FATHOM_MODEL or use --model, for example openai/gpt-5-mini with OPENAI_API_KEY"
        return Condition("model", "off", "extractive: reports consist of quotations, without a language model", how)
    return Condition("model", "ok", f"{environment.model}, its key is set")


def _extras() -> Condition:
    """Report which optional parts of the package are installed."""
    lacking: dict[str, bool] = {}
    for package, extra in _EXTRA.findall("\n".join(requires("fathom-research") or ())):
        lacking[extra] = lacking.get(extra, False) or not _is_installed(package)
    there = ", ".join(extra for extra, lacks in lacking.items() if not lacks) or "none"
    absent = [extra for extra, lacks in lacking.items() if lacks]
    detail = there + (f"; not installed: {', '.join(absent)}" if absent else "")
    return Condition("extras", "ok", detail, installing(*absent) if absent else "")


def _is_installed(package: str) -> bool:
    try:
        return bool(version(package))
    except PackageNotFoundError:
        return False


def _corpus() -> Condition:
    missing = [
        name for name in ("pydoc_data", "trafilatura", "pypdf", "docx", "docutils", "yaml") if find_spec(name) is None
    ]
    if missing:
        return Condition("documents", "broken", f"not installed: {', '.join(missing)}", "install Fathom's requirements")
    return Condition("documents", "ok", "the Python language reference; your own with --docs PATH")


def _scans() -> Condition:
    if missing := missing_commands():
        return Condition("scans", "off", f"pictures and scanned pages are not read: no {' and no '.join(missing)}", HOW)
    return Condition("scans", "ok", "the text of pictures and scanned pages is recognised by tesseract")


def _artifacts(environment: Environment) -> Condition:
    root, place = artifact_root(), user_folder(environment.variables) / NAME
    follows = "://" not in root and not Path(environment.artifacts).expanduser().is_absolute()
    how = f'each folder has a store of its own; for one store: artifacts = "~/fathom" in {place}' if follows else ""
    if "://" in root or Path(root).is_dir():
        asyncio.run(ArtifactStore(root).check_writable())
        return Condition("artifacts", "ok", root, how)
    if _may_create(Path(root)):
        return Condition("artifacts", "ok", f"{root} (the first run creates it)", how)
    how = "set FATHOM_ARTIFACTS to a folder or s3:// address"
    return Condition("artifacts", "broken", f"{root} cannot be created", how)


def _cache(environment: Environment) -> Condition:
    if _may_create(environment.cache):
        return Condition("cache", "ok", str(environment.cache))
    return Condition("cache", "off", f"{environment.cache} cannot be written: every run indexes documents again",
                   "set FATHOM_CACHE to a folder")  # fmt: skip


def _may_create(folder: Path) -> bool:
    """Return whether a folder can be written or created, going by its closest ancestor that exists."""
    closest = next(path for path in (folder.absolute(), *folder.absolute().parents) if path.exists())
    return closest.is_dir() and os.access(closest, os.W_OK)


def checked(name: str, check: Callable[[], Condition]) -> Condition:
    """Return the findings of a check; a setting that the user must correct is a finding too."""
    try:
        return check()
    except UserError as error:
        return Condition(name, "broken", f"{error.code} {error.message}", error.next_step)


def examine_tools(registry: Registry, environment: Environment) -> Iterator[Condition]:
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


def examine_plugins(registry: Registry) -> Iterator[Condition]:
    """Report the tools and vendors of other packages, including unusable ones."""
    for name, package in registry.plugins.packages.items():
        yield Condition(f"plug-in {name}", "ok", f"of the package {package}")
    for name, problem in registry.plugins.broken.items():
        yield Condition(f"plug-in {name}", "broken", problem, "mend or remove the package; the other tools work")


def examine_servers(environment: Environment) -> Iterator[Condition]:
    """Ask every MCP server of the file for its offer, and report which of its tools a run may use."""
    try:
        allowed_tools(environment)
        offers, known_hashes = asyncio.run(_offers(environment))
        servers = read_servers(environment).servers
    except UserError as error:
        yield Condition("MCP", "broken", f"{error.code} {error.message}", error.next_step)
        return
    for offer in offers:
        name, allowed = f"MCP {offer.server}", servers[offer.server].allow
        offered = [tool.name for tool in offer.tools]
        run, before = known_hashes.get(offer.server, ("", offer.hash))
        others = f"; not allowed: {', '.join(offer.others)}" if offer.others else ""
        if offer.failure:
            yield Condition(name, "broken", offer.failure, "a run goes on without its tools")
        elif lacking := sorted({*allowed} - {*offered}):
            yield Condition(name, "broken", f"it has no {', '.join(lacking)}{others}", "correct `allow` in the file")
        elif not allowed:
            yield Condition(name, "off", f"no tool is allowed{others}", "name the tools to use in `allow`, in the file")
        elif before != offer.hash:
            how = "compare the server with what you know of it; that run can no longer be resumed"
            yield Condition(name, "off", f"changed since the run {run[:8]}: {', '.join(offered)}{others}", how)
        else:
            yield Condition(name, "ok", f"{', '.join(offered)}{others}")


async def _offers(environment: Environment) -> tuple[list[OfferedTools], dict[str, tuple[str, str]]]:
    """Return the servers' offers and, for each server, the last run that asked it, with the hash of its offer then."""
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


def _tool(tool: type[Tool], registry: Registry, environment: Environment) -> Condition:
    name, ways = tool.name.replace("_", " "), registry.configured_by(tool)
    check_addresses(ways, environment)
    if found := [" and ".join(way.variables) for way in ways if way.is_configured(environment)]:
        return Condition(name, "ok", f"configured by {', '.join(found)}")
    if tool.by_vendors:
        return Condition(name, "off", "no search vendor is configured", "set up one of those below")
    return Condition(name, "off", f"no {registry.variables(tool)}", "set " + ", or ".join(way.setup for way in ways))


def _groups(registry: Registry) -> Condition:
    members = [
        f"{group}: {', '.join(tool.name for tool in registry.tools.values() if tool.group == group)}"
        for group in registry.groups
    ]
    how = f"--tools {','.join([DEFAULT, *registry.groups])} uses them; fathom doctor --online asks each one question"
    return Condition("sources", "ok", "; ".join(members), how)


def _contact(registry: Registry, environment: Environment) -> Condition:
    groups = dict.fromkeys(tool.group for tool in registry.tools.values() if CONTACT in tool.optional)
    asking = f"the services of --tools {','.join(groups)}"
    if environment.contact:
        return Condition("contact", "ok", f"{environment.contact}, given to {asking}")
    return Condition("contact", "off", f"{asking} are not told who asks", f"set {CONTACT} to your e-mail address")


def _vendors(registry: Registry, environment: Environment) -> Iterator[Condition]:
    """Report for each search vendor whether it is configured, or how to configure it."""
    others = [vendor_of(provider) for provider in PROVIDERS]
    for vendor in (*registry.vendors, *(other for other in others if other.is_configured(environment))):
        name, named = vendor.key(), f"; asked with --search {vendor.key()}" if vendor.only_named else ""
        if vendor.is_configured(environment):
            yield Condition(name, "ok", f"{' and '.join(vendor.variables)} is set{named}")
        else:
            yield Condition(name, "off", f"set {vendor.setup}")
    yield Condition("litellm:NAME", "off", f"set {'; '.join(other.setup for other in others)}")


def _browser(environment: Environment) -> Condition:
    found = find_browser(lambda name: environment.variables.get(name, ""))
    if isinstance(found, str):
        return Condition("browser", "off", "pages without text until their scripts have run are not read", found)
    return Condition("browser", "ok", f"{found.path}{'' if found.sandbox else ', without its sandbox'}")


QUESTION = "water"  # every service has results for it
SECONDS = 20.0


async def reach(environment: Environment, registry: Registry = REGISTRY) -> list[Condition]:
    """Ask each configured vendor and source; a vendor charges for its search. The findings hold no secrets."""
    vendors = [vendor for vendor in registry.vendors if vendor.is_configured(environment)]
    sources = [tool for tool in registry.tools.values() if tool.searches and tool.network and not tool.by_vendors]
    sources = [tool for tool in sources if tool.is_configured(environment)]
    try:
        check_addresses([*vendors, *sources], environment)
    except UserError as error:
        return [Condition("online", "broken", f"{error.code} {error.message}", error.next_step)]
    settings = resolve(ResearchSettings(fresh=True, max_results=1), environment, [])
    run = RunContext(settings, environment, query=QUESTION, configured_vendors=vendors)
    scrubber = Scrubber(environment.secrets)
    waiting = [_asked(kind, kind.name, kind.open(run).search(QUESTION, 1), scrubber) for kind in vendors]
    waiting += [_asked(kind, kind.name.replace("_", " "), _look_up(kind.open(run)), scrubber) for kind in sources]
    return list(await asyncio.gather(*waiting))


async def _look_up(source: Tool) -> Sequence[object]:
    return (await source.run(QUESTION)).results


async def _asked(
    kind: type[Configurable], name: str, asking: Awaitable[Sequence[object]], scrubber: Scrubber
) -> Condition:
    """Return the result of a test question; a failure counts as broken only if the user has configured the service."""
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
        return Condition(name, "ok", f"answers in {time.monotonic() - began:.1f} s{charged}{nothing}")
    how = error.next_step or (kind.setup if isinstance(error, ToolRejected) else "try again later; runs ask another")
    detail = scrubber.message(f"{error.code} {error.message}")
    return Condition(name, "broken" if kind.variables else "off", detail, scrubber.message(how))

"""What is configured, what can be reached, and how to set what is missing."""

from __future__ import annotations

import asyncio
import os
import platform
import re
from collections.abc import Iterator, Sequence
from importlib.metadata import PackageNotFoundError, requires, version
from importlib.util import find_spec
from pathlib import Path

from fathom.budget.prices import Pricing
from fathom.config.environment import Environment
from fathom.config.form import as_text
from fathom.config.given import settings_from
from fathom.config.groups import EXTRACTIVE, ModelCallSettings, Role
from fathom.config.layers import Layer, layered, origins
from fathom.config.secrets import Scrubber
from fathom.config.settings import ResearchSettings, ResolvedSettings, resolve
from fathom.config.settings_file import NAME, user_folder
from fathom.errors import InvalidInput, ModelError, UserError
from fathom.flows.findings import Finding, checked
from fathom.flows.preflight import artifact_root
from fathom.flows.server import find_api
from fathom.flows.tools_examined import examine_tools
from fathom.llm.base import CutOff
from fathom.llm.model_checks import FIRST, SECOND, Probe, check_models, probe
from fathom.run.estimate import SLOW_MINUTES, usual_tokens
from fathom.storage.store import ArtifactStore
from fathom.tools.registry import REGISTRY, Registry

_EXTRA = re.compile(r"(?m)^([\w.-]+).*\bextra == ['\"](\w+)['\"]")
PROBE_CALLS = ModelCallSettings(seconds=120, backoff_seconds=0.5)


def examine(model: str | None = None, given: Sequence[Layer] = (), registry: Registry = REGISTRY) -> Iterator[Finding]:
    """Check everything that a run with given settings needs, and ask a model one question if it is named.

    The findings hold no secrets.
    """
    environment = Environment.read()
    yield from examine_settings(given, environment)
    yield Finding("python", "ok", platform.python_version())
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
    yield checked("artifacts", _artifacts)
    yield _cache(environment)


def examine_settings(given: Sequence[Layer], environment: Environment) -> Iterator[Finding]:
    """Say which settings are not their defaults, and where each comes from."""
    try:
        found = origins(layered(given, environment))
    except InvalidInput as error:
        yield Finding("settings", "broken", f"{error.code} {error.message}", error.next_step)
        return
    scrubber = Scrubber(environment.secrets)
    for path, value, where in found:
        yield Finding(path, "ok", scrubber.message(f"{as_text(value)} ({where})"))
    if not found:
        yield Finding("settings", "ok", f"all defaults; no {NAME} here or in {user_folder(environment.variables)}")


def examine_model(model: str, environment: Environment) -> Iterator[Finding]:
    """Ask a model one question, and say what its answer means for a run."""
    try:
        settings = settings_from({"model": model or " "})
        resolved = resolve(settings, environment, [])
        check_models(resolved, environment)
        if model == EXTRACTIVE:
            yield Finding("model", "ok", "extractive: quotations, without a language model")
            return
        found = asyncio.run(probe(model, environment, PROBE_CALLS))
    except (UserError, ModelError) as error:
        yield Finding("model", "broken", f"{error.code} {error.message}", error.next_step or error.remedy)
        return
    yield from _findings(model, found, resolved)


def _findings(model: str, found: Probe, settings: ResolvedSettings) -> Iterator[Finding]:
    yield Finding("model", "ok", f"{model} answers" + (", after it has thought" if found.thinks else ""))
    if found.debris and not found.fits:
        how = "choose an instruct or chat model; on a server of your own, check its chat template"
        yield Finding("template", "broken", "its answer has marks around it that no chat model writes", how)
    form = found.structured.value
    if found.fits:
        yield Finding("JSON", "ok", f"{form}: the answer fits the schema")
    else:
        why = {None: "is not JSON that fits the schema", CutOff.limit: "has no end"}.get(
            found.cut_off, "repeats itself"
        )
        how = "choose a larger model, or set the role's structured_output to json_object or prompt"
        yield Finding("JSON", "broken", f"{form}: the answer {why}", how)
    if found.fits and not found.right:
        how = "expect little of its reports; every sentence is checked, and what is not in its sources is left out"
        yield Finding(
            "knowledge", "off", f"it does not know the capital of France, or that {FIRST}+{SECOND} is 42", how
        )
    yield _speed(found, settings)
    yield _window(found, settings)
    yield _price(model, settings)


def _speed(found: Probe, settings: ResolvedSettings) -> Finding:
    if found.tokens_per_second is None:
        return Finding("speed", "off", "unknown: the answer came in one piece")
    _sent, received = usual_tokens(settings, settings.model)
    minutes = received / found.tokens_per_second / 60
    said = f"{found.tokens_per_second:.0f} tokens a second, the first after {found.wait:.1f} s"
    about = f"{said}; the answers of a standard run often take {max(1, round(minutes))} min"
    if minutes < SLOW_MINUTES:
        return Finding("speed", "ok", about)
    return Finding("speed", "off", about, "--profile quick, or --role-model compressor=extractive")


def _window(found: Probe, settings: ResolvedSettings) -> Finding:
    needed = settings.max_context_tokens + settings.role_models[Role.reporter].max_tokens
    if found.window is None:
        return Finding("window", "off", "unknown: a prompt that is refused is halved", "set the role's window")
    part = "; of longer material the best part is shown" if found.window < needed else ""
    return Finding("window", "ok", f"{found.window:,} tokens{part}")


def _price(model: str, settings: ResolvedSettings) -> Finding:
    rates = Pricing(settings.prices).highest(model)
    if rates is None:
        how = f"--price {model}=INPUT,OUTPUT, in dollars per million tokens, allows a cap in dollars"
        return Finding("price", "off", "unknown: tokens and requests are capped, dollars are not", how)
    sent, received = (float(rate) * 1_000_000 for rate in rates)
    free = not sent and not received
    return Finding("price", "ok", "free" if free else f"at most ${sent:g} and ${received:g} per million tokens")


def _package(name: str) -> Finding:
    if _is_installed(name):
        return Finding(name, "ok", version(name))
    return Finding(name, "broken", "not installed", f"pip install {name}")


def _api() -> Finding:
    if server := find_api():
        return Finding("Prefect API", "ok", f"{server.api_url}, its pages: {server.ui_url}")
    detail = "none is running; `fathom research` starts one on this machine"
    return Finding("Prefect API", "off", detail, "set PREFECT_API_URL to use another")


def _model(environment: Environment) -> Finding:
    settings = ResearchSettings()
    check_models(resolve(settings, environment, []), environment)
    if environment.model in (None, EXTRACTIVE):
        how = "set FATHOM_MODEL or use --model, for example openai/gpt-5-mini with OPENAI_API_KEY"
        return Finding("model", "off", "extractive: reports consist of quotations, without a language model", how)
    return Finding("model", "ok", f"{environment.model}, its key is set")


def _extras() -> Finding:
    """Say which optional parts of the package are installed."""
    lacking: dict[str, bool] = {}
    for package, extra in _EXTRA.findall("\n".join(requires("fathom-research") or ())):
        lacking[extra] = lacking.get(extra, False) or not _is_installed(package)
    there = ", ".join(extra for extra, lacks in lacking.items() if not lacks) or "none"
    absent = [extra for extra, lacks in lacking.items() if lacks]
    detail = there + (f"; not installed: {', '.join(absent)}" if absent else "")
    return Finding("extras", "ok", detail, f'pip install "fathom-research[{",".join(absent)}]"' if absent else "")


def _is_installed(package: str) -> bool:
    try:
        return bool(version(package))
    except PackageNotFoundError:
        return False


def _corpus() -> Finding:
    missing = [
        name for name in ("pydoc_data", "trafilatura", "pypdf", "docx", "docutils", "yaml") if find_spec(name) is None
    ]
    if missing:
        return Finding("documents", "broken", f"not installed: {', '.join(missing)}", "install Fathom's requirements")
    return Finding("documents", "ok", "the Python language reference; your own with --docs PATH")


def _artifacts() -> Finding:
    root = artifact_root()
    if "://" in root or Path(root).is_dir():
        asyncio.run(ArtifactStore(root).check_writable())
        return Finding("artifacts", "ok", root)
    if _may_create(Path(root)):
        return Finding("artifacts", "ok", f"{root} (the first run creates it)")
    how = "set FATHOM_ARTIFACTS to a folder or s3:// address"
    return Finding("artifacts", "broken", f"{root} cannot be created", how)


def _cache(environment: Environment) -> Finding:
    if _may_create(environment.cache):
        return Finding("cache", "ok", str(environment.cache))
    return Finding("cache", "off", f"{environment.cache} cannot be written: every run indexes documents again",
                   "set FATHOM_CACHE to a folder")  # fmt: skip


def _may_create(folder: Path) -> bool:
    """Return whether a folder can be written or created, going by its closest ancestor that exists."""
    closest = next(path for path in (folder.absolute(), *folder.absolute().parents) if path.exists())
    return closest.is_dir() and os.access(closest, os.W_OK)

"""What is configured, what can be reached, and how to set what is missing."""

from __future__ import annotations

import asyncio
import os
import platform
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

from fathom.config.environment import Environment
from fathom.config.models import EXTRACTIVE
from fathom.config.settings import ResearchSettings, resolve
from fathom.errors import UserError
from fathom.llm.model_checks import check_models
from fathom.storage.store import ArtifactStore
from fathom.tools.base import Tool
from fathom.tools.registry import REGISTRY, Registry, check_addresses
from flows.preflight import artifact_root
from flows.server import find_api


@dataclass(frozen=True)
class Finding:
    """One thing that was checked. `off`: a run works without it; `broken`: a run would fail."""

    name: str
    state: Literal["ok", "off", "broken"]
    detail: str
    how: str = ""  # to set or repair it


def examine(registry: Registry = REGISTRY) -> Iterator[Finding]:
    """Check everything a run needs; the findings hold no secrets."""
    environment = Environment.read()
    yield Finding("python", "ok", platform.python_version())
    for package in ("prefect", "litellm"):
        yield _package(package)
    yield _checked("Prefect API", _api)
    yield _checked("model", lambda: _model(environment))
    for tool in registry.tools.values():
        if registry.variables(tool) and not tool.follows:
            yield _checked(tool.name.replace("_", " "), partial(_tool, tool, registry, environment))
    yield _corpus()
    yield _checked("artifacts", _artifacts)
    yield _cache(environment)


def _checked(name: str, check: Callable[[], Finding]) -> Finding:
    try:
        return check()
    except UserError as error:
        return Finding(name, "broken", f"{error.code} {error.message}", error.next_step)


def _package(name: str) -> Finding:
    try:
        return Finding(name, "ok", version(name))
    except PackageNotFoundError:
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


def _tool(tool: type[Tool], registry: Registry, environment: Environment) -> Finding:
    name, ways = tool.name.replace("_", " "), registry.configured_by(tool)
    check_addresses(ways, environment)
    if found := [" and ".join(way.variables) for way in ways if way.is_configured(environment)]:
        return Finding(name, "ok", f"configured by {', '.join(found)}")
    return Finding(name, "off", f"no {registry.variables(tool)}", "set " + ", or ".join(way.setup for way in ways))


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

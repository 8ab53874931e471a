"""Tools and search vendors of other packages, which register them in the entry-point group `fathom.tools`.

They are looked up when tools are first needed, so that no command waits for what it does not use. A package that cannot
be loaded takes no command with it: it is named where someone looks for it.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Collection
from dataclasses import dataclass, field
from importlib.metadata import EntryPoint, entry_points

from fathom.text.plain import clean_line
from fathom.tools.base import SearchVendor, Tool
from fathom.tools.mcp.configuration import PREFIX

GROUP = "fathom.tools"
_NAME = re.compile(r"[a-z][a-z0-9]*(?:_[a-z0-9]+)*")


@dataclass(frozen=True)
class Plugins:
    """What other packages register. `packages` has the package of each tool or vendor by its name."""

    tools: list[type[Tool]] = field(default_factory=list)
    vendors: list[type[SearchVendor]] = field(default_factory=list)
    packages: dict[str, str] = field(default_factory=dict)
    broken: dict[str, str] = field(default_factory=dict)
    """Why an entry cannot be used, by the entry's name, which of a tool is that of the tool."""


def load_plugins(taken: Collection[str]) -> Plugins:
    """Load what is registered; `taken` are the names that Fathom itself uses."""
    found = Plugins()
    for entry in sorted(entry_points(group=GROUP), key=lambda entry: (_package(entry), entry.name)):
        loaded, problem = _loaded(entry)
        if loaded is not None:
            problem = _problem(entry.name, loaded, {*taken, *found.packages})
        if problem or loaded is None:
            found.broken[clean_line(entry.name)] = f"{entry.value} of the package {_package(entry)}: {problem}"
            continue
        found.packages[loaded.name] = _package(entry)
        if issubclass(loaded, Tool):
            found.tools.append(loaded)
        else:
            found.vendors.append(loaded)
    return found


def _package(entry: EntryPoint) -> str:
    return entry.dist.name if entry.dist else "unknown"


def _loaded(entry: EntryPoint) -> tuple[type[Tool] | type[SearchVendor] | None, str]:
    """Return the class of an entry, or why there is none."""
    try:
        loaded = entry.load()
    except Exception as error:  # noqa: BLE001 - the code of others may fail in any way, and must not take us with it
        return None, clean_line(f"{type(error).__name__}: {error}")[:300]
    if not (inspect.isclass(loaded) and issubclass(loaded, Tool | SearchVendor)):
        return None, "it is not a Tool or SearchVendor"
    return loaded, ""


def _problem(entry: str, loaded: type[Tool] | type[SearchVendor], taken: Collection[str]) -> str:
    """Return what is wrong with a class; empty if nothing is."""
    if missing := sorted(loaded.__abstractmethods__):
        return f"it has no method {', '.join(missing)}"
    needed = ("name", "description") if issubclass(loaded, Tool) else ("name",)
    if missing := [name for name in needed if not isinstance(getattr(loaded, name, None), str)]:
        return f"it has no {' and no '.join(missing)}"
    if issubclass(loaded, Tool):
        if not _NAME.fullmatch(loaded.name) or loaded.name.startswith(PREFIX):
            return f"{loaded.name!r} is no name of a tool: use snake_case that does not begin with {PREFIX}"
        if loaded.name != entry:
            return f"the entry is called {entry}, but the tool {loaded.name}"
    if loaded.name in taken:
        return f"there is another {loaded.name}"
    return ""

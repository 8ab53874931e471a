"""Fathom: from a question to a cited report that can be checked.

What is public here is what a caller configures, calls, receives and catches. `research` takes and returns chat
messages, `research_simple` a string; `Fathom` and `AsyncFathom` talk to a server. All of it is imported on first use:
the command line must answer at once, and Prefect alone takes more than a second to load.
"""

from __future__ import annotations

# Not from `typing`, which takes so long to load that Ctrl-C would meet it before the command line can answer.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from fathom.client import AsyncFathom, Fathom
    from fathom.config.groups import CompressionSettings, Profile, Role, RoleModel
    from fathom.config.settings import ResearchSettings
    from fathom.errors import FathomError, ModelError, StoreError, ToolError, UserError
    from fathom.flows.api import research, research_simple
    from fathom.models import Ending, Metrics, Note, Plan, PlanStep, Report, RunResult, Source
    from fathom.telemetry.progress import Event, listen

__all__ = [
    "AsyncFathom",
    "CompressionSettings",
    "Ending",
    "Event",
    "Fathom",
    "FathomError",
    "Metrics",
    "ModelError",
    "Note",
    "Plan",
    "PlanStep",
    "Profile",
    "Report",
    "ResearchSettings",
    "Role",
    "RoleModel",
    "RunResult",
    "Source",
    "StoreError",
    "ToolError",
    "UserError",
    "listen",
    "research",
    "research_simple",
]
_MODULES = {
    "fathom.client": {"AsyncFathom", "Fathom"},
    "fathom.config.groups": {"CompressionSettings", "Profile", "Role", "RoleModel"},
    "fathom.config.settings": {"ResearchSettings"},
    "fathom.errors": {"FathomError", "ModelError", "StoreError", "ToolError", "UserError"},
    "fathom.flows.api": {"research", "research_simple"},
    "fathom.models": {"Ending", "Metrics", "Note", "Plan", "PlanStep", "Report", "RunResult", "Source"},
    "fathom.telemetry.progress": {"Event", "listen"},
}


def __getattr__(name: str) -> Any:
    for module, names in _MODULES.items():
        if name in names:
            from importlib import import_module

            return getattr(import_module(module), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

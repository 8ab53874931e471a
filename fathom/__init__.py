"""Fathom's engine: from a question to a cited report, without knowing what runs it.

The pipeline itself lives in `flows`; what is public here is what a caller configures, receives and catches.
"""

from fathom.config.groups import CompressionSettings
from fathom.config.models import Role, RoleModel
from fathom.config.profiles import Profile
from fathom.config.settings import ResearchSettings
from fathom.errors import FathomError, ModelError, StoreError, ToolError, UserError
from fathom.models import Ending, Metrics, Note, Plan, PlanStep, Report, RunResult, Source
from fathom.telemetry.progress import Event, listen

__all__ = [
    "CompressionSettings",
    "Ending",
    "Event",
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
]

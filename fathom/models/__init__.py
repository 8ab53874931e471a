"""The data of a research run, from the plan to the result: what the pipeline passes on, stores and reads back.

What a language model fills is defined with its role in `fathom.roles`.
"""

from fathom.models.base import Model
from fathom.models.claims import Claim, Corroboration, Judgement, Quote, SourceQuality, Verdict
from fathom.models.evidence import (
    Call,
    Document,
    Note,
    NoteMessage,
    Source,
    SourceText,
    StepOutcome,
    Survey,
    ToolCall,
    ToolFailure,
    ToolOutput,
    ToolResult,
    UnreadFile,
    Usage,
)
from fathom.models.plan import Contradiction, Gap, Plan, PlanStep, Priority, Reflection, StepStatus
from fathom.models.run import (
    Account,
    AuditHead,
    Ending,
    Metrics,
    Phase,
    Report,
    ReportSection,
    RunManifest,
    RunResult,
    StepCoverage,
)

__all__ = [
    "Account",
    "AuditHead",
    "Call",
    "Claim",
    "Contradiction",
    "Corroboration",
    "Document",
    "Ending",
    "Gap",
    "Judgement",
    "Metrics",
    "Model",
    "Note",
    "NoteMessage",
    "Phase",
    "Plan",
    "PlanStep",
    "Priority",
    "Quote",
    "Reflection",
    "Report",
    "ReportSection",
    "RunManifest",
    "RunResult",
    "Source",
    "SourceQuality",
    "SourceText",
    "StepCoverage",
    "StepOutcome",
    "StepStatus",
    "Survey",
    "ToolCall",
    "ToolFailure",
    "ToolOutput",
    "ToolResult",
    "UnreadFile",
    "Usage",
    "Verdict",
]

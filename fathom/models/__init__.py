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
from fathom.models.unanswered import AbsentWord, Catalogue, Holdings, NearPassage, Searched, Unanswered

__all__ = [
    "AbsentWord",
    "Account",
    "AuditHead",
    "Call",
    "Catalogue",
    "Claim",
    "Contradiction",
    "Corroboration",
    "Document",
    "Ending",
    "Gap",
    "Holdings",
    "Judgement",
    "Metrics",
    "Model",
    "NearPassage",
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
    "Searched",
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
    "Unanswered",
    "UnreadFile",
    "Usage",
    "Verdict",
]

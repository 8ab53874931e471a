"""One file for each role: its request, its answer, and the rules of a good answer."""

from fathom.roles.base import Answer, Complaint, Request, RoleSpec, Text
from fathom.roles.clarifier import CLARIFIER, ClarifyAnswer, ClarifyRequest
from fathom.roles.compressor import COMPRESSOR, CompressAnswer, CompressRequest
from fathom.roles.correction import CORRECTION, CorrectionAnswer, CorrectionRequest
from fathom.roles.critic import CRITIC, ReflectAnswer, ReflectRequest
from fathom.roles.judge import JUDGE, JudgeAnswer, JudgeRequest
from fathom.roles.planner import PLANNER, EarlierReport, PlanAnswer, PlanRequest
from fathom.roles.reporter import (
    ANSWER,
    OUTLINE,
    SECTION,
    OutlineAnswer,
    OutlineRequest,
    SectionRequest,
    ShortAnswerRequest,
)
from fathom.roles.researcher import RESEARCHER, ResearchAnswer, ResearchRequest

__all__ = [
    "ANSWER",
    "CLARIFIER",
    "COMPRESSOR",
    "CORRECTION",
    "CRITIC",
    "JUDGE",
    "OUTLINE",
    "PLANNER",
    "RESEARCHER",
    "SECTION",
    "SPECS",
    "Answer",
    "ClarifyAnswer",
    "ClarifyRequest",
    "Complaint",
    "CompressAnswer",
    "CompressRequest",
    "CorrectionAnswer",
    "CorrectionRequest",
    "EarlierReport",
    "JudgeAnswer",
    "JudgeRequest",
    "OutlineAnswer",
    "OutlineRequest",
    "PlanAnswer",
    "PlanRequest",
    "ReflectAnswer",
    "ReflectRequest",
    "Request",
    "ResearchAnswer",
    "ResearchRequest",
    "RoleSpec",
    "SectionRequest",
    "ShortAnswerRequest",
    "Text",
]

_ROLES = (CLARIFIER, PLANNER, RESEARCHER, COMPRESSOR, CRITIC, OUTLINE, SECTION, ANSWER, JUDGE, CORRECTION)
SPECS = {spec.name: spec for spec in _ROLES}
"""Every role by name, which is also the name of its prompt."""

"""What the tasks return to the flow: an answer and what it used."""

from __future__ import annotations

from fathom.budget.ledger import Allowance
from fathom.models import (
    Answered,
    Brief,
    Contradiction,
    Model,
    Note,
    Plan,
    Reflection,
    Remark,
    ReportSection,
    SourceQuality,
    ToolCall,
    UnreadFile,
    Usage,
)
from fathom.roles import OutlineAnswer


class Planned(Model):
    """A plan, and the user's files that no search can find, as they were when it was made."""

    plan: Plan
    usage: Usage
    unread: list[UnreadFile] = []


class Checked(Model):
    """What the ledger said, and who stopped the research, if anybody did. `narrow`: little of an output is read."""

    allowance: Allowance
    narrow: bool = False
    stopped: Remark | None = None


class Heard(Model):
    """What people said."""

    remarks: list[Remark] = []
    stopped: Remark | None = None


class Decided(Model):
    """The next tool calls of a step, none when it is done; and its brief, once nobody decides for it any more."""

    calls: list[ToolCall]
    usage: Usage
    brief: Brief | None = None


class Compressed(Model):
    """A note, or none when the output was not useful, or when all that is in it was noted before.

    `narrowed_tokens`: raw tokens that the compressor was not shown; `reused`: files of earlier notes that serve the
    step.
    """

    note: Note | None
    usage: Usage
    narrowed_tokens: int = 0
    reused: list[str] = []


class Reflected(Model):
    """The critic's view of a round."""

    reflection: Reflection
    usage: Usage


class Outlined(Model):
    """The outline of the report."""

    outline: OutlineAnswer
    usage: Usage


class Written(Model):
    """A section as it was written. `answered`: of an answer, whether it is one; `confidence`: of an answer, 0 to 1."""

    section: ReportSection
    usage: Usage
    answered: Answered = Answered.yes
    confidence: float | None = None


class Scored(Model):
    """How good the sources are, and where they contradict each other."""

    qualities: list[SourceQuality]
    contradictions: list[Contradiction]

"""The results that tasks return to the flow: an answer and its usage."""

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
    """The ledger's allowance, and who stopped the research, if anybody did.

    `narrow`: less is read, and by the cheaper model.
    """

    allowance: Allowance
    narrow: bool = False
    stopped: Remark | None = None


class Heard(Model):
    """Remarks of people."""

    remarks: list[Remark] = []
    stopped: Remark | None = None


class Decided(Model):
    """The next tool calls of a step, none when it is done; and its brief, after its last decision."""

    calls: list[ToolCall]
    usage: Usage
    brief: Brief | None = None


class Compressed(Model):
    """A note, or none if the output was not useful, or if everything in it was noted before.

    `narrowed_tokens`: raw tokens that the compressor was not shown; `reused`: files of earlier notes that serve the
    step; `useless`: keys of the texts that were read whole and had nothing; `read_for`: ids of the steps that had not
    begun, for which the texts were read too.
    """

    note: Note | None
    usage: Usage
    narrowed_tokens: int = 0
    reused: list[str] = []
    useless: list[str] = []
    read_for: list[str] = []


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
    """The quality of the sources, and their contradictions."""

    qualities: list[SourceQuality]
    contradictions: list[Contradiction]

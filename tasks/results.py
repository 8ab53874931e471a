"""What the tasks return to the flow: an answer together with what it took."""

from __future__ import annotations

from fathom.models import Model, Note, Plan, Reflection, ReportSection, ToolCall, Usage
from fathom.roles import OutlineAnswer

__all__ = ["Compressed", "Decided", "Outlined", "Planned", "Reflected", "Written"]


class Planned(Model):
    """A plan."""

    plan: Plan
    usage: Usage


class Decided(Model):
    """The next tool calls of a step; none when it is done."""

    calls: list[ToolCall]
    usage: Usage


class Compressed(Model):
    """A note, or none when the output was not useful. `narrowed_tokens`: raw tokens the compressor was not shown."""

    note: Note | None
    usage: Usage
    narrowed_tokens: int = 0


class Reflected(Model):
    """The critic's view of a round."""

    reflection: Reflection
    usage: Usage


class Outlined(Model):
    """The outline of the report."""

    outline: OutlineAnswer
    usage: Usage


class Written(Model):
    """A finished section."""

    section: ReportSection
    usage: Usage

"""What a run knows so far: the plan as a checklist, the notes, the calls, what it took.

Built from the tasks' results alone, in the order of the plan, so a replay arrives at the same state.
"""

from __future__ import annotations

from collections.abc import Sequence

from fathom.models import Call, Ending, Note, Plan, PlanStep, Reflection, Source, StepOutcome, StepStatus, Usage

__all__ = ["RunState"]


class RunState:
    """A run between two of its calls.

    Attributes:
        plan: with the steps' present statuses, follow-up steps included.
        notes: the working memory; useful notes only.
        calls: tool calls by step id.
        reflection: the latest one.
        usage: of all model calls so far.
    """

    def __init__(self, plan: Plan, usage: Usage) -> None:
        self.plan = plan
        self.notes: list[Note] = []
        self.calls: dict[str, list[Call]] = {}
        self.reflection: Reflection | None = None
        self.usage = usage

    @property
    def all_calls(self) -> list[Call]:
        """Every tool call, in the order of the plan."""
        return [call for step in self.plan.steps for call in self.calls.get(str(step.step_id), [])]

    @property
    def sources(self) -> dict[str, Source]:
        """Every source that was retrieved, by id; the first place it was read in stands for it."""
        found: dict[str, Source] = {}
        for call in self.all_calls:
            for source in call.result.sources:
                found.setdefault(source.source_id, source)
        return found

    @property
    def finished(self) -> int:
        """How many steps were researched."""
        return len(self.calls)

    def mark(self, step: PlanStep, status: StepStatus) -> None:
        """Set the status of a step."""
        self._update({str(step.step_id): status})

    def learn(self, outcome: StepOutcome) -> None:
        """Take in what researching a step brought; without a useful note the step is blocked."""
        self.notes.extend(outcome.notes)
        self.calls[str(outcome.step_id)] = outcome.calls
        self.usage += outcome.usage
        self._update({str(outcome.step_id): StepStatus.done if outcome.notes else StepStatus.blocked})

    def reflect(self, reflection: Reflection, usage: Usage) -> None:
        """Take in the critic's view. A step without any evidence stays blocked, whatever the critic says."""
        self.reflection = reflection
        self.usage += usage
        evident = {str(note.step_id) for note in self.notes}
        self._update({step_id: status for step_id, status in reflection.statuses.items() if step_id in evident})

    def extend(self, steps: Sequence[PlanStep]) -> None:
        """Add follow-up steps to the plan."""
        self.plan = self.plan.model_copy(update={"steps": [*self.plan.steps, *steps]})

    def ending(self) -> tuple[Ending, str]:
        """Return how the run ends and, unless it is complete, why."""
        failures = [f"{failure.code} {failure.message}" for call in self.all_calls for failure in call.result.failures]
        reasons = list(dict.fromkeys([*self.usage.fallbacks, *failures]))
        if not self.notes:
            return Ending.insufficient_evidence, "; ".join(["no tool call brought anything useful", *reasons])
        return (Ending.degraded, "; ".join(reasons)) if reasons else (Ending.complete, "")

    def _update(self, statuses: dict[str, StepStatus]) -> None:
        steps = [
            step.model_copy(update={"status": statuses.get(str(step.step_id), step.status)}) for step in self.plan.steps
        ]
        self.plan = self.plan.model_copy(update={"steps": steps})

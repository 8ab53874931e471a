"""The state of a run: the plan as a checklist, the notes, the tool calls, and the usage.

It is built from the tasks' results alone, in the order of the plan, so a replay reaches the same state.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from fathom.errors import BudgetExceeded
from fathom.evidence.provenance import RoundRecord
from fathom.evidence.stored import StoredText
from fathom.models import (
    Account,
    Brief,
    Call,
    Charge,
    Contradiction,
    Ending,
    Metrics,
    Note,
    Phase,
    Plan,
    PlanStep,
    Reflection,
    Remark,
    Source,
    StepOutcome,
    StepStatus,
    ToolFailure,
    UnreadFile,
    Usage,
    described,
    insufficiency,
)
from fathom.retrieval.narrowing import Memory
from fathom.run.checklist import Reason
from fathom.run.reading import NotedBefore
from fathom.sources.scoring import RatedSource
from fathom.text.urls import canonical_url
from fathom.text.wording import ENGLISH, Wording

NAMED = 3  # sources that could not be read


class Spent(NamedTuple):
    """The usage of a role's calls; `step_id` is empty if they belong to no step."""

    role: str
    step_id: str
    usage: Usage


class Retrieved(NamedTuple):
    """All that a run has read, rated as far as that does not depend on the critic."""

    texts: list[StoredText]
    rated: list[RatedSource]
    disagreeing: list[Contradiction]  # found by their words alone


class ResearchState:
    """The state of a run between two calls."""

    def __init__(
        self,
        plan: Plan,
        usage: Usage,
        unread: Sequence[UnreadFile] = (),
        *,
        sufficiency: int,
        searched: str = "",
        scope: str = "",
    ) -> None:
        self.unread = list(unread)  # the user's files that no search can find
        self.scope = scope  # its name and what it means; empty for none
        self.searched = searched  # for want of documents and a web search; empty if there are any
        self.sufficiency = sufficiency  # score of the critic from which the evidence suffices, 1 to 10
        self.plan = plan  # with the steps' current statuses, follow-up steps included
        self.notes: list[Note] = []  # the working memory: useful notes only
        self.briefs: list[Brief] = []
        self.calls: dict[str, list[Call]] = {}  # by step id
        self.retrieved: Retrieved | None = None  # if it is rated already
        self.reflection: Reflection | None = None  # the latest one
        self.judged: Reflection | None = None  # the same, if a model, not a rule of thumb, judged all notes
        self.rounds: list[RoundRecord] = []  # the finished ones
        self.stop: Reason | None = None  # why the research ended; None while it goes on
        self.cut = False  # whether the budget ended the research
        self.saving = False  # whether it ran short
        self.stopped: Remark | None = None  # who ended it, if a person did
        self.spent: list[Spent] = []
        self.spend("planner", usage)

    @property
    def ended(self) -> Reason | None:
        """Why the research must end with the present evidence; None if it may go on."""
        return Reason.stopped if self.stopped else Reason.budget if self.cut else None

    @property
    def evident(self) -> set[str]:
        """The ids of the steps with a useful note."""
        return {step_id for note in self.notes for step_id in note.steps}

    @property
    def memory(self) -> Memory:
        """The notes and briefs that the roles may see."""
        return Memory(notes=self.notes, briefs=self.briefs)

    @property
    def usage(self) -> Usage:
        """The usage of all model calls so far."""
        return sum((spent.usage for spent in self.spent), Usage())

    @property
    def charges(self) -> list[Charge]:
        """The charges for searches and pages."""
        return [charge for call in self.all_calls for charge in call.result.charges]

    @property
    def cost_usd(self) -> float | None:
        """The cost of all answered calls; None when a price is not known."""
        costs = [self.usage.cost_usd, *(charge.usd for charge in self.charges)]
        return None if None in costs else sum(cost for cost in costs if cost)

    @property
    def all_calls(self) -> list[Call]:
        """Every tool call, in the order of the plan."""
        return [call for step in self.plan.steps for call in self.calls.get(str(step.step_id), [])]

    @property
    def noted(self) -> NotedBefore:
        """The notes by the texts that were read for them, and the texts that had nothing."""
        return NotedBefore.of(self.plan.steps, self.calls, self.notes)

    @property
    def sources(self) -> dict[str, Source]:
        """Every source that was retrieved, by id, as it was read first, with the entries of all catalogues."""
        read: dict[str, list[Source]] = {}
        for call in self.all_calls:
            for source in call.result.sources:
                read.setdefault(source.source_id, []).append(source)
        return {
            source_id: own[0].model_copy(
                update={
                    "reference": described(own),
                    "before": own[0].before if all(source.before for source in own) else None,  # not read again
                }
            )
            for source_id, own in read.items()
        }

    def unreadable(self, words: Wording = ENGLISH) -> list[str]:
        """A clause on the number of unreadable sources, with the first ones and why; nothing if all were read."""
        failed = self._unread()
        if not failed:
            return []
        every = len({canonical_url(source.url) for source in self.sources.values()} | set(failed))
        named = [
            f"{f.source} ({f.message.removeprefix(f'{f.source}: ').rstrip('.')})" for f in list(failed.values())[:NAMED]
        ]
        if len(failed) > NAMED:
            named.append(words("and {more}", more=words("{number} more", number=len(failed) - NAMED)))
        sources = words.counted(every, "source")
        said = words("{number} of {sources} could not be read", number=len(failed), sources=sources)
        return [words("{head}: {text}", head=said, text=words.listed(named))]

    def _unread(self) -> dict[str, ToolFailure]:
        """Return the reasons why pages could not be read, by address, without pages that another call has read."""
        results = [call.result for call in self.all_calls]
        read = {canonical_url(source.url) for result in results for source in result.sources if source.full}
        failed = {canonical_url(f.source): f for r in reversed(results) for f in reversed(r.failures) if f.source}
        return {url: failure for url, failure in reversed(failed.items()) if url not in read}

    def _rests_on_read_sources(self) -> bool:
        """Whether a note quotes a source that could be read."""
        unread, sources = self._unread(), self.sources
        cited = {source_id for note in self.notes for source_id in note.origins}
        return any(canonical_url(sources[i].url) not in unread for i in cited if i in sources)

    def spend(self, role: str, usage: Usage, step_id: str = "") -> None:
        """Add the usage of a role's calls, for one step or for the whole run."""
        self.spent.append(Spent(role, step_id, usage))

    def mark(self, step_id: str | int, status: StepStatus) -> None:
        """Set the status of a step."""
        same = str(step_id)
        steps = [s.model_copy(update={"status": status}) if str(s.step_id) == same else s for s in self.plan.steps]
        self.plan = self.plan.model_copy(update={"steps": steps})

    def learn(self, *outcomes: StepOutcome) -> None:
        """Add the outcomes of steps that ran together: a note of one may serve each other one."""
        self.retrieved = None
        notes = [*self.notes, *(note for outcome in outcomes for note in outcome.notes)]
        reusing = {
            note.artifact_file: [str(one.step_id) for one in outcomes if note.artifact_file in one.reused]
            for note in notes
        }
        self.notes = [
            note.model_copy(update={"also": [*note.also, *also]}) if (also := reusing[note.artifact_file]) else note
            for note in notes
        ]
        for outcome in outcomes:
            self._learn(outcome)

    def _learn(self, outcome: StepOutcome) -> None:
        self.briefs += [outcome.brief] if outcome.brief else []
        self.judged = None if outcome.notes else self.judged
        self.calls[str(outcome.step_id)] = outcome.calls
        self.cut |= outcome.cut
        self.saving |= outcome.saving
        for role, usage in outcome.usage.items():
            self.spend(role, usage, str(outcome.step_id))
        self.stopped = self.stopped or outcome.stopped
        self.mark(outcome.step_id, outcome.status)

    def remember(self, notes: Sequence[Note]) -> None:
        """Keep only these notes, and the briefs that replace only such notes."""
        self.retrieved = None
        memory = self.memory.of(notes)
        self.notes, self.briefs = memory.notes, memory.briefs

    def hear(self, remarks: Sequence[Remark], stopped: Remark | None) -> None:
        """Add people's remarks."""
        self.stopped = self.stopped or stopped
        self.plan = self.plan.model_copy(update={"remarks": [*self.plan.remarks, *remarks]})

    def reflect(self, reflection: Reflection, usage: Usage) -> None:
        """Add the critic's view. A step without any evidence stays blocked, whatever the critic says."""
        self.reflection = reflection
        self.judged = reflection if usage.llm_calls and not usage.fallbacks else None
        self.spend("critic", usage)
        for step_id, status in reflection.statuses.items():
            if step_id in self.evident:
                # Without a model, how much of a step is answered is a rule of thumb.
                kept = status is StepStatus.blocked or (status is StepStatus.in_progress and self.judged)
                self.mark(step_id, status if kept else StepStatus.done)

    def extend(self, steps: Sequence[PlanStep]) -> None:
        """Add follow-up steps to the plan."""
        self.plan = self.plan.model_copy(update={"steps": [*self.plan.steps, *steps]})

    def ending(self, words: Wording = ENGLISH) -> tuple[Ending, str]:
        """Return how the run ends and, unless it is complete, the reason."""
        reasons = self.reasons(words)
        if not self.notes:
            nothing = "nothing that was read answers the question"
            if self.searched:
                nothing = f"only {self.searched}, was searched, and nothing in it answers the question"
            return Ending.insufficient_evidence, "; ".join([nothing, *reasons])
        return (Ending.degraded, "; ".join(reasons)) if reasons else (Ending.complete, "")

    def reasons(self, words: Wording = ENGLISH) -> list[str]:
        """Return what the run lacks to be complete, each once."""
        failures = [f.line for call in self.all_calls for f in call.result.failures if not (f.replaced_by or f.source)]
        unread = [] if self._rests_on_read_sources() else self.unreadable(words)
        cut = [f"{BudgetExceeded.code} {words('the budget ended the research early')}"] if self.cut else []
        stopped = [words("stopped by {person}", person=self.stopped.said)] if self.stopped else []
        judged = self.judged
        thin = insufficiency(judged.sufficiency_score, self.sufficiency, judged.reasoning, words) if judged else ""
        found = [*stopped, *cut, thin, *self.usage.fallbacks, *failures, *unread]
        return list(dict.fromkeys(filter(None, found)))


def measure(run: ResearchState, account: Account, seconds: float) -> Metrics:
    """Return the counts of a run that took some seconds of wall time."""
    calls, usage = run.all_calls, run.usage
    raw = sum(call.result.raw_tokens for call in calls)
    context = sum(note.tokens for note in run.notes)
    return Metrics(
        llm_calls=usage.llm_calls,
        tool_calls=len(calls),
        rounds=len(run.rounds),
        raw_tokens=raw,
        context_tokens=context,
        narrowed_tokens=sum(call.narrowed_tokens for call in calls),
        context_reduction=round(1 - context / raw, 4) if raw else 0.0,
        prompt_tokens=usage.prompt_tokens,
        cached_tokens=usage.cached_tokens,
        completion_tokens=usage.completion_tokens,
        cost_usd=run.cost_usd,
        seconds=round(seconds, 3),
        phases=phases_of(run),
        steps=_phases((spent.step_id, spent.usage) for spent in run.spent if spent.step_id),
        charges=_sums(run.charges),
        account=account,
    )


def _sums(charges: Iterable[Charge]) -> list[Phase]:
    """Return the cost of the searches and pages of each service."""
    by_service: dict[str, list[float | None]] = {}
    for charge in charges:
        by_service.setdefault(charge.service, []).append(charge.usd)
    return [
        Phase(
            name=service,
            calls=len(costs),
            seconds=0.0,
            cost_usd=None if None in costs else round(sum(cost for cost in costs if cost), 9),
        )
        for service, costs in sorted(by_service.items())
    ]


def phases_of(run: ResearchState) -> list[Phase]:
    """Return the usage of the model calls of each role."""
    return _phases((spent.role, spent.usage) for spent in run.spent)


def _phases(spent: Iterable[tuple[str, Usage]]) -> list[Phase]:
    sums: dict[str, Usage] = {}
    for name, usage in spent:
        sums[name] = sums.get(name, Usage()) + usage
    return [
        Phase(
            name=name,
            calls=usage.llm_calls,
            tokens=usage.prompt_tokens + usage.completion_tokens,
            seconds=usage.seconds,
            cost_usd=usage.cost_usd,
        )
        for name, usage in sums.items()
    ]

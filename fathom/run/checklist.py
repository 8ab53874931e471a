"""The plan as a checklist: in which order its steps are taken, and which ones the next round has.

A step that found nothing is blocked. It comes back in the next round as a step of its own with broader queries, once:
artifacts are named after steps, and the table keeps what became of the first attempt. Other steps do not wait for it,
because each can be carried out by itself.
"""

from __future__ import annotations

from collections.abc import Sequence

from fathom.config.groups import Execution
from fathom.extractive.questions import broader, capitalized, clip, key_terms, keywords
from fathom.models import Plan, PlanStep, Priority, Reflection, Remark, StepStatus
from fathom.text.terms import terms

COVERED = 0.75  # share of what a step's title adds to the question, from which another step is about the same
TITLE_WORDS = 20
_RANKS = list(Priority)


def waves(steps: Sequence[PlanStep], execution: Execution, at_once: int) -> list[list[PlanStep]]:
    """Split steps into groups that may run together: each after the steps it depends on, the important ones first.

    A step is as important as what depends on it. In sequential execution each group is one step, in parallel execution
    at most `at_once`.
    """
    most = at_once if execution is Execution.parallel else 1
    waiting = {str(step.step_id): step for step in steps}
    ranks = {step_id: _rank(step, steps) for step_id, step in waiting.items()}
    groups: list[list[PlanStep]] = []
    while waiting:
        ready = [s for s in waiting.values() if not any(str(d) in waiting for d in s.depends_on)]
        ready.sort(key=lambda step: ranks[str(step.step_id)])
        groups.append(ready[:most])
        for step in groups[-1]:
            del waiting[str(step.step_id)]
    return groups


def _rank(step: PlanStep, steps: Sequence[PlanStep]) -> int:
    """Return how soon a step should come, 0 first: its priority, or a higher one of a step that depends on it."""
    dependent = [s for s in steps if str(step.step_id) in map(str, s.depends_on)]
    return min([_RANKS.index(step.priority), *(_rank(other, steps) for other in dependent)])


def within(plan: Plan, most: int) -> Plan:
    """Return a plan of at most this number of steps: the important ones with what they depend on, in their order."""
    kept = {str(step.step_id) for (step,) in waves(plan.steps, Execution.sequential, 1)[:most]}
    return plan.model_copy(update={"steps": [step for step in plan.steps if str(step.step_id) in kept]})


def next_steps(
    plan: Plan,
    reflection: Reflection | None,
    remarks: Sequence[Remark],
    *,
    evident: set[str],
    query: str,
    round_number: int,
    most: int,
) -> list[PlanStep]:
    """Return the steps that the round after this one has if there is one, at most `most`, the important ones.

    They are those that the critic proposes; one for each remark, if it proposes none; and each blocked step again that
    has no proposal of its own. `evident` are the ids of the steps with a useful note.
    """
    proposed = list(reflection.follow_up_steps) if reflection else []
    blocked = [step for step in plan.steps if _comes_back(step, plan, evident)]
    steps: list[PlanStep] = []
    for step in proposed:
        of = next((one for one in blocked if _is_about(step, one, query)), None)
        steps.append(step.model_copy(update={"retries": of.step_id if of else ""}))
        blocked = [one for one in blocked if one is not of]
    steps += [_asked(remark) for remark in remarks if not proposed]
    steps += [again for step in blocked if (again := _again(step, plan, query))]
    chosen = sorted(steps, key=lambda step: _RANKS.index(step.priority))[: max(most, len(remarks))]
    kept = [step for step in steps if any(step is one for one in chosen)]
    return [step.model_copy(update={"step_id": f"R{round_number + 1}_{n}"}) for n, step in enumerate(kept, 1)]


def _comes_back(step: PlanStep, plan: Plan, evident: set[str]) -> bool:
    found_nothing = step.status is StepStatus.blocked and str(step.step_id) not in evident
    return found_nothing and not step.retries and plan.retry_of(step) is None


def _is_about(step: PlanStep, blocked: PlanStep, query: str) -> bool:
    """Whether a proposal tries a blocked step again: it says so, or has the words that make that step a step."""
    if str(step.retries) == str(blocked.step_id):
        return True
    wanted = set(key_terms(blocked.title))
    wanted = wanted - set(terms(query)) or wanted
    said = set(terms(" ".join([step.title, step.description, *step.queries])))
    return bool(wanted) and len(wanted & said) >= COVERED * len(wanted)


def _asked(remark: Remark) -> PlanStep:
    return PlanStep(
        step_id="",
        title=capitalized(clip(remark.text, TITLE_WORDS)) or remark.text,
        description=f"Find the passages that answer: {remark.text}",
        queries=[remark.text],
        priority=Priority.high,
    )


def _again(step: PlanStep, plan: Plan, query: str) -> PlanStep | None:
    """Return a blocked step with broader queries; None if all of them were made already."""
    had = {frozenset(terms(had)) for each in plan.steps for had in each.queries}
    wider = {frozenset(terms(q)): q for q in (" ".join(keywords(query)[:3]), broader(step.title, query))}
    queries = [q for found, q in reversed(wider.items()) if len(q.split()) > 1 and found not in had]
    if not queries:
        return None
    return PlanStep(
        step_id="",
        title=f"{step.title} (again)",
        description=f"Search more widely, since the first queries found nothing. {step.description}",
        queries=queries,
        priority=step.priority,
        retries=step.step_id,
    )

"""The plan as a checklist: its order, how a person edits it, and whether another round follows.

A step that found nothing is blocked. It comes back in the next round, once, as a new step with broader queries:
artifacts are named after steps, and the table keeps the outcome of the first attempt. Other steps do not wait for it,
because each can be carried out by itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Any, NamedTuple

from pydantic import Field, ValidationError
from pydantic_core import ErrorDetails

from fathom.config.groups import EXTRACTIVE, Execution, Role
from fathom.config.settings import ResolvedSettings
from fathom.errors import InvalidInput
from fathom.extractive.questions import broader, capitalized, clip, key_terms, keywords
from fathom.models import (
    Constraints,
    Model,
    Plan,
    PlanStep,
    Priority,
    Reflection,
    Remark,
    ReportPreferences,
    StepStatus,
)
from fathom.roles.planner import PlannedStep, plan_complaints
from fathom.text.terms import terms
from fathom.text.wording import ENGLISH, Wording

COVERED = 0.75  # share of the words that a step's title adds to the question, from which another step is about the same
TITLE_WORDS = 20
_RANKS = list(Priority)


def waves(steps: Sequence[PlanStep], execution: Execution, at_once: int) -> list[list[PlanStep]]:
    """Split steps into groups that may run together: each after the steps it depends on, the important ones first.

    A step is as important as the steps that depend on it. In sequential execution each group is one step, in parallel
    execution at most `at_once`.
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
    """Return a plan of at most this number of steps: the important ones with their dependencies, in their order.

    The plan names the others.
    """
    kept = {str(step.step_id) for (step,) in waves(plan.steps, Execution.sequential, 1)[:most]}
    left_out = [step.title for step in plan.steps if str(step.step_id) not in kept]
    steps = [step for step in plan.steps if str(step.step_id) in kept]
    return plan.model_copy(update={"steps": steps, "left_out": left_out})


def next_steps(
    plan: Plan,
    reflection: Reflection | None,
    remarks: Sequence[Remark],
    *,
    evident: set[str],
    query: str,
    round_number: int,
    most: int,
    words: Wording = ENGLISH,
) -> list[PlanStep]:
    """Return the steps for the next round, if there is one: at most `most`, the important ones first.

    They are the steps that the critic proposes; one for each remark, if it proposes none; and again each blocked step
    that has no proposal of its own. `evident` are the ids of the steps with a useful note.
    """
    proposed = list(reflection.follow_up_steps) if reflection else []
    blocked = [step for step in plan.steps if _comes_back(step, plan, evident)]
    steps: list[PlanStep] = []
    for step in proposed:
        of = next((one for one in blocked if _is_about(step, one, query)), None)
        steps.append(step.model_copy(update={"retries": of.step_id if of else ""}))
        blocked = [one for one in blocked if one is not of]
    steps += [_asked(remark) for remark in remarks if not proposed]
    steps += [again for step in blocked if (again := _again(step, plan, query, words))]
    chosen = sorted(steps, key=lambda step: _RANKS.index(step.priority))[: max(most, len(remarks))]
    kept = [step for step in steps if any(step is one for one in chosen)]
    return [step.model_copy(update={"step_id": f"R{round_number + 1}_{n}"}) for n, step in enumerate(kept, 1)]


def _comes_back(step: PlanStep, plan: Plan, evident: set[str]) -> bool:
    found_nothing = step.status is StepStatus.blocked and str(step.step_id) not in evident
    return found_nothing and not step.retries and plan.retry_of(step) is None


def _is_about(step: PlanStep, blocked: PlanStep, query: str) -> bool:
    """Whether a proposal tries a blocked step again: it says so, or has the step's distinctive words."""
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


def _again(step: PlanStep, plan: Plan, query: str, words: Wording) -> PlanStep | None:
    """Return a blocked step with broader queries; None if all of these were made already."""
    had = {frozenset(terms(had)) for each in plan.steps for had in each.queries}
    wider = {frozenset(terms(q)): q for q in (" ".join(keywords(query)[:3]), broader(step.title, query))}
    queries = [q for found, q in reversed(wider.items()) if len(q.split()) > 1 and found not in had]
    if not queries:
        return None
    return PlanStep(
        step_id="",
        title=words("{title} (again)", title=step.title),
        description=f"Search more widely, since the first queries found nothing. {step.description}",
        queries=queries,
        priority=step.priority,
        retries=step.step_id,
    )


MOST_STEPS = 10
_HEAD = """\
# Change, add, remove or reorder steps. A step needs an id of its own, a title and a description.
# `preferences` say what the report is to be like; depth is brief or thorough.
"""


class EditedPlan(Model):
    """The parts of a plan that a person may change."""

    plan_title: str = Field(min_length=1)
    steps: list[PlannedStep] = Field(min_length=1, max_length=MOST_STEPS)
    goals: list[str] = []
    constraints: Constraints = Constraints()
    preferences: ReportPreferences = ReportPreferences()


def as_yaml(plan: Plan) -> str:
    """Return the editable parts of a plan, as text for an editor."""
    import yaml

    names = set(PlannedStep.model_fields)
    steps = [step.model_dump(mode="json", include=names) for step in plan.steps]
    data: dict[str, Any] = {"plan_title": plan.plan_title, "steps": steps, "goals": plan.goals}
    data["constraints"] = {**dict(Constraints()), **plan.constraints.model_dump(mode="json")}  # with the empty fields
    data["preferences"] = {**dict(ReportPreferences()), **plan.preferences.model_dump(mode="json")}
    text: str = yaml.safe_dump(data, sort_keys=False, allow_unicode=True, width=100)
    return _HEAD + text


def from_yaml(text: str, plan: Plan) -> Plan:
    """Return a plan with its title and steps as edited; fields of an existing step that the text omits stay.

    Unchanged text leaves the plan as it is.

    Raises:
        InvalidInput: the message names the error in the text, or the rules of a plan that it breaks.
    """
    import yaml

    if text.split() == as_yaml(plan).split():
        return plan
    try:
        wanted = EditedPlan.model_validate(yaml.safe_load(text))
    except ValidationError as error:
        problems = [_problem(found) for found in error.errors()]
        raise InvalidInput(f"The plan cannot be used. {'; '.join(problems[:5])}.") from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:  # the second for a day that does not exist
        mark, problem = getattr(error, "problem_mark", None), getattr(error, "problem", None)
        where = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
        raise InvalidInput(f"The plan is not YAML: {where}{problem or ' '.join(str(error).split())}.") from None
    return edited(wanted, plan)


def edited(wanted: EditedPlan, plan: Plan) -> Plan:
    """Return a plan as somebody wants it; unset fields of the plan and of an existing step stay.

    Raises:
        InvalidInput: the message names the rules of a plan that it breaks.
    """
    before = {str(step.step_id): step for step in plan.steps}
    own = {str(step.step_id): step.step_id for step in wanted.steps}
    ids = {**own, **{name: before[name].step_id for name in own if name in before}}  # quoted or not, an id is the same
    complaints = [complaint.text for complaint in plan_complaints(wanted.steps)]
    complaints += [
        f"Step {step.step_id} depends on step {other}, which the plan does not have."
        for step in wanted.steps
        for other in step.depends_on
        if str(other) not in ids
    ]
    if complaints:
        raise InvalidInput(f"The plan cannot be used. {' '.join(complaints)}")
    steps = []
    for step in wanted.steps:
        fields = {**step.model_dump(exclude_unset=True), "step_id": ids[str(step.step_id)]}
        fields["depends_on"] = [ids[str(other)] for other in step.depends_on]
        known = before.get(str(step.step_id))
        steps.append(known.model_copy(update=fields) if known else PlanStep(**fields))
    rest = {name: value for name, value in wanted if name in wanted.model_fields_set}
    return plan.model_copy(update={**rest, "plan_title": wanted.plan_title.strip(), "steps": steps})


def _problem(found: ErrorDetails) -> str:
    """Return the first error and its place; steps are counted from 1."""
    first, *rest = found["loc"] or ("the plan",)
    where, of = str(first), "plan"
    known: type[Model] = EditedPlan
    if first == "steps" and rest:
        where, of, known, rest = f"step {int(rest[0]) + 1}", "step", PlannedStep, rest[1:]
    name = ".".join(map(str, rest))
    if found["type"] == "extra_forbidden":
        parts: dict[str, type[Model]] = {"constraints": Constraints, "preferences": ReportPreferences}
        unknown = f"{where}: {name}" if name else where
        fields = ", ".join((parts.get(where, known) if name else known).model_fields)
        return f"{unknown} is no field of a {of}; its fields are {fields}"
    return f"{where}{', ' if name else ''}{name}: {found['msg']}"


class Reason(StrEnum):
    """Why the research continues or stops."""

    gaps = "gaps remain"
    blocked = "a step found nothing and is tried again"
    remark = "a person asked for more"
    sufficient = "the critic judged the evidence sufficient"
    worded = "what was found has the question's words"
    depth = "the last round is done"
    nothing_new = "the round found nothing new"
    no_follow_up = "there was nothing else to look for"
    no_evidence = "nothing was found"
    budget = "the budget for research is spent"
    stopped = "a person stopped the research"


class Decision(NamedTuple):
    """Whether to go on, and why."""

    go_on: bool
    reason: Reason


def decide(
    settings: ResolvedSettings,
    *,
    round_number: int,
    reflection: Reflection | None,
    steps: Sequence[PlanStep],
    new_notes: int,
    notes: int,
    ended: Reason | None = None,
    asked: bool = False,
) -> Decision:
    """Decide after a round, counted from 1, within the depth of the settings; `notes` are the useful ones so far.

    `steps` are the steps that another round would have. From the settings' score of sufficiency, the evidence suffices,
    even if steps are blocked; without a model, the score only says that words were found. `ended`: why the research has
    ended already. `asked`: a person asked for something, for which a round beyond the last one may be added.
    """
    if ended:
        return Decision(False, ended)
    if asked and steps:
        return Decision(True, Reason.remark)
    if reflection is not None and notes and reflection.sufficiency_score >= settings.sufficiency:
        judged = settings.role_models[Role.critic].model != EXTRACTIVE
        return Decision(False, Reason.sufficient if judged else Reason.worded)
    last = round_number >= settings.depth
    if last or not steps or (round_number > 1 and not new_notes):
        why = Reason.depth if last else Reason.nothing_new if steps else Reason.no_follow_up
        return Decision(False, why if notes else Reason.no_evidence)
    return Decision(True, Reason.blocked if all(step.retries for step in steps) else Reason.gaps)

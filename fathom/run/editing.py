"""A plan as a person edits it: YAML, checked by the rules that the planner's own has to keep."""

from __future__ import annotations

from pydantic import Field, ValidationError
from pydantic_core import ErrorDetails

from fathom.errors import InvalidInput
from fathom.models import Model, Plan, PlanStep
from fathom.roles.planner import PlannedStep, plan_complaints

MOST_STEPS = 10
_HEAD = "# Change, add, remove or reorder steps. A step needs an id of its own, a title and a description.\n"


class EditedPlan(Model):
    """What of a plan a person may change."""

    plan_title: str = Field(min_length=1)
    steps: list[PlannedStep] = Field(min_length=1, max_length=MOST_STEPS)


def as_yaml(plan: Plan) -> str:
    """Return what of a plan may be changed, as text for an editor."""
    import yaml

    names = set(PlannedStep.model_fields)
    steps = [step.model_dump(mode="json", include=names) for step in plan.steps]
    data = {"plan_title": plan.plan_title, "steps": steps}
    text: str = yaml.safe_dump(data, sort_keys=False, allow_unicode=True, width=100)
    return _HEAD + text


def from_yaml(text: str, plan: Plan) -> Plan:
    """Return a plan with its title and steps as edited; of a step that it had, what the text does not say stays.

    Unchanged text is the plan as it is.

    Raises:
        InvalidInput: the message says what is wrong with it, or which rules of a plan it breaks.
    """
    import yaml

    if text.split() == as_yaml(plan).split():
        return plan
    try:
        wanted = EditedPlan.model_validate(yaml.safe_load(text))
    except yaml.YAMLError as error:
        mark, problem = getattr(error, "problem_mark", None), getattr(error, "problem", None)
        where = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
        raise InvalidInput(f"The plan is not YAML: {where}{problem or ' '.join(str(error).split())}.") from None
    except ValidationError as error:
        problems = [_problem(found) for found in error.errors()]
        raise InvalidInput(f"The plan cannot be used. {'; '.join(problems[:5])}.") from None
    return edited(wanted, plan)


def edited(wanted: EditedPlan, plan: Plan) -> Plan:
    """Return a plan with another title and other steps; of a step that it had, what is not set stays.

    Raises:
        InvalidInput: the message says which rules of a plan it breaks.
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
    return plan.model_copy(update={"plan_title": wanted.plan_title.strip(), "steps": steps})


def _problem(found: ErrorDetails) -> str:
    """Say what is wrong and where; steps are counted from 1, as people do."""
    first, *rest = found["loc"] or ("the plan",)
    where = str(first)
    if rest:
        where, rest = f"step {int(rest[0]) + 1}", rest[1:]
    name = ".".join(map(str, rest))
    if found["type"] == "extra_forbidden":
        of, known = ("step", PlannedStep) if name else ("plan", EditedPlan)
        unknown = f"{where}: {name}" if name else where
        return f"{unknown} is no field of a {of}; its fields are {', '.join(known.model_fields)}"
    return f"{where}{', ' if name else ''}{name}: {found['msg']}"

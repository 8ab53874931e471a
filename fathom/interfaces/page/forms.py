"""What people fill in, as the requests that the service takes."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from itertools import count
from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import Depends, Request
from markupsafe import Markup
from pydantic import ValidationError
from starlette.datastructures import FormData

from fathom.client.shapes import AnswerRequest, RunRequest
from fathom.config.form import has
from fathom.config.given import from_option, path_of, placed, wrong_in
from fathom.config.settings import SETTINGS
from fathom.config.templates import merged
from fathom.errors import FathomError, InvalidInput, WrongValue
from fathom.models import Asked, Plan, ReportPreferences
from fathom.roles.planner import PlannedStep
from fathom.run.checklist import MOST_STEPS, EditedPlan, edited

CSRF = "csrf_token"
_MINUTE = 60
_TYPED = ("profile", "depth", "model", "max_usd")
_CHOSEN = ("mode", "scope", "fresh", "approve", "clarify")
"""Fields that set settings, by the names of their options: those that can be wrong, and the others."""
PREFERENCES = tuple(ReportPreferences.model_fields)
_FIELDS = {**{path_of(name): name for name in ("name", "every", "template", *_TYPED)}, "budget.max_seconds": "minutes"}
"""The field of a form at which is said what is wrong with a value, by its path."""


def csrf_of(request: Request) -> str:
    """Return the secret of the session's forms; empty where nobody signs in."""
    session = getattr(request.state, "session", None)
    return session.csrf if session else ""


def csrf_field(request: Request) -> Markup:
    """Return the hidden field that every form with consequences has."""
    secret = csrf_of(request)
    return Markup('<input type="hidden" name="{}" value="{}">').format(CSRF, secret) if secret else Markup()


def csrf_query(request: Request) -> str:
    """Return the same as a parameter, for forms with files: they are not read before the secret was."""
    secret = csrf_of(request)
    return f"?{urlencode({CSRF: secret})}" if secret else ""


class FormValues(dict[str, str]):
    """What somebody filled in, to be shown again; what is missing is empty."""

    @classmethod
    def of(cls, form: FormData) -> FormValues:
        """Return the texts of a form."""
        return cls({name: value for name, value in form.items() if isinstance(value, str)})

    def __missing__(self, _name: str) -> str:
        return ""


class Wrong(dict[str, str]):
    """What is wrong with a form: the message by field; the message of the field `""` concerns the whole form."""

    @classmethod
    def of(cls, error: FathomError, field: str = "") -> Wrong:
        """Return what a failure says, at the field that it is about."""
        if isinstance(error, InvalidInput) and error.wrong:
            return cls.at_fields(error.wrong)
        hint = f" {_sentence(error.next_step)}" if error.next_step and "fathom " not in error.next_step else ""
        return cls({field: f"{_sentence(error.message)}{hint}"})

    @classmethod
    def at_fields(cls, wrong: Sequence[WrongValue]) -> Wrong:
        """Return what is wrong with values: at their fields, and of those that have none, the last above all."""
        return cls(
            (_FIELDS[one.path], _sentence(one.message)) if one.path in _FIELDS else ("", one.told()) for one in wrong
        )

    @classmethod
    def invalid(cls, error: ValidationError) -> Wrong:
        """Return what is wrong with the first value that a request may not have."""
        first = wrong_in(error.errors())[0]
        return cls({first.path: "Please write something here." if first.value == "" else _sentence(first.message)})


async def _sent(request: Request) -> AsyncIterator[FormData]:
    async with request.form() as form:
        yield form


TheForm = Annotated[FormData, Depends(_sent)]


def text(form: FormData | Mapping[str, Any], name: str) -> str:
    """Return the text of a field, without the space around it; empty if the form has none."""
    value = form.get(name)
    return value.strip().replace("\r\n", "\n") if isinstance(value, str) else ""


def texts(form: FormData, name: str) -> list[str]:
    """Return the texts of a field that may come several times."""
    return [value for value in form.getlist(name) if isinstance(value, str) and value]


def run_request(form: FormData) -> RunRequest:
    """Return what the form *Ask* asks for.

    Raises:
        ValidationError: the question is missing or too long.
        InvalidInput: the minutes are no number.
    """
    return RunRequest(
        question=text(form, "question"),
        settings=settings_of(form),
        template=text(form, "template") or None,
        corpora=texts(form, "corpora"),
        shared=bool(text(form, "shared")),
    )


def settings_of(form: FormData) -> dict[str, Any]:
    """Return the settings that a form sets; what it leaves empty is left to the profile.

    Raises:
        InvalidInput: the minutes are no number.
    """
    found = {path_of(name): text(form, name) for name in (*_TYPED, *_CHOSEN) if text(form, name)}
    if named := text(form, "other_model"):
        found[path_of("model")] = named
    settings = placed({path: from_option(path, _pointed(path, value)) for path, value in found.items()})
    if minutes := text(form, "minutes"):
        settings = merged(settings, {"budget": {"max_seconds": _seconds(minutes)}})
    return settings


def answer_request(form: FormData, asked: Asked) -> AnswerRequest:
    """Return what a person says to a run that waits.

    Raises:
        ValidationError: something is too long.
        InvalidInput: the plan cannot be used.
    """
    if text(form, "reject"):
        return AnswerRequest(reject=True)
    answers = [value.strip() for value in form.getlist("answer") if isinstance(value, str)]
    plan = plan_of(form, asked.plan) if asked.plan and text(form, "steps") else None
    return AnswerRequest(answers=answers, plan=plan if plan != asked.plan else None, remark=text(form, "remark"))


def plan_of(form: FormData, plan: Plan) -> Plan:
    """Return a plan as somebody edited it: steps in the order of their numbers, without those that are to go.

    Raises:
        InvalidInput: it breaks a rule of plans.
    """
    steps = sorted(_steps(form, plan), key=lambda numbered: numbered[0])
    if not steps:
        raise InvalidInput("Please keep at least one step.")
    try:
        planned = [PlannedStep.model_validate(step) for _, step in steps]
        title, said = text(form, "plan_title") or plan.plan_title, {n: text(form, f"report-{n}") for n in PREFERENCES}
        preferences = ReportPreferences.model_validate({name: value for name, value in said.items() if value})
        wanted = EditedPlan(plan_title=title, steps=planned, preferences=preferences)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"])) or "step"
        raise InvalidInput(f"The plan cannot be used: {where}: {first['msg']}.") from None
    return edited(wanted, plan)


def _steps(form: FormData, plan: Plan) -> Iterator[tuple[float, dict[str, Any]]]:
    before = {str(step.step_id): step for step in plan.steps}
    free = (number for number in count(1) if str(number) not in before)
    gone = {number for number in range(MOST_STEPS + 1) if text(form, f"remove-{number}")}
    removed = {text(form, f"id-{number}") for number in gone}
    for number in range(MOST_STEPS + 1):
        title = text(form, f"title-{number}")
        if number in gone or not title:
            continue
        known = before.get(text(form, f"id-{number}"))
        fields = known.model_dump(mode="json", include=set(PlannedStep.model_fields)) if known else {}
        depends_on = [other for other in fields.get("depends_on", []) if str(other) not in removed]
        queries = [line.strip() for line in text(form, f"queries-{number}").splitlines() if line.strip()]
        own = {
            "step_id": known.step_id if known else next(free),
            "title": title,
            "description": text(form, f"description-{number}") or title,
            "queries": queries,
            "depends_on": depends_on,
        }
        place = text(form, f"place-{number}")
        yield (float(place) if place.replace(".", "", 1).isdecimal() else number + 1), {**fields, **own}


def _pointed(path: str, value: str) -> str:
    """Return a number as JSON has it; people also write 2,5."""
    return value.replace(",", ".") if has(SETTINGS[path], float) else value


def _seconds(minutes: str) -> float:
    try:
        return float(minutes.replace(",", ".")) * _MINUTE
    except ValueError:
        raise InvalidInput(wrong=[WrongValue("budget.max_seconds", minutes, "it must be a number")]) from None


def _sentence(said: str) -> str:
    said = said.strip()
    return f"{said[:1].upper()}{said[1:]}{'' if said.endswith(('.', '!', '?', ')')) else '.'}"

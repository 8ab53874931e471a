"""Templates, TOML files that define a kind of research, and settings that use one.

A template has settings, rules for sources, questions that every such research must answer, and the sections of its
report. `fathom/templates` holds the templates that Fathom ships; a user's own file has the same form.

The user's settings override the template's, which override the defaults. So settings that a user chose must stay
distinct from defaults wherever settings go: Prefect stores them as JSON, and its form writes every box. Therefore
settings with a template are stored without the fields that were not chosen; and in a submitted form, which has null in
its empty boxes, a field with its default value counts as not chosen.
"""

from __future__ import annotations

import hashlib
import tomllib
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, Self, get_args

from pydantic import (
    AfterValidator,
    BaseModel,
    Field,
    JsonValue,
    ModelWrapValidatorHandler,
    SerializerFunctionWrapHandler,
    ValidationError,
    field_validator,
    model_serializer,
    model_validator,
)

from fathom.config.form import FormModel, SetBy, Setting, setting_of
from fathom.config.groups import SourceRules
from fathom.config.inputs import read_text
from fathom.errors import InvalidInput
from fathom.models import Model
from fathom.text.plain import without_controls

FOLDER = Path(__file__).parent.parent / "templates"
MOST_BYTES = 64 * 1024  # of a file: it travels with the parameters of each run
_ENDING = ".toml"
_HELP = "docs/templates.md describes the file; fathom templates NAME prints one to begin with"


def _flat(text: str) -> str:
    if not (flat := " ".join(without_controls(text).split())):
        raise ValueError("it is empty")
    return flat


Line = Annotated[str, AfterValidator(_flat), Field(max_length=300)]


class TemplateSection(Model):
    """A section of the report: its heading, and a description of its contents."""

    title: Annotated[Line, Field(max_length=100)]
    about: Annotated[Line, Field(max_length=1_000)]


def _different(sections: list[TemplateSection]) -> list[TemplateSection]:
    titles = [section.title.casefold() for section in sections]
    if twice := next((section.title for section in sections if titles.count(section.title.casefold()) > 1), ""):
        raise ValueError(f"two sections have the title {twice!r}")
    return sections


class Template(Model):
    """The content of a template's file."""

    title: Annotated[Line, Field(max_length=60)]
    description: Line
    settings: dict[str, JsonValue] = {}
    sources: SourceRules = SourceRules()
    questions: Annotated[list[Line], Field(max_length=12)] = []
    guidance: Annotated[list[Line], Field(max_length=12)] = []  # for the roles that plan, search, judge and write
    terminology: Annotated[list[Line], Field(max_length=40)] = []  # terms of the field, and what each means
    sections: Annotated[list[TemplateSection], Field(max_length=9), AfterValidator(_different)] = []


class UsedTemplate(Template):
    """The template of a run. `name` is empty for a template that is not shipped; `sha256` is the file's, in hex."""

    name: str
    sha256: str


def shipped() -> list[str]:
    """Return the names of the templates that Fathom has."""
    return sorted(path.stem for path in FOLDER.glob(f"*{_ENDING}"))


def template_of(name_or_text: str) -> UsedTemplate:
    """Return a template that is given by its name, or by the text of its file.

    Raises:
        InvalidInput: no template has that name, or the template has an error.
    """
    if name_or_text in shipped():
        return read_template(text_of(name_or_text), name_or_text, name_or_text)
    if "=" in name_or_text:
        return read_template(name_or_text)
    raise InvalidInput(
        f"There is no template {name_or_text!r}{meant(name_or_text, {name: name for name in shipped()}) or '.'}",
        next_step=f"Fathom has {', '.join(shipped())}",
    )


def text_of(name: str) -> str:
    """Return the file of a template that Fathom has."""
    return (FOLDER / f"{name}{_ENDING}").read_bytes().decode()


def text_in(path: Path) -> str:
    """Return the text of a template's file, with its own line ends.

    Raises:
        InvalidInput: the file cannot be a template.
    """
    if not path.is_file():
        what = f"{path} is not a file." if path.exists() else f"There is no file {path}."
        raise InvalidInput(what, next_step="give the name of a template, or its TOML file")
    return read_text(path, MOST_BYTES)


@lru_cache(maxsize=64)
def read_template(text: str, where: str = "the template", name: str = "") -> UsedTemplate:
    """Return the template in a text; `where` names the origin of the text in messages.

    Raises:
        InvalidInput: the text has an error; the message says where and what.
    """
    try:
        template = Template.model_validate(tomllib.loads(text.removeprefix("\ufeff")))
    except tomllib.TOMLDecodeError as error:
        raise InvalidInput(f"{where} is not TOML: {error}.", next_step=_HELP) from None
    except (ValidationError, RecursionError) as error:
        raise InvalidInput(f"{where}: {_wrong(error, Template)}", next_step=_HELP) from None
    return UsedTemplate(**dict(template), name=name, sha256=hashlib.sha256(text.encode()).hexdigest())


def settings_in(template: Template, model: type[BaseModel], where: str = "the template") -> dict[str, Any]:
    """Return the settings that a template sets, its rules for sources included; `model` has all settings.

    Raises:
        InvalidInput: one of them cannot be used.
    """
    if refused := sorted(_not_set(model) & template.settings.keys()):
        how = "write a separate table [sources]" if refused[0] == "sources" else "give it with the run"
        raise InvalidInput(f"{where}: settings.{refused[0]} cannot be set in a template.", next_step=how)
    sources = template.sources.model_dump(mode="json", exclude_unset=True)
    try:
        model.model_validate(template.settings)
    except ValidationError as error:
        raise InvalidInput(f"{where}: {_wrong(error, model, 'settings')}", next_step="see docs/settings.md") from None
    return {**template.settings, **({"sources": sources} if sources else {})}


def _not_set(model: type[BaseModel]) -> set[str]:
    """Return the settings that no template sets under `settings`; `sources` has its own table."""
    return {"sources"} | {name for name, field in model.model_fields.items() if not setting_of(field).by_template}


def _wrong(error: ValidationError | RecursionError, model: type[BaseModel], *above: str) -> str:
    """Return the first error and its place: `sections[2].titel is no key of a template; did you mean title?`."""
    if isinstance(error, RecursionError):
        return "its tables are nested too deeply."
    first = error.errors(include_url=False)[0]
    place = first["loc"]
    named = "".join(f"[{part + 1}]" if isinstance(part, int) else f".{part}" for part in (*above, *place)).lstrip(".")
    match first["type"]:
        case "missing":
            return f"{named} is missing."
        case "model_type" | "dict_type":
            return f"{named} is not a table."
        case "extra_forbidden":
            refused = _not_set(model) if above else set()
            known = {key: at for key, at in keys_at(model, place[:-1]).items() if at not in refused}
            allowed = [key for key, at in known.items() if key == at]
            near = meant(str(place[-1]), known) or f"; there is {', '.join(allowed)}."
            return f"{named} is no {'setting' if above else 'key of a template'}{near}"
    return f"{named}: {first['msg'].removeprefix('Value error, ')}."


def keys_at(model: type[BaseModel], place: Sequence[str | int]) -> dict[str, str]:
    """Return the keys that the table at a place of a model may have, nested tables included, each with its place."""
    for part in place:
        field = model.model_fields.get(str(part))
        model = next(iter(models_in(field.annotation) if field else []), model)
    own = {name: name for name in model.model_fields}
    inner = {
        key: f"{name}.{key}"
        for name, field in model.model_fields.items()
        if isinstance(group := field.annotation, type) and issubclass(group, BaseModel)
        for key in group.model_fields
    }
    return {**inner, **own}


def models_in(annotation: Any) -> list[type[BaseModel]]:
    """Return the models that a type is or contains."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [model for part in get_args(annotation) for model in models_in(part)]


def meant(word: str, known: Mapping[str, str]) -> str:
    """Return a question that suggests the closest known words, each by its meaning; empty if none is close."""
    found = [word] if word in known else get_close_matches(word.lower(), known, cutoff=0.7)
    near = list(dict.fromkeys(known[name] for name in found))
    return f"; did you mean {' or '.join(near)}?" if near else ""


def merged(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Return nested settings; values of `above` override values of `below`."""
    both = dict(below)
    for name, value in above.items():
        under = both.get(name)
        both[name] = merged(under, value) if isinstance(under, dict) and isinstance(value, dict) else value
    return both


class TemplatedSettings(FormModel):
    """Settings that a template can set."""

    template: Annotated[
        str | None, Setting("--template", "NAME|FILE", page="templates", by_template=False, set_by=SetBy.server)
    ] = Field(
        None,
        title="Template: name",
        description=f"The kind of research: {', '.join(shipped())}, or a template of your own (its file on the command "
        "line, its text elsewhere). A template sets every setting that you leave at its default.",
        examples=["literature-review"],
        exclude_if=lambda template: template is None,
    )

    @field_validator("template")
    @classmethod
    def _check_template(cls, template: str | None) -> str | None:
        try:
            if template:
                settings_in(template_of(template), cls)
        except InvalidInput as error:
            raise ValueError(f"{error.message} ({error.next_step})") from None
        return template or None

    @model_validator(mode="wrap")
    @classmethod
    def _over_template(cls, given: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        plain = handler(given)
        if not plain.template or not isinstance(given, dict):
            return plain
        is_form = None in given.values()
        chosen = plain.model_dump(mode="json", exclude_unset=True, exclude_none=True, exclude_defaults=is_form)
        settings = handler(merged(settings_in(template_of(plain.template), cls), chosen))
        settings.model_fields_set.intersection_update(chosen)
        return settings

    @model_serializer(mode="wrap")
    def _only_chosen(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        written: dict[str, Any] = handler(self)
        return {name: value for name, value in written.items() if not self.template or name in self.model_fields_set}

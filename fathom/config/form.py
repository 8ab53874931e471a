"""How a setting is declared, and how Prefect draws it: one box per field, with a description and an example.

A field has the type, bounds, default and description of a setting; `Setting`, among its annotations, has the rest.
The options of commands, Prefect's form, MCP, the API, batches, docs/settings.md and the permissions all follow from
them; the page's form asks for some, which it names itself.

Prefect's form draws a field that may be None as a choice of types, and one choice reads `Property is type "None"`. So
the schema gives such a field only its other type, and no default: it is drawn as an empty box, and Prefect's check of
the parameters accepts None there. Each field has its position, because not every database keeps their order.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import UnionType
from typing import Any, get_args, get_origin

from pydantic import BaseModel, GetJsonSchemaHandler, model_validator
from pydantic.fields import FieldInfo
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from fathom.models import Model

_NONE = {"type": "null"}
BOUNDS = {"ge": "at least", "gt": "more than", "le": "at most", "lt": "less than"}


class SetBy(StrEnum):
    """Who may set a setting in a request to a server. On the command line, everybody sets all of them."""

    anyone = "anyone"
    admins = "admins"  # it reads the server's files or network, loads a file as a model, or spends uncounted
    server = "server"  # only the server itself


class ReadByTools(StrEnum):
    """Whether tools read a setting: an output is kept for other runs as long as what tools read is the same."""

    never = "never"
    always = "always"
    changed = "changed"  # only if it is not the default: it came later, and runs without it keep their calls


@dataclass(frozen=True)
class Setting:
    """The properties of a setting that its field does not declare."""

    option: str = ""  # of the commands, such as `--depth`; without one, `--set` sets it
    value: str = ""  # placeholder of the value in the option's help: `N`; with `,...`, values separated by commas
    empty: str = ""  # the default in words, such as `as the profile says`
    variable: str = ""  # the environment variable that sets it
    page: str = ""  # the page of docs/ that says more, such as `budget`
    by_template: bool = True  # whether a template may set it; not for inputs and storage locations
    set_by: SetBy = SetBy.anyone
    most: float | None = None  # the largest value for callers of a server who are not administrators
    tools: ReadByTools = ReadByTools.never
    is_path: bool = False  # whether it names a file or folder; in a settings file, relative to that file

    @property
    def otherwise(self) -> str:
        """The default in words, or the setting that is consulted first."""
        return ", else ".join(filter(None, (self.variable, self.empty)))


def setting_of(field: FieldInfo) -> Setting:
    """Return the declaration of the setting that a field is."""
    return next((one for one in field.metadata if isinstance(one, Setting)), Setting())


def fields_in(model: type[BaseModel], *above: str) -> Mapping[str, FieldInfo]:
    """Return the fields of a model by their paths, such as `budget.max_usd`, without the groups that contain them."""
    found: dict[str, FieldInfo] = {}
    for name, field in model.model_fields.items():
        inner = field.annotation
        if isinstance(inner, type) and issubclass(inner, FormModel):
            found |= fields_in(inner, *above, name)
        else:
            found[".".join((*above, name))] = field
    return found


def has(field: FieldInfo, kind: type) -> bool:
    """Return whether the values of a setting are of a type, such as `list`, perhaps beside None."""
    kinds = get_args(field.annotation) if isinstance(field.annotation, UnionType) else (field.annotation,)
    return kind in {get_origin(one) or one for one in kinds}


def limits_of(field: FieldInfo) -> dict[str, float]:
    """Return the limits of a number by their names in `BOUNDS`."""
    named = ((name, getattr(rule, name, None)) for rule in field.metadata for name in BOUNDS)
    return {name: limit for name, limit in named if isinstance(limit, int | float)}


def bounds_of(field: FieldInfo) -> str:
    """Return the bounds of a setting, such as `1 to 5`; empty if it has no upper one."""
    found = limits_of(field)
    if found.keys() == {"ge", "le"}:
        return f"{found['ge']:,} to {found['le']:,}"
    return " and ".join(f"{BOUNDS[name]} {bound:,}" for name, bound in found.items()) if "le" in found else ""


def default_of(field: FieldInfo) -> str:
    """Return the default of a setting in words; empty if it has none."""
    value = None if field.is_required() else field.get_default(call_default_factory=True)
    if otherwise := setting_of(field).otherwise:
        return otherwise
    if value is None or value is False or value in ([], {}):
        return ""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return f"{value:,}" if is_number else as_text(value)


class FormModel(Model):
    """A model that is part of the form. A field has one type, or one type and None."""

    @classmethod
    def from_text(cls, text: str) -> object:
        """Return the table that a text stands for.

        Raises:
            ValueError: the text cannot be read; the message says what it must be.
        """
        return text

    @model_validator(mode="before")
    @classmethod
    def _read_text(cls, given: object) -> object:
        return cls.from_text(given) if isinstance(given, str) else given

    @classmethod
    def __get_pydantic_json_schema__(cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        """Return the schema of the form."""
        schema = handler(core_schema)
        for position, (name, shown) in enumerate(handler.resolve_ref_schema(schema)["properties"].items()):
            if _NONE in shown.get("anyOf", []):
                (kind,) = (kind for kind in shown.pop("anyOf") if kind != _NONE)
                choices = handler.resolve_ref_schema(kind).get("enum")
                shown.update({"type": "string", "enum": [*choices, None]} if choices else kind)
                shown.pop("default", None)
            if otherwise := setting_of(cls.model_fields[name]).otherwise:
                shown["description"] += f" Empty: {otherwise}."
            if examples := shown.get("examples"):
                shown["description"] += f" Example: `{as_text(examples[0])}`"
            shown["position"] = position
        return schema


def as_text(value: Any) -> str:
    """Return a value as people write it: a text as it is, anything else as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)

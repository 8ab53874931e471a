"""Settings as users give them:

as text, checked, and refused in one way. An invalid value is reported as data (`WrongValue`): the command line, the API
and the page word it for their readers.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from math import isfinite
from shlex import quote
from typing import Any

from pydantic import BaseModel, JsonValue, ValidationError
from pydantic.fields import FieldInfo

from fathom.config.form import BOUNDS, FormModel, has, limits_of, setting_of
from fathom.config.settings import SETTINGS, ResearchSettings
from fathom.config.templates import keys_at, meant, merged, models_in
from fathom.errors import InvalidInput, WrongValue

MOST_ITEMS = 1_000
"""In a list or table of settings."""
MOST_CHARS = 4_096
"""Of a text in settings: a path may be that long."""
MOST_IN_ALL = 200_000
"""Characters of all settings together. Prefect stores 524,288 bytes of a run's parameters."""
_MOST = 20  # wrong values of one request
_CHARS = 200  # of a wrong value, or of a name
_KINDS = {
    "int": "a whole number",
    "float": "a number",
    "finite": "a finite number",
    "bool": "true or false",
    "string": "text",
    "list": "a list",
    "dict": "a table of names and values",
    "model": "a table of names and values",
}
"""What a field accepts, by the prefix of Pydantic's error type."""
_PLACES = {setting_of(field).option.removeprefix("--").replace("-", "_"): path for path, field in SETTINGS.items()}
"""Paths of settings by the names of their options, such as `max_usd`."""
_BY_VARIABLE = {variable.lower(): path for path, field in SETTINGS.items() if (variable := setting_of(field).variable)}


def settings_from(given: Mapping[str, object]) -> ResearchSettings:
    """Return settings from values by name; values that are None are left to profile and environment.

    Raises:
        InvalidInput: some cannot be used; `wrong` has each.
    """
    if wrong := [*_too_long(given)][:_MOST]:
        raise InvalidInput(wrong=wrong)
    if (size := len(json.dumps(given, default=str))) > MOST_IN_ALL:
        raise InvalidInput(f"The settings have {size:,} characters together; at most {MOST_IN_ALL:,} are possible.")
    try:
        return ResearchSettings.model_validate({name: value for name, value in given.items() if value is not None})
    except ValidationError as error:
        raise InvalidInput(wrong=wrong_in(error.errors(), ResearchSettings)) from None


def _too_long(value: object, *place: str) -> Iterator[WrongValue]:
    """Yield the lists, tables and texts in settings that are longer than any setting needs to be."""
    if isinstance(value, str) and len(value) > MOST_CHARS:
        yield WrongValue(_dotted(place), shortened(value), f"it may have at most {MOST_CHARS:,} characters")
    elif isinstance(value, list | Mapping):
        if len(value) > MOST_ITEMS:
            yield WrongValue(_dotted(place), None, f"it may have at most {MOST_ITEMS:,} items")
            return
        for name, part in value.items() if isinstance(value, Mapping) else enumerate(value):
            if len(str(name)) > MOST_CHARS:
                yield WrongValue(
                    _dotted((*place, str(name))), None, f"a name may have at most {MOST_CHARS:,} characters"
                )
            yield from _too_long(part, *place, str(name))


def wrong_in(errors: Iterable[Mapping[str, Any]], model: type[BaseModel] | None = None) -> list[WrongValue]:
    """Return the errors that Pydantic finds in settings (given their model) or in the fields of a request."""
    return [_wrong(one, model) for one in [*errors][:_MOST]]


def read_settings(pairs: Sequence[str]) -> dict[str, Any]:
    """Return the settings in `NAME=VALUE` texts, nested: a value is JSON, or else text; a list may be `A,B`.

    Raises:
        InvalidInput: a text has another form, or two texts set the same setting differently.
    """
    settings: dict[str, Any] = {}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        if not equals or not name.strip():
            raise InvalidInput(f"{pair!r} is not NAME=VALUE.", next_step="for example --set depth=2")
        path = path_of(name)
        own = placed({path: _value(path, text.strip())})
        if twice := contradictory(settings, own):
            both = f"--set {quote(pair_for(twice, pairs))} and --set {quote(shortened(pair))}"
            raise InvalidInput(f"{both} contradict each other.", next_step="give one of them")
        settings = merged(settings, own)
    return settings


def from_option(path: str, typed: str | bool | Sequence[str]) -> Any:
    """Return the value of a setting from its option, which may be repeated.

    Raises:
        InvalidInput: the setting is a table, and a text is not NAME=VALUE.
    """
    if isinstance(typed, bool):
        return typed
    if isinstance(typed, str):
        return _value(path, typed)
    return table_from(path, typed) if has(SETTINGS[path], dict) else [*typed]


def table_from(path: str, pairs: Sequence[str]) -> dict[str, Any]:
    """Return the value of a table setting from the `NAME=VALUE` texts of its option; names may contain `=`.

    Raises:
        InvalidInput: a text has another form.
    """
    found: dict[str, Any] = {}
    field, setting = SETTINGS[path], setting_of(SETTINGS[path])
    for pair in pairs:
        name, _, text = pair.rpartition("=")
        if not name.strip() or not text.strip():
            what = f"{setting.option} {quote(pair)} is not {setting.value}."
            raise InvalidInput(what, next_step="docs/settings.md describes the settings")
        found[name.strip()] = _stands_for(field, text.strip())
    return found


def _stands_for(field: FieldInfo, text: str) -> object:
    """Return the value that a text in a table stands for; an unreadable text is refused later, with the settings."""
    for model in models_in(field.annotation):
        if issubclass(model, FormModel):
            with suppress(ValueError):
                return model.from_text(text)
    return text


def pair_for(path: str, pairs: Sequence[str]) -> str:
    """Return the first `NAME=VALUE` that sets a path or a part of it, shortened; empty if there is none."""
    for pair in pairs:
        own = path_of(pair.partition("=")[0])
        if f"{path}.".startswith(f"{own}.") or own.startswith(f"{path}."):
            return shortened(pair)
    return ""


def path_of(name: str) -> str:
    """Return the path that a name stands for: `Max-USD`, `max_usd` and `budget.max_usd` are `budget.max_usd`.

    Names that are no fields, such as `openai/gpt-5` in `prices.openai/gpt-5`, stay as they are.
    """
    parts: list[str] = []
    model: type[BaseModel] = ResearchSettings
    for number, part in enumerate(name.strip().split(".")):
        plain = part.strip().lower().replace("-", "_").replace(" ", "_")
        field = model.model_fields.get(plain)
        parts.append(plain if field or number == 0 else part)
        if field:
            model = next(iter(models_in(field.annotation)), model)
    path = ".".join(parts)
    return _PLACES.get(path, path)


def placed(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return values by path as nested settings; later ones take the place of earlier ones."""
    settings: dict[str, Any] = {}
    for path, value in fields.items():
        for part in reversed(path.split(".")):
            value = {part: value}  # noqa: PLW2901 - from the inside out
        settings = merged(settings, value)
    return settings


def contradictory(one: Mapping[str, Any], other: Mapping[str, Any]) -> str:
    """Return the path of the first setting to which both give different values; empty if there is none."""
    for name in [name for name in one if name in other]:
        mine, theirs = one[name], other[name]
        if isinstance(mine, dict) and isinstance(theirs, dict):
            if inner := contradictory(mine, theirs):
                return f"{name}.{inner}"
        elif mine != theirs:
            return str(name)
    return ""


def field_at(model: type[BaseModel], place: Sequence[str | int]) -> FieldInfo | None:
    """Return the innermost field at a place of a model; keys and items of a field belong to that field."""
    found = None
    for part in place:
        if field := model.model_fields.get(str(part)):
            found, model = field, next(iter(models_in(field.annotation)), model)
    return found


def _value(path: str, text: str) -> JsonValue:
    field = field_at(ResearchSettings, path.split("."))
    try:
        value: JsonValue = json.loads(text)
    except (ValueError, RecursionError):
        value = text
    if field and has(field, list) and not isinstance(value, list | None):
        return [part.strip() for part in text.split(",") if part.strip()]
    return text if field and has(field, str) and not isinstance(value, str | None) else value


def _wrong(error: Mapping[str, Any], model: type[BaseModel] | None) -> WrongValue:
    place = error["loc"]
    if error["type"] == "json_invalid":  # its place is the number of a character
        return WrongValue("", None, f"The body is not JSON at character {place[-1]}: {error['ctx']['error']}")
    if place[-1:] == ("[key]",):
        return WrongValue(_dotted(place[:-1]), None, f"the name{_allowed(error, model).removeprefix('it')}")
    what = unknown(place, model) if error["type"] == "extra_forbidden" else _allowed(error, model)
    return WrongValue(_dotted(place), _shown(error["input"]), what)


def _dotted(place: Sequence[str | int]) -> str:
    return shortened(".".join(map(str, place)))


def unknown(place: Sequence[str | int], model: type[BaseModel] | None) -> str:
    """Return that a place is no setting, and which one may be meant."""
    if model is None:
        return "this field does not exist"
    *outer, name = place
    above = "".join(f"{part}." for part in outer)
    beside = {key: f"{above}{path}" for key, path in keys_at(model, outer).items()}
    near = meant(str(name), beside) or meant(str(name), {**keys_at(model, []), **_BY_VARIABLE})
    return f"there is no such setting{near}"


def _allowed(error: Mapping[str, Any], model: type[BaseModel] | None) -> str:
    """Return what a field accepts: `it must be a whole number, at least 1 and at most 5`."""
    kind, context = error["type"], error.get("ctx", {})
    match kind:
        case "missing":
            return "it is missing"
        case "value_error":
            return str(context["error"]).rstrip(".")
        case "string_unicode":
            return "it is not text in Unicode"
        case "string_too_short" | "too_short":
            return "it is empty"
        case "string_too_long" | "too_long":
            return f"it may have at most {context['max_length']:,} {'characters' if kind[0] == 's' else 'items'}"
    field = field_at(model, error["loc"]) if model else None
    limits = (limits_of(field) if field else {}) or context
    bounds = [f"{word} {_number(limits[name])}" for name, word in BOUNDS.items() if name in limits]
    what = context.get("expected") or _KINDS.get(kind.partition("_")[0], "")
    told = ", ".join(part for part in (what, " and ".join(bounds)) if part)
    return f"it must be {told}" if told else f"{error['msg'][:1].lower()}{error['msg'][1:]}"


def _number(bound: float) -> str:
    return f"{int(bound) if bound == int(bound) else bound:,}"


def _shown(value: object) -> str | int | float | bool | None:
    if isinstance(value, float) and not isfinite(value):
        return str(value)  # JSON has no such number
    return shortened(value) if isinstance(value, str) else value if isinstance(value, int | float) else None


def shortened(text: str) -> str:
    """Return a text that can be sent: at most 200 characters, valid Unicode."""
    whole = text.encode(errors="replace").decode()
    return whole if len(whole) <= _CHARS else f"{whole[:_CHARS]} ..."

"""Layers of settings by origin: options, `--set`, template, environment, settings file and profile.

A run reads its template, the environment and its profile by itself. It is given the rest.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from fathom.config.environment import Environment
from fathom.config.form import setting_of
from fathom.config.given import contradictory, path_of, placed, settings_from
from fathom.config.groups import PROFILES
from fathom.config.settings import SETTINGS, ResearchSettings
from fathom.config.settings_file import SettingsFile
from fathom.config.templates import merged, read_template, settings_in, shipped, template_of, text_in
from fathom.errors import InvalidInput


class Layer(NamedTuple):
    """Settings of one origin."""

    where: str  # its name for people, such as `option --depth` or the path of a file
    values: Mapping[str, Any]
    is_given: bool = True  # whether a run is given them; it reads template, environment and profile by itself


def layered(given: Sequence[Layer], environment: Environment) -> list[Layer]:
    """Return all layers of settings, the highest first.

    Below the given layers come the template, the environment, the settings file and the profile. A template that the
    file names stands below the file.

    Raises:
        InvalidInput: the file or the template cannot be used.
    """
    file = environment.file
    own = [Layer(str(file), defaults_in(file))] if file else []
    template = _template_of(given)
    variables = {setting_of(field).variable: path for path, field in SETTINGS.items()}
    known = [(name, path, environment.variables.get(name)) for name, path in variables.items() if name]
    found = [
        *given,
        *template,
        *(Layer(f"environment variable {name}", placed({path: value}), False) for name, path, value in known if value),
        *own,
        *(() if template else _template_of(own)),
    ]
    profile = next((layer.values["profile"] for layer in found if "profile" in layer.values), None)
    implied = [Layer(f"profile {one}", values, False) for one, values in PROFILES.items() if one == profile]
    return [*found, *implied]


def given_in(layers: Iterable[Layer], usual: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return the settings that a run is given, over the defaults, unless a layer that it reads itself is higher."""
    settings = dict(usual or {})
    for layer in reversed([*layers]):
        settings = merged(settings, layer.values) if layer.is_given else _without(settings, layer.values)
    return settings


def origins(layers: Sequence[Layer]) -> list[tuple[str, Any, str]]:
    """Return the settings that differ from their defaults, in the order of the form: path, value and origin.

    Each entry of a table, such as `prices`, has its own origin.
    """
    found: dict[str, tuple[Any, str]] = {}
    for path, field in SETTINGS.items():
        for layer in layers:
            value = _at(layer.values, path)
            entries = (
                {f"{path}.{name}": one for name, one in value.items()} if isinstance(value, dict) else {path: value}
            )
            for place, one in entries.items():
                if one is not None:
                    found.setdefault(place, (one, layer.where))
        if found.get(path, (None,))[0] == field.get_default(call_default_factory=True):
            found.pop(path, None)
    return [(place, value, where) for place, (value, where) in found.items()]


def defaults_in(file: SettingsFile) -> dict[str, Any]:
    """Return the settings that a file gives, with absolute paths and the text of its template.

    Raises:
        InvalidInput: some cannot be used; the message names the file, the key, its value, and what is allowed.
    """
    settings: dict[str, Any] = {}
    for name, value in file.values.items():
        own = placed({path_of(name): value})
        if twice := contradictory(settings, own):
            raise InvalidInput(f"{file}: {twice} is set twice, differently.", next_step="delete one of them")
        settings = merged(settings, own)
    try:
        settings_from({name: value for name, value in settings.items() if name != "template"})
    except InvalidInput as error:
        told = (one.told(one.path if one.value is None else f"{one.path} = {one.value!r}") for one in error.wrong)
        how = "correct it in the file, or delete it there; docs/settings.md describes the settings"
        raise InvalidInput(f"{file}: {' '.join(told)}", next_step=how) from None
    for path, field in SETTINGS.items():
        value = _at(settings, path)
        if setting_of(field).is_path and isinstance(value, str | list):
            there = file.at(value) if isinstance(value, str) else [file.at(str(one)) for one in value]
            settings = merged(settings, placed({path: there}))
    if isinstance(template := settings.get("template"), str):
        is_name = not Path(template).suffix and "/" not in template
        try:
            settings["template"] = template_from(template if is_name else file.at(template))
        except InvalidInput as error:
            raise InvalidInput(f"{file}: template: {error.message}", next_step=error.next_step) from None
    return settings


def template_from(name_or_file: str) -> str:
    """Return a template in the form that settings store: the name of a shipped template, or the text of a file.

    Raises:
        InvalidInput: it is neither, or the file has an error.
    """
    if name_or_file in shipped():
        return name_or_file
    path = Path(name_or_file).expanduser()
    if not path.suffix and "/" not in name_or_file:
        template_of(name_or_file)  # says that there is none
    text = text_in(path)
    settings_in(read_template(text, str(path)), ResearchSettings, str(path))
    return text


def _template_of(layers: Iterable[Layer]) -> list[Layer]:
    """Return the layer of the template that the first of some layers names."""
    text = next((layer.values["template"] for layer in layers if layer.values.get("template")), None)
    if not isinstance(text, str):
        return []
    template = template_of(text)
    where = f"template {template.name or template.title}"
    return [Layer(where, settings_in(template, ResearchSettings), False)]


def _at(settings: Any, path: str) -> Any:
    """Return the value at a path; None if there is none."""
    for part in path.split("."):
        settings = settings.get(part) if isinstance(settings, Mapping) else None
    return settings


def _without(settings: Mapping[str, Any], others: Mapping[str, Any]) -> dict[str, Any]:
    """Return nested settings without the ones that other settings have too."""
    kept: dict[str, Any] = {}
    for name, value in settings.items():
        inner = others.get(name)
        if isinstance(value, dict) and isinstance(inner, dict):
            kept[name] = _without(value, inner)
        elif name not in others:
            kept[name] = value
    return kept

"""Arguments and options that several commands share, including the options of settings.

`fathom.config.settings` declares the settings. A command of the class `SettingsCommand` has all of their options
besides its own. It creates them only when the command runs or prints its help, since reading the declarations takes as
long as all of `fathom --help`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer
from typer.core import TyperCommand

from fathom.config.environment import Environment, artifact_root
from fathom.errors import FathomError, InvalidInput, WrongValue

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo

    from fathom.config.layers import Layer
    from fathom.config.settings import ResearchSettings
    from fathom.storage.store import ArtifactStore

MOST_COMPLETIONS = 50
_HOW = "docs/settings.md describes the settings"
Group = partial(typer.Typer, rich_markup_mode=None, no_args_is_help=True)
"""A group of commands; alone it prints its help."""


def known_runs(context: typer.Context, incomplete: str) -> list[tuple[str, str]]:
    """Return the ids of the newest stored runs that start with the incomplete word, each with its question."""

    from fathom.flows.runs.index import RunIndex

    try:
        found = asyncio.run(RunIndex(store_of(context.params.get("artifacts"))).read())
    except FathomError:  # a shell has no use for it
        return []
    digits = max(8, len(incomplete))
    ids = [(run.run_id[:digits], run.query) for run in sorted(found, key=lambda run: run.started, reverse=True)]
    return [(run_id, query) for run_id, query in ids if run_id.startswith(incomplete)][:MOST_COMPLETIONS]


def store_of(artifacts: str | None, *, patient: bool = False) -> ArtifactStore:
    """Return the store of --artifacts; a patient one waits while the storage does not answer, and says so on stderr."""
    from fathom.storage.atomic import OUTAGE_SECONDS
    from fathom.storage.store import ArtifactStore

    wait = OUTAGE_SECONDS if patient else 0.0
    return ArtifactStore(artifact_root(artifacts), wait, lambda said: typer.echo(said, err=True))


def _use_servers(file: str | None) -> str | None:

    if file:
        Environment.use_servers(file)
    return file


Mcp = Annotated[
    str | None,
    typer.Option(
        "--mcp", metavar="FILE", callback=_use_servers, help="JSON file of MCP servers for this process. [FATHOM_MCP]"
    ),
]
Run = Annotated[
    str,
    typer.Argument(help="Run: id or its first digits (at least 4), folder, or plan title.", autocompletion=known_runs),
]
Root = Annotated[
    str | None,
    typer.Option("--artifacts", metavar="URL", help="Where runs are stored: a folder or s3:// URL. [FATHOM_ARTIFACTS]"),
]
Json = Annotated[bool, typer.Option("--json", help="Print only JSON, without progress or notices.")]
Open = Annotated[bool, typer.Option("--open", help="Open the report's page in the browser.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Do not print progress or notices.")]


class _Option(NamedTuple):
    path: str  # of its setting; empty for --set
    section: str  # of the help
    parameter: Any  # as Typer has it


class SettingsCommand(TyperCommand):
    """A command with an option for every setting that declares one, and `--set` for all; its own options go first.

    `given_options` returns their values.
    """

    paths: Collection[str] = ()
    """The settings whose options it has, without `--set`; empty for all."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Return all parameters."""
        return [*super().get_params(ctx), *(option.parameter for option in self._settings())]

    def invoke(self, ctx: Any) -> Any:
        """Run the command."""
        typed = {option.path: ctx.params.pop(option.parameter.name) for option in self._settings()}
        pairs = typed.pop("", None)
        chosen = {path: value for path, value in typed.items() if value not in (None, False, [], ())}
        _given.set(GivenOptions(chosen, pairs or []))
        return super().invoke(ctx)

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the options of the command, then the options of settings by the sections of Prefect's form."""
        sections: dict[str, list[tuple[str, str]]] = {}
        named = {option.parameter.name: option.section for option in self._settings()}
        for parameter in self.get_params(ctx):
            if record := parameter.get_help_record(ctx):
                kind = "Arguments" if parameter.param_type_name == "argument" else "Options"
                sections.setdefault(named.get(parameter.name, kind), []).append(record)
        for title, records in sections.items():
            with formatter.section(title):
                formatter.write_dl(records)

    def _settings(self) -> list[_Option]:
        own = {text for parameter in self.params for text in parameter.opts}
        found = [option for option in _setting_options() if not self.paths or option.path in self.paths]
        return [option for option in found if own.isdisjoint(option.parameter.opts)]


class JudgeCommand(SettingsCommand):
    """A command that may ask a model: which, at what price, and for how much."""

    paths = ("model", "budget.max_usd", "prices")


@lru_cache(maxsize=1)
def _setting_options() -> list[_Option]:
    from inspect import Parameter, Signature

    from fathom.config.form import setting_of
    from fathom.config.settings import SETTINGS, ResearchSettings

    declared = {path: field for path, field in SETTINGS.items() if setting_of(field).option}
    made = {path: _parameter(setting_of(field).option, *_option_of(field)) for path, field in declared.items()}
    about = "Any setting in docs/settings.md, such as sources.min_quality=0.4; repeatable."
    made[""] = _parameter("--set", list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help=about))

    def settings(**_: object) -> None:
        """Stand for a command that has these options; Typer derives its own parameters from it."""

    settings.__dict__["__signature__"] = Signature(
        [Parameter(name, Parameter.KEYWORD_ONLY, default=None, annotation=kind) for name, kind in made.values()]
    )
    alone = typer.Typer(add_completion=False)
    alone.command()(settings)
    parameters = {parameter.name: parameter for parameter in typer.main.get_command(alone).params}
    tops = {path: ResearchSettings.model_fields[path.partition(".")[0]].title or "" for path in declared}
    sections = {path: title.partition(":")[0] for path, title in tops.items()}
    return [_Option(path, sections.get(path, "Any setting"), parameters[name]) for path, (name, _) in made.items()]


def _parameter(option: str, kind: Any, about: Any) -> tuple[str, Any]:
    return option.removeprefix("--").replace("-", "_"), Annotated[kind, about]


def _option_of(field: FieldInfo) -> tuple[Any, Any]:
    """Return the type and the description of the option of a setting."""
    from fathom.config.form import bounds_of, default_of, has, setting_of

    setting = setting_of(field)
    several = (has(field, list) or has(field, dict)) and not setting.value.endswith(",...")
    told = [
        _example(field, several=several),
        bounds_of(field),
        f"default: {setting.empty or default_of(field)}" if default_of(field) else "",
        "repeatable" if several else "",
    ]
    more = "; ".join(filter(None, told))
    text = f"{field.description}{f' ({more})' if more else ''}{f' [{setting.variable}]' if setting.variable else ''}"
    kind: Any = bool if has(field, bool) else list[str] | None if several else str | None
    return kind, typer.Option(setting.option, metavar=setting.value or None, help=text, show_default=False)


def _example(field: FieldInfo, *, several: bool) -> str:
    """Return the example of a setting that takes texts."""
    example = field.examples[0] if field.examples else None
    if isinstance(example, list):
        example = example[0] if several else ",".join(example)
    return f"for example {example}" if isinstance(example, str) else ""


@dataclass(frozen=True)
class GivenOptions:
    """The settings that a command line gives."""

    options: Mapping[str, str | bool | Sequence[str]]  # as they were typed, by the paths of their settings
    pairs: Sequence[str]  # of --set

    def layers(self) -> list[Layer]:
        """Return two layers of settings: from the options, then from --set.

        Raises:
            InvalidInput: a text cannot be read, or an option and --set contradict each other.
        """
        from shlex import quote

        from fathom.config.given import contradictory, from_option, pair_for, placed, read_settings
        from fathom.config.layers import Layer, template_from

        options = {path: from_option(path, typed) for path, typed in self.options.items()}
        by_set = read_settings(self.pairs)
        for values in (options, by_set):
            if isinstance(template := values.get("template"), str):
                values["template"] = template_from(template)
        by_option = [Layer(f"option {flag_of(path)}", placed({path: value})) for path, value in options.items()]
        for layer, own in zip(by_option, options, strict=True):
            if path := contradictory(layer.values, by_set):
                both = f"{flag_of(own)} and --set {quote(pair_for(path, self.pairs))}"
                raise InvalidInput(f"{both} contradict each other.", next_step="give only one of them")
        return [*by_option, Layer("--set", by_set)]

    def chosen(self, usual: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Return three layers of settings: options, --set and defaults. Raises the errors of `layers`."""
        from fathom.config.layers import given_in

        return given_in(self.layers(), usual)

    def over_defaults(self, usual: Mapping[str, Any] | None = None) -> ResearchSettings:
        """Return the given settings, over the settings file, over the defaults.

        Raises:
            InvalidInput: some cannot be used; the message quotes each as it was given.
        """
        from fathom.config.layers import given_in, layered

        return self.checked(given_in(layered(self.layers(), Environment.read()), usual))

    def checked(self, settings: Mapping[str, Any]) -> ResearchSettings:
        """Return settings that were chosen here, perhaps with others below them.

        Raises:
            InvalidInput: some cannot be used; the message has each as the command line gave it.
        """
        from fathom.config.given import settings_from

        try:
            return settings_from(settings)
        except InvalidInput as error:
            raise InvalidInput(" ".join(map(self._told, error.wrong)), next_step=_HOW) from None

    def _told(self, one: WrongValue) -> str:
        from shlex import quote

        from fathom.config.given import pair_for, path_of

        if (own := _above(one.path, self.options)) is not None:
            return _told_of_option(one, own)
        if not (pair := pair_for(one.path, self.pairs)):
            return one.told()
        if path_of(pair.partition("=")[0]) != one.path:  # a part of a table, or the table that contains it
            pair = one.path if one.value is None else f"{one.path}={one.value}"
        return one.told(f"--set {quote(pair)}")


_given: ContextVar[GivenOptions] = ContextVar("given")


def given_options() -> GivenOptions:
    """Return the options of settings that the command of the class `SettingsCommand` which runs was given."""
    return _given.get()


def worded(wrong: Sequence[WrongValue]) -> str:
    """Return the errors in values that came from options."""
    from fathom.config.settings import SETTINGS

    return " ".join(_told_of_option(one, _above(one.path, SETTINGS) or one.path) for one in wrong)


def _above(path: str, settings: Iterable[str]) -> str | None:
    """Return the first of some settings that has a path or contains it."""
    return next((own for own in settings if path == own or path.startswith(f"{own}.")), None)


def _told_of_option(one: WrongValue, setting: str) -> str:
    """Return the error in a value that came from the option of a setting, perhaps inside a table or list."""
    from shlex import quote

    inner = one.path[len(setting) + 1 :]
    name = inner if inner and not inner.isdecimal() else ""
    value = "" if one.value is None else quote(f"{name}={one.value}" if name else f"{one.value}")
    return one.told(f"{flag_of(setting)} {value or name}".strip())


def flag_of(path: str) -> str:
    """Return the option of a setting or of another parameter of a command."""
    from fathom.config.form import setting_of
    from fathom.config.settings import SETTINGS

    declared = setting_of(SETTINGS[path]).option if path in SETTINGS else ""
    return declared or f"--{path.replace('_', '-')}"

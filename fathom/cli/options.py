"""Arguments and options that several commands share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from fathom.config.settings import ResearchSettings
    from fathom.errors import WrongValue

MOST_COMPLETIONS = 50
_HOW = "docs/settings.md describes the settings"
_OPTIONS = {
    "corpora": "--corpus",
    "role_models": "--role-model",
    "fallback_models": "--fallback-model",
    "model_calls.seconds": "--model-seconds",
    "model_calls.at_once": "--model-at-once",
    "prices": "--price",
    "search_prices": "--search-price",
}
"""Options by the path of their setting, where they do not have the last word of it."""


def known_runs(context: typer.Context, incomplete: str) -> list[tuple[str, str]]:
    """Return the ids of the newest stored runs that begin like the word to complete, each with its question."""
    import asyncio

    from fathom.errors import FathomError
    from fathom.flows.preflight import artifact_root
    from fathom.flows.runs.index import RunIndex
    from fathom.storage.store import ArtifactStore

    try:
        found = asyncio.run(RunIndex(ArtifactStore(artifact_root(context.params.get("artifacts")))).read())
    except FathomError:  # a shell has no use for it
        return []
    digits = max(8, len(incomplete))
    ids = [(run.run_id[:digits], run.query) for run in sorted(found, key=lambda run: run.started, reverse=True)]
    return [(run_id, query) for run_id, query in ids if run_id.startswith(incomplete)][:MOST_COMPLETIONS]


def _use_servers(file: str | None) -> str | None:
    from fathom.config.environment import Environment

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
    typer.Argument(help="Run: id or its first digits, folder, or plan title.", autocompletion=known_runs),
]
Root = Annotated[
    str | None,
    typer.Option("--artifacts", metavar="URL", help="Where runs are stored: a folder or s3:// URL. [FATHOM_ARTIFACTS]"),
]
Corpora = Annotated[
    list[str] | None,
    typer.Option("--corpus", metavar="NAME", help="Uploaded corpus to read (see fathom corpora list); repeatable."),
]
Set = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="NAME=VALUE",
        help="Any setting in docs/settings.md, such as sources.min_quality=0.4; repeatable.",
    ),
]
Template = Annotated[
    str | None,
    typer.Option(metavar="NAME|FILE", help="Template for the kind of research (see fathom templates)."),
]
Json = Annotated[bool, typer.Option("--json", help="Print only JSON, without progress or notices.")]
Open = Annotated[bool, typer.Option("--open", help="Open the report's page in the browser.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Do not print progress or notices.")]


def chosen(
    options: Mapping[str, object], pairs: Sequence[str] | None, usual: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Return the settings that a command line chooses: options by path, then those of --set, then what is usual.

    Raises:
        InvalidInput: a pair is none, or an option and --set contradict each other.
    """
    from shlex import quote

    from fathom.config.given import contradictory, pair_for, read_settings
    from fathom.config.templates import merged
    from fathom.errors import InvalidInput
    from fathom.flows.preflight import template_from

    by_option, by_set = _by_option(options), read_settings(pairs or [])
    if path := contradictory(by_option, by_set):
        both = f"{_option(path)} and --set {quote(pair_for(path, pairs or []))}"
        raise InvalidInput(f"{both} contradict each other.", next_step="give only one of them")
    settings = merged(merged(usual or {}, by_set), by_option)
    if isinstance(template := settings.get("template"), str):
        settings["template"] = template_from(template)
    return settings


def checked(
    settings: Mapping[str, Any], options: Mapping[str, object], pairs: Sequence[str] | None
) -> ResearchSettings:
    """Return settings that options by path and the pairs of --set chose, perhaps with others below them.

    Raises:
        InvalidInput: some cannot be used; the message has each as the command line gave it.
    """
    from fathom.config.given import settings_from
    from fathom.errors import InvalidInput

    try:
        return settings_from(settings)
    except InvalidInput as error:
        by_option = _by_option(options)
        told = [_told(one) if _has(by_option, one.path) else _told_of_set(one, pairs or []) for one in error.wrong]
        raise InvalidInput(" ".join(told), next_step=_HOW) from None


def worded(wrong: Sequence[WrongValue]) -> str:
    """Return what is wrong with values that options gave."""
    return " ".join(map(_told, wrong))


def _told(one: WrongValue) -> str:
    from shlex import quote

    value = "" if one.value is None else f" {quote(str(one.value))}"
    return one.told(f"{_option(one.path)}{value}")


def _told_of_set(one: WrongValue, pairs: Sequence[str]) -> str:
    from shlex import quote

    from fathom.config.given import pair_for, path_of

    if not (pair := pair_for(one.path, pairs)):
        return one.told()
    if path_of(pair.partition("=")[0]) != one.path:  # it is a part of a table, or one that has it as a part
        pair = one.path if one.value is None else f"{one.path}={one.value}"
    return one.told(f"--set {quote(pair)}")


def _option(path: str) -> str:
    """Return the option that sets what has a path."""
    return _OPTIONS.get(path) or f"--{path.rpartition('.')[2].replace('_', '-')}"


def _has(settings: Any, path: str) -> bool:
    """Whether settings have a value at a path, or above it one that is no table."""
    for part in path.split("."):
        if not isinstance(settings, dict):
            return True
        if part not in settings:
            return False
        settings = settings[part]
    return True


def _by_option(options: Mapping[str, object]) -> dict[str, Any]:
    """Return the settings that options by path give, nested."""
    from fathom.config.given import placed

    return placed({path: _data(value) for path, value in options.items() if _is_given(value)})


def _is_given(value: object) -> bool:
    return not (value is None or value is False or value in ([], {}))


def _data(value: object) -> object:
    """Return models that stand by name as plain data, to be compared and brought together."""
    from pydantic import BaseModel

    if not isinstance(value, dict):
        return value
    return {
        str(name): one.model_dump(mode="json", exclude_unset=True) if isinstance(one, BaseModel) else one
        for name, one in value.items()
    }

"""The commands, as `fathom --help` lists them.

What a command needs is imported when it runs, so that `--help` answers at once and bad input is found without Prefect.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from copy import copy
from importlib.metadata import version
from itertools import chain
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from fathom.config.environment import Environment
from fathom.interfaces.cli.answer import answer, cancel, rate, stop, tell
from fathom.interfaces.cli.batch import batch
from fathom.interfaces.cli.corpora import corpora
from fathom.interfaces.cli.costs import costs
from fathom.interfaces.cli.doctor import deploy, doctor, templates
from fathom.interfaces.cli.exits import show_where
from fathom.interfaces.cli.export import delete, export, import_, prune
from fathom.interfaces.cli.limits import limits
from fathom.interfaces.cli.links import links
from fathom.interfaces.cli.notify import notify
from fathom.interfaces.cli.options import JudgeCommand, SettingsCommand
from fathom.interfaces.cli.research import ask, research, resume
from fathom.interfaces.cli.runs import audit, diff, library, replay, runs, show
from fathom.interfaces.cli.serve import mcp, metrics, serve, worker
from fathom.interfaces.cli.tokens import tokens
from fathom.interfaces.cli.verify import trace, verify
from fathom.interfaces.cli.watches import watch

SECTIONS: dict[str, tuple[Callable[..., None] | typer.Typer, ...]] = {
    "Ask": (research, ask, batch, watch, templates),
    "Steer a run": (answer, tell, stop, cancel, resume),
    "Read and check": (runs, library, show, rate, verify, trace, diff, audit, replay),
    "Keep, share and delete": (export, import_, delete, prune, corpora),
    "Operate": (serve, mcp, worker, deploy, notify, costs, metrics, limits, links, tokens, doctor),
}
"""The commands below the headings of `fathom --help`."""


class _Sections(TyperGroup):
    """The commands, listed below their headings."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names of the commands that were made, in the order of the sections."""
        return [name for name in map(_name, chain.from_iterable(SECTIONS.values())) if name in self.commands]

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the name and the first line of each command."""
        width = max(map(len, self.commands))
        for title, commands in SECTIONS.items():
            with formatter.section(title):
                told = {name: self.commands[name].get_short_help_str(formatter.width) for name in map(_name, commands)}
                formatter.write_dl([(f"{name:{width}}", about) for name, about in told.items()])


def _name(command: Callable[..., None] | typer.Typer) -> str:
    return str(command.info.name) if isinstance(command, typer.Typer) else command.__name__.rstrip("_")


app = typer.Typer(
    cls=_Sections,
    help="Turn a question into a cited report that you can check.\n\n"
    'Start with: fathom research "How does Python look up an attribute on an instance?"',
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
WITH_SETTINGS = (research, ask, batch, doctor)
for command in chain.from_iterable(SECTIONS.values()):
    if isinstance(command, typer.Typer):
        app.add_typer(command, name=_name(command))
    else:
        kind = SettingsCommand if command in WITH_SETTINGS else JudgeCommand if command is verify else None
        app.command(_name(command), cls=kind)(command)


def with_command(name: str) -> typer.Typer:
    """Return the application with the command of that name alone, as the options of all take 30 ms to make.

    With all commands, if it has none of that name: it says so, or lists them.
    """
    commands = [one for one in app.registered_commands if one.name == name]
    groups = [one for one in app.registered_groups if one.name == name]
    if not commands and not groups:
        return app
    alone = copy(app)
    alone.registered_commands, alone.registered_groups = commands, groups
    return alone


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"fathom {version('fathom-research')}")
        raise typer.Exit


@app.callback()
def _options(
    show_version: Annotated[
        bool, typer.Option("--version", help="Print the version and exit.", callback=_version, is_eager=True)
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Print a traceback if an unexpected error occurs.")] = False,
) -> None:
    if debug:
        sys.excepthook = show_where
    if (environment := Environment.read()).log:
        from fathom.telemetry.logs import start_logs

        start_logs(environment)

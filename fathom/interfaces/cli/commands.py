"""The commands, in the order in which `fathom --help` lists them.

What a command needs is imported when it runs, so that `--help` answers at once and bad input is found without Prefect.
"""

from __future__ import annotations

import sys
from copy import copy
from importlib.metadata import version
from typing import Annotated

import typer

from fathom.config.environment import Environment
from fathom.interfaces.cli.answer import answer, rate, stop, tell
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

app = typer.Typer(
    help="Turn a question into a cited report that you can check.\n\n"
    'Start with: fathom research "How does Python look up an attribute on an instance?"',
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


COMMANDS = (
    *(research, ask, templates, batch, resume, answer, tell, stop),
    *(runs, library, show, rate, verify, trace, diff, audit, replay, export, import_, delete, prune),
    *(serve, mcp, worker, deploy, costs, metrics, doctor),
)
WITH_SETTINGS = (research, ask, batch, doctor)
for command in COMMANDS:
    kind = SettingsCommand if command in WITH_SETTINGS else JudgeCommand if command is verify else None
    app.command(command.__name__.rstrip("_"), cls=kind)(command)
GROUPS = {"watch": watch, "corpora": corpora, "notify": notify, "limits": limits, "links": links, "tokens": tokens}
for name, group in GROUPS.items():
    app.add_typer(group, name=name)


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

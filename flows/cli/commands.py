"""The commands, in the order in which `fathom --help` lists them.

What a command needs is imported when it runs, so that `--help` answers at once and bad input is found without Prefect.
"""

from __future__ import annotations

import sys
from importlib.metadata import version
from typing import Annotated

import typer

from fathom.config.environment import Environment
from flows.cli.answer import answer
from flows.cli.ask import ask
from flows.cli.audit import audit
from flows.cli.batch import batch
from flows.cli.corpora import corpora
from flows.cli.costs import costs
from flows.cli.diff import diff
from flows.cli.doctor import doctor
from flows.cli.exits import show_where
from flows.cli.export import export, import_
from flows.cli.limits import limits
from flows.cli.mcp import mcp
from flows.cli.metrics import metrics
from flows.cli.notify import notify
from flows.cli.prune import prune
from flows.cli.replay import replay
from flows.cli.research import research, resume
from flows.cli.runs import runs, show
from flows.cli.serve import serve
from flows.cli.steer import stop, tell
from flows.cli.templates import templates
from flows.cli.tokens import tokens
from flows.cli.verify import trace, verify
from flows.cli.watches import watch
from flows.cli.worker import worker

app = typer.Typer(
    help="Turn a question into a cited report that can be checked.\n\n"
    'Start with: fathom research "How does Python look up an attribute on an instance?"',
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


COMMANDS = (
    *(research, ask, templates, batch, resume, answer, tell, stop),
    *(runs, show, verify, trace, diff, audit, replay, export, import_, prune),
    *(serve, mcp, worker, costs, metrics, doctor),
)
for command in COMMANDS:
    app.command(command.__name__.rstrip("_"))(command)
for name, group in (("watch", watch), ("corpora", corpora), ("notify", notify), ("limits", limits), ("tokens", tokens)):
    app.add_typer(group, name=name)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"fathom {version('fathom-research')}")
        raise typer.Exit


@app.callback()
def _options(
    show_version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_version, is_eager=True)
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Print a traceback for an unexpected error.")] = False,
) -> None:
    if debug:
        sys.excepthook = show_where
    if (environment := Environment.read()).log:
        from fathom.telemetry.json_logs import start_logs

        start_logs(environment)

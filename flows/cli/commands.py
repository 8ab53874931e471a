"""The commands, in the order in which `fathom --help` lists them.

What a command needs is imported when it runs, so that `--help` answers at once and bad input is found without Prefect.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.metadata import version
from typing import TYPE_CHECKING, Annotated

import typer

from flows.cli.audit import audit
from flows.cli.exits import show_where
from flows.cli.export import export
from flows.cli.options import Json
from flows.cli.printing import line, output
from flows.cli.replay import replay
from flows.cli.research import research, resume
from flows.cli.runs import runs, show
from flows.cli.verify import trace, verify

if TYPE_CHECKING:
    from flows.cli.doctor import Finding

app = typer.Typer(
    help="Turn a question into a cited report that can be checked.\n\n"
    'Start with: fathom research "How does Python look up an attribute on an instance?"',
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def doctor(as_json: Json = False) -> None:
    """Check what is configured and what can be reached.

    Says how to set what is missing. Exits with 1 if something is broken that a run without options needs.

    Example: fathom doctor
    """
    from flows.cli.doctor import examine

    findings = list(examine())
    output(findings, _show_findings, as_json=as_json)
    raise typer.Exit(1 if any(finding.state == "broken" for finding in findings) else 0)


def _show_findings(findings: Sequence[Finding]) -> None:
    for finding in findings:
        style = {"ok": "green", "off": "yellow", "broken": "red"}[finding.state]
        line((f"{finding.state:<7}", style), f"{finding.name:<13}{finding.detail}")
        if finding.how:
            line((f"{'':20}{finding.how}", "dim"))


for command in (research, resume, runs, show, verify, trace, audit, replay, export, doctor):
    app.command()(command)


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

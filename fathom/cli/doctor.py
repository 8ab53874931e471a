"""`fathom doctor`: what is configured, what can be reached, and how to set what is missing."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from fathom.cli.options import Given, Json, Mcp
from fathom.cli.printing import output, row

if TYPE_CHECKING:
    from fathom.flows.findings import Finding


def doctor(
    context: typer.Context,
    *,
    model: Annotated[
        str | None, typer.Option(metavar="MODEL", help="Send this model one question and show what it can do.")
    ] = None,
    online: Annotated[
        bool,
        typer.Option(
            "--online", help="Send one query to every configured search vendor and source; vendors charge for it."
        ),
    ] = False,
    mcp: Mcp = None,
    as_json: Json = False,
) -> None:
    """Check what is configured and what can be reached.

    Also says how to configure what is missing, and where each setting that is not the default comes from. Exits with 1
    if something that a run needs is broken. With --model, one request shows whether the model answers in JSON, its
    speed, its context window and its price. With --online, one query to each search vendor and source shows whether
    they answer; vendors charge for it. With other options, it says what a run with them would use.

    Example: fathom doctor --model ollama_chat/qwen3
    """
    from fathom.config.environment import Environment
    from fathom.flows.diagnosis import examine
    from fathom.flows.reaching import reach

    logging.disable(logging.WARNING)  # what is tried again is no finding
    if model and not as_json:
        typer.echo(f"Asking {model} one question ...", err=True)
    given = Given.of(context)
    if model:
        given = Given({**given.options, "model": model}, given.pairs)
    findings = list(examine(model, given.layers()))
    if online:
        findings += asyncio.run(reach(Environment.read()))
    output(findings, _show_findings, as_json=as_json)
    raise typer.Exit(1 if any(finding.state == "broken" for finding in findings) else 0)


def _show_findings(findings: Sequence[Finding]) -> None:
    width = max(13, *(len(finding.name) + 1 for finding in findings))
    for finding in findings:
        style = {"ok": "green", "off": "yellow", "broken": "red"}[finding.state]
        row(Text.assemble((f"{finding.state:<7}", style), f"{finding.name:<{width}}"), finding.detail)
        if finding.how:
            row(" " * (7 + width), (finding.how, "dim"))

"""`fathom doctor`, `deploy` and `templates`: checking the setup, registering deployments, listing templates."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from fathom.config.environment import Environment
from fathom.interfaces.cli.options import GivenOptions, Json, Mcp, given_options
from fathom.interfaces.cli.printing import line, output, row

if TYPE_CHECKING:
    from fathom.client.resources import Condition
    from fathom.config.templates import UsedTemplate


def doctor(
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

    The command also says how to configure what is missing, and where each setting that is not the default comes from.
    It exits with 1 if something that a run needs is broken. With --model, one request shows whether the model answers
    in JSON, its speed, its context window and its price. With --online, one query to each search vendor and source
    shows whether they answer; vendors charge for it. With other options, it says what a run with them would use.

    Example: fathom doctor --model ollama_chat/qwen3
    """
    from fathom.flows.operations.diagnosis import examine, reach

    logging.disable(logging.WARNING)  # retries are not findings
    if model and not as_json:
        typer.echo(f"Asking {model} one question ...", err=True)
    given = given_options()
    if model:
        given = GivenOptions({**given.options, "model": model}, given.pairs)
    findings = list(examine(model, given.layers()))
    if online:
        findings += asyncio.run(reach(Environment.read()))
    output(findings, _show_findings, as_json=as_json)
    raise typer.Exit(1 if any(finding.state == "broken" for finding in findings) else 0)


def _show_findings(findings: Sequence[Condition]) -> None:
    width = max(13, *(len(finding.name) + 1 for finding in findings))
    for finding in findings:
        style = {"ok": "green", "off": "yellow", "broken": "red"}[finding.state]
        row(Text.assemble((f"{finding.state:<7}", style), f"{finding.name:<{width}}"), finding.detail)
        if finding.how:
            row(" " * (7 + width), (finding.how, "dim"))


def deploy(
    *,
    pool: Annotated[str, typer.Option(metavar="NAME", help="Work pool whose workers run the deployments.")] = "fathom",
    as_json: Json = False,
) -> None:
    """Register Fathom's deployments on the Prefect server.

    Runs can then be started and scheduled there.

    Deployments of an earlier version are replaced. Schedules are paused until you resume them in the UI or with
    `prefect deployment schedule resume`. Start a worker to run the deployments: fathom worker --pool NAME

    The command prints the line that sets PREFECT_API_URL, which Prefect's own commands need.

    Example: fathom deploy --pool research
    """

    from fathom.flows.server import ensure_api

    server = ensure_api()
    from fathom.flows.execution.deploying import deploy_shipped

    made = asyncio.run(deploy_shipped(pool))

    def show(_: object) -> None:
        for name, description in made.items():
            line(f"{name:<26} {description}")
        line(f"Start a worker that runs them: fathom worker --pool {pool}")
        line(f"For Prefect's own commands: export PREFECT_API_URL={server.api_url}")

    output(made, show, as_json=as_json)


def templates(
    name: Annotated[
        str | None, typer.Argument(metavar="[NAME|FILE]", help="Template to print.", show_default=False)
    ] = None,
    *,
    as_json: Json = False,
) -> None:
    """List the templates for --template, or print one.

    A template defines a kind of research: its settings, the questions it must answer, the sources it prefers and the
    sections of its report. To make your own, print one to a file, edit it, and pass the file to --template.

    Example: fathom templates due-diligence > own.toml
    """
    from fathom.config.layers import template_from
    from fathom.config.templates import shipped, template_of, text_of

    if name is None:
        output([template_of(one) for one in shipped()], _show, as_json=as_json)
        return
    given = template_from(name)
    text = text_of(given) if given in shipped() else given
    output(template_of(given), lambda _: typer.echo(text, nl=False), as_json=as_json)


def _show(found: Sequence[UsedTemplate]) -> None:
    width = max(len(one.name) for one in found)
    for one in found:
        line((f"{one.name:<{width}}", "bold"), f"  {one.description}")
    line(("\nfathom templates NAME prints one; --template NAME or FILE uses it", "dim"))

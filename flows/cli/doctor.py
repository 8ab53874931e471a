"""`fathom doctor`: what is configured, what can be reached, and how to set what is missing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import typer

from flows.cli.options import Json
from flows.cli.printing import line, output

if TYPE_CHECKING:
    from flows.diagnosis import Finding


def doctor(as_json: Json = False) -> None:
    """Check what is configured and what can be reached.

    Says how to set what is missing. Exits with 1 if something is broken that a run without options needs.

    Example: fathom doctor
    """
    from flows.diagnosis import examine

    findings = list(examine())
    output(findings, _show_findings, as_json=as_json)
    raise typer.Exit(1 if any(finding.state == "broken" for finding in findings) else 0)


def _show_findings(findings: Sequence[Finding]) -> None:
    for finding in findings:
        style = {"ok": "green", "off": "yellow", "broken": "red"}[finding.state]
        line((f"{finding.state:<7}", style), f"{finding.name:<13}{finding.detail}")
        if finding.how:
            line((f"{'':20}{finding.how}", "dim"))

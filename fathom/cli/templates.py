"""`fathom templates`: what kinds of research there are templates for, and the file of each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from fathom.cli.options import Json
from fathom.cli.printing import line, output

if TYPE_CHECKING:
    from fathom.config.templates import UsedTemplate


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

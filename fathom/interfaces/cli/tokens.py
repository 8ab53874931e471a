"""`fathom tokens`: managing who may use a server."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fathom.errors import InvalidInput
from fathom.interfaces.cli.options import Group, Json, Root, store_of
from fathom.interfaces.cli.printing import dollars, line, output

if TYPE_CHECKING:
    from fathom.service.caller import AccessRole
    from fathom.service.tokens import Token, Tokens

tokens = Group(
    name="tokens", help="Manage who may use fathom serve.\n\nExample: fathom tokens add ann --role asker --days 90"
)
Name = Annotated[str, typer.Argument(help="Name of the user, who owns the runs started with the token.")]


@tokens.command()
def add(
    name: Name,
    *,
    role: Annotated[
        str,
        typer.Option(
            metavar="ROLE",
            help="reader: reads shared runs. asker: also asks questions. admin: may do everything, with all runs.",
        ),
    ] = "asker",
    days: Annotated[
        float | None,
        typer.Option(metavar="N", min=0.001, max=36_500, help="Days until the token expires (default: never)."),
    ] = None,
    daily_usd: Annotated[
        float | None, typer.Option(metavar="USD", min=0, help="Maximum cost of the runs per day (default: $5 per run).")
    ] = None,
    runs_per_day: Annotated[
        int | None, typer.Option(metavar="N", min=0, help="Maximum number of runs per day (default: no limit).")
    ] = None,
    requests_per_minute: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Maximum requests per minute on each server (default: 600).")
    ] = None,
    artifacts: Root = None,
    as_json: Json = False,
) -> None:
    """Create a token and print it. It is not shown again.

    Example: fathom tokens add ann --role asker --days 90 --daily-usd 10
    """

    from fathom.service.caller import TokenLimits

    limits = TokenLimits(requests_per_minute, runs_per_day, daily_usd)
    token, text = asyncio.run(_tokens(artifacts).add(name, role_of("--role", role), limits, days))

    def show(_found: object) -> None:
        line(text)
        line(f"Token of {name}, role {token.role.value}. It cannot be shown again.")

    output({**_shown(token), "token": text}, show, as_json=as_json)


@tokens.command("list")
def list_(artifacts: Root = None, as_json: Json = False) -> None:
    """List all tokens, including tokens that are no longer valid.

    Example: fathom tokens list
    """

    found = asyncio.run(_tokens(artifacts).list())
    output([_shown(token) for token in found], lambda _found: _show(found), as_json=as_json)


@tokens.command()
def revoke(name: Name, artifacts: Root = None, as_json: Json = False) -> None:
    """Revoke a token and end the sessions that were started with it.

    Example: fathom tokens revoke ann
    """

    token = asyncio.run(_tokens(artifacts).revoke(name))
    output(_shown(token), lambda _found: line(f"Revoked the token of {name}."), as_json=as_json)


def role_of(option: str, text: str) -> AccessRole:
    """Return the role that an option names.

    Raises:
        InvalidInput: there is none.
    """
    from fathom.service.caller import AccessRole

    try:
        return AccessRole(text)
    except ValueError:
        raise InvalidInput(f"{option} {text!r} is not a role.", next_step=f"use {', '.join(AccessRole)}") from None


def _tokens(artifacts: str | None) -> Tokens:
    from fathom.service.tokens import Tokens

    return Tokens(store_of(artifacts))


def _shown(token: Token) -> dict[str, Any]:
    return {**token.model_dump(mode="json", exclude={"sha256"}), "state": token.state}


def _show(found: Sequence[Token]) -> None:
    if not found:
        line("No tokens. Create one with: fathom tokens add NAME")
        return
    width = max(len("name"), *(len(token.name) for token in found))
    line((f"{'name':{width}}  {'role':<6}  {'state':<7}  {'expires':<10}  {'runs/day':>8}  {'$/day':>8}", "bold"))
    for token in found:
        usd = "" if token.daily_usd is None else dollars(token.daily_usd)
        runs = "" if token.runs_per_day is None else str(token.runs_per_day)
        expires = (token.expires or "")[:10]
        line(f"{token.name:{width}}  {token.role.value:<6}  {token.state:<7}  {expires:<10}  {runs:>8}  {usd:>8}")

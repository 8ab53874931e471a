"""`fathom limits`: request rates and concurrency per provider, over all workers."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from fathom.errors import InvalidInput
from fathom.interfaces.cli.options import Group, Json
from fathom.interfaces.cli.printing import line, output

if TYPE_CHECKING:
    from fathom.tasks.limits import ProviderLimit

limits = Group(
    name="limits",
    help="Limit the requests of all workers to a provider.\n\nExample: fathom limits set openai --per-minute 500",
)
Provider = Annotated[
    str,
    typer.Argument(help="Provider: the part of a model name before the slash, such as openai, or a search service."),
]


@limits.command("set")
def set_(
    provider: Provider,
    *,
    per_minute: Annotated[int | None, typer.Option(metavar="N", min=1, help="Maximum requests per minute.")] = None,
    at_once: Annotated[int | None, typer.Option(metavar="N", min=1, help="Maximum concurrent requests.")] = None,
    as_json: Json = False,
) -> None:
    """Set the limits of a provider.

    The limits are global concurrency limits on the Prefect server and appear in its UI. They apply to runs that start
    after this command, in addition to the limits of each run (--model-at-once).

    Example: fathom limits set openai --per-minute 500 --at-once 20
    """

    from fathom.flows.server import ensure_api

    if per_minute is None and at_once is None:
        raise InvalidInput("No limit was given.", next_step="give --per-minute, --at-once or both")
    provider = _checked(provider)
    ensure_api()
    from fathom.tasks.limits import ProviderLimit, read_limits, set_limit

    async def work() -> list[ProviderLimit]:
        await set_limit(ProviderLimit(provider=provider, per_minute=per_minute, at_once=at_once))
        return await read_limits()

    output(asyncio.run(work()), _show, as_json=as_json)


@limits.command("list")
def list_(*, as_json: Json = False) -> None:
    """List the limits that are set.

    Example: fathom limits list
    """

    from fathom.flows.server import ensure_api

    ensure_api()
    from fathom.tasks.limits import read_limits

    output(asyncio.run(read_limits()), _show, as_json=as_json)


@limits.command()
def remove(provider: Provider) -> None:
    """Remove the limits of a provider.

    Example: fathom limits remove openai
    """

    from fathom.flows.server import ensure_api

    provider = _checked(provider)
    ensure_api()
    from fathom.tasks.limits import remove_limits

    if not asyncio.run(remove_limits(provider)):
        raise InvalidInput(f"No limit is set for {provider!r}.", next_step="fathom limits list")
    line(f"Removed the limits of {provider}.")


def _checked(provider: str) -> str:
    """Return the name of a provider as it is spelled in model names and search services."""
    import re

    name = provider.strip().rstrip("/").lower()
    if not re.fullmatch(r"[a-z0-9_.-]{1,60}", name):
        raise InvalidInput(f"{provider!r} is not the name of a provider.", next_step="for example openai or tavily")
    return name


def _show(found: Sequence[ProviderLimit]) -> None:
    if not found:
        line("No limits are set.")
        return
    width = max(len("provider"), *(len(limit.provider) for limit in found))
    line((f"{'provider':{width}}  {'per minute':>10}  {'at once':>7}", "bold"))
    for limit in found:
        line(f"{limit.provider:{width}}  {limit.per_minute or '':>10}  {limit.at_once or '':>7}")

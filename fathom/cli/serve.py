"""`fathom serve`: a page to ask on, an API, and the protocols that clients already speak."""

from __future__ import annotations

from typing import Annotated

import typer

from fathom.cli.exits import logged
from fathom.cli.options import Root

_NO_NAMES: list[str] = []


def serve(
    *,
    host: Annotated[str, typer.Option(metavar="ADDRESS", help="Address to listen on; 0.0.0.0 for all.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(metavar="N", min=0, max=65_535, help="Port; 0 for one that is free.")] = 8700,
    pool: Annotated[
        str, typer.Option(metavar="NAME", help="Work pool whose workers do the research; by default, processes here.")
    ] = "",
    at_once: Annotated[int, typer.Option(metavar="N", min=1, max=64, help="Most runs at once without --pool.")] = 2,
    sign_in: Annotated[bool, typer.Option("--sign-in", help="Ask for a token on this machine, too.")] = False,
    host_name: Annotated[
        list[str], typer.Option(metavar="NAME", help="Name by which others reach this server; may be repeated.")
    ] = _NO_NAMES,
    origin: Annotated[
        list[str], typer.Option(metavar="URL", help="Site whose pages may use the API; may be repeated.")
    ] = _NO_NAMES,
    user_header: Annotated[str, typer.Option(metavar="NAME", help="Header in which a proxy names the user.")] = "",
    trusted_proxy: Annotated[
        list[str], typer.Option(metavar="ADDRESS", help="Proxy that is believed, beside this machine; may be repeated.")
    ] = _NO_NAMES,
    proxy_role: Annotated[
        str, typer.Option(metavar="ROLE", help="Role of users that the proxy names: reader, asker or admin.")
    ] = "asker",
    allow_model: Annotated[
        list[str],
        typer.Option(metavar="NAME", help="Model that everybody may choose, besides FATHOM_MODEL; may be repeated."),
    ] = _NO_NAMES,
    artifacts: Root = None,
) -> None:
    """Serve a page to ask on, and an API for programs.

    At the address that it prints: the page; the API at /api/v1; OpenAI's protocol at /v1; MCP at /mcp.

    On 127.0.0.1 nobody signs in, elsewhere everybody: make a token first with fathom tokens add NAME.
    Ctrl-C or SIGTERM stops it: what it works on goes on when it is started again, and repeats no finished call.

    Example: fathom serve --at-once 4
    """
    import asyncio

    from fathom.cli.tokens import role_of
    from fathom.flows.preflight import artifact_root
    from fathom.serve.access.reach import check_reach
    from fathom.serve.options import Options

    options = Options(
        artifact_root(artifacts),
        host,
        port,
        pool,
        at_once,
        hosts=tuple(host_name),
        origins=tuple(name.rstrip("/") for name in origin),
        sign_in=sign_in,
        user_header=user_header,
        trusted_proxies=tuple(trusted_proxy),
        proxy_role=role_of("--proxy-role", proxy_role),
        models=tuple(allow_model),
    )
    asyncio.run(check_reach(options))
    from fathom.flows.server import be_patient, ensure_api
    from fathom.serve.listening import listen

    with listen(options) as listener:
        be_patient()
        ensure_api(_say)
        from fathom.serve.running import serve as run

        asyncio.run(run(options, listener, _say))


def _say(line: str) -> None:
    if not logged(line):
        typer.echo(line, err=True)

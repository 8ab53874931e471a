"""`fathom serve`: a page to ask on, an API, and the protocols that clients already speak."""

from __future__ import annotations

from typing import Annotated

import typer

from fathom.cli.exits import logged
from fathom.cli.options import Root

_NO_NAMES: list[str] = []


def serve(
    *,
    host: Annotated[
        str, typer.Option(metavar="ADDRESS", help="Address to listen on; 0.0.0.0 for all interfaces.")
    ] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(metavar="N", min=0, max=65_535, help="Port to listen on; 0 for any free port.")
    ] = 8700,
    pool: Annotated[
        str, typer.Option(metavar="NAME", help="Work pool whose workers do the research (default: local processes).")
    ] = "",
    at_once: Annotated[
        int, typer.Option(metavar="N", min=1, max=64, help="Maximum concurrent runs without --pool.")
    ] = 2,
    sign_in: Annotated[bool, typer.Option("--sign-in", help="Require a token on this machine, too.")] = False,
    host_name: Annotated[
        list[str], typer.Option(metavar="NAME", help="Host name under which others reach this server; repeatable.")
    ] = _NO_NAMES,
    origin: Annotated[
        list[str], typer.Option(metavar="URL", help="Website whose pages may use the API; repeatable.")
    ] = _NO_NAMES,
    user_header: Annotated[
        str, typer.Option(metavar="NAME", help="HTTP header in which a trusted proxy names the user.")
    ] = "",
    trusted_proxy: Annotated[
        list[str],
        typer.Option(metavar="ADDRESS", help="Address of a trusted proxy, in addition to this machine; repeatable."),
    ] = _NO_NAMES,
    proxy_role: Annotated[
        str, typer.Option(metavar="ROLE", help="Role of users named by the proxy: reader, asker or admin.")
    ] = "asker",
    allow_model: Annotated[
        list[str],
        typer.Option(metavar="NAME", help="Model that everyone may choose, in addition to FATHOM_MODEL; repeatable."),
    ] = _NO_NAMES,
    artifacts: Root = None,
) -> None:
    """Serve a web page for asking questions, and an API for programs.

    The command prints the address of the page. The API is at /api/v1 below it, OpenAI's protocol at /v1, MCP at /mcp.

    On 127.0.0.1, users need not sign in; on any other address they must: first create a token with fathom tokens add
    NAME. Ctrl-C or SIGTERM stops the server. When it is started again, unfinished runs continue, and no finished call
    is repeated.

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

"""`fathom serve`: a page to ask on, an API, and the protocols that clients already speak."""

from __future__ import annotations

from typing import Annotated

import typer

from flows.cli.exits import logged
from flows.cli.options import Root


def serve(
    *,
    host: Annotated[str, typer.Option(metavar="ADDRESS", help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(metavar="N", min=0, max=65_535, help="Port; 0 for one that is free.")] = 8700,
    pool: Annotated[
        str, typer.Option(metavar="NAME", help="Work pool whose workers do the research; by default, processes here.")
    ] = "",
    at_once: Annotated[int, typer.Option(metavar="N", min=1, max=64, help="Most runs at once without --pool.")] = 2,
    artifacts: Root = None,
) -> None:
    """Serve a page to ask on, and an API.

    Ctrl-C or SIGTERM stops it: what it works on goes on when it is started again, and repeats no finished call.

    Example: fathom serve --at-once 4
    """
    import asyncio

    from flows.preflight import artifact_root
    from flows.server import be_patient, ensure_api
    from serve.listening import check_reachable, listen
    from serve.options import Options

    options = Options(artifact_root(artifacts), host, port, pool, at_once)
    check_reachable(options)
    with listen(options) as listener:
        be_patient()
        ensure_api(_say)
        from serve.running import serve as run

        asyncio.run(run(options, listener, _say))


def _say(line: str) -> None:
    if not logged(line):
        typer.echo(line, err=True)

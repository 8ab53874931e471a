"""`fathom serve`, `worker`, `mcp` and `metrics`: long-running processes."""

from __future__ import annotations

import asyncio
import math
import os
import sys
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from fathom.config.environment import artifact_root, installing
from fathom.errors import InvalidInput, ServerUnreachable
from fathom.interfaces.cli.exits import loading, logged
from fathom.interfaces.cli.options import Root, store_of
from fathom.text.plain import counted

_NO_NAMES: list[str] = []
_Pool = Annotated[
    str, typer.Option(metavar="NAME", help="Work pool whose workers do the research (default: local processes).")
]
_AtOnce = Annotated[int, typer.Option(metavar="N", min=1, max=64, help="Maximum concurrent runs without --pool.")]


def serve(
    *,
    host: Annotated[
        str, typer.Option(metavar="ADDRESS", help="Address to listen on; 0.0.0.0 for all interfaces.")
    ] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(metavar="N", min=0, max=65_535, help="Port to listen on; 0 for any free port.")
    ] = 8700,
    docs: Annotated[
        list[str],
        typer.Option(
            metavar="PATH", help="File or folder that questions search if they name no documents; repeatable."
        ),
    ] = _NO_NAMES,
    pool: _Pool = "",
    at_once: _AtOnce = 2,
    queue: Annotated[
        int, typer.Option(metavar="N", min=1, help="Maximum number of runs that wait; further questions are refused.")
    ] = 100,
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
    proxy_daily_usd: Annotated[
        float | None,
        typer.Option(
            metavar="USD", min=0, help="Maximum cost per day for each user named by the proxy (default: $5 per run)."
        ),
    ] = None,
    proxy_runs_per_day: Annotated[
        int | None,
        typer.Option(metavar="N", min=0, help="Maximum number of runs per day for each of them (default: no limit)."),
    ] = None,
    proxy_requests_per_minute: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="Maximum requests per minute for each of them (default: 600)."),
    ] = None,
    public_links: Annotated[
        bool, typer.Option(help="Let owners of runs make links with which anyone can read a report without signing in.")
    ] = True,
    allow_model: Annotated[
        list[str],
        typer.Option(metavar="NAME", help="Model that everyone may choose, in addition to FATHOM_MODEL; repeatable."),
    ] = _NO_NAMES,
    watch_every: Annotated[
        str,
        typer.Option(
            metavar="TIME", help="Least time between two runs of a watch; administrators' watches have no limit."
        ),
    ] = "15m",
    watches: Annotated[
        int, typer.Option(metavar="N", min=0, help="Maximum number of watches of one user who is no administrator.")
    ] = 20,
    artifacts: Root = None,
) -> None:
    """Serve a web page for asking questions, and an API for programs.

    The command prints the address of the page. The API is at /api/v1 below it, OpenAI's protocol at /v1, MCP at /mcp.

    On 127.0.0.1, users need not sign in; on any other address they must: first create a token with fathom tokens add
    NAME. Ctrl-C or SIGTERM stops the server. When it is started again, unfinished runs continue, and no finished call
    is repeated.

    Example: fathom serve --docs notes/
    """

    from fathom.config.inputs import period
    from fathom.interfaces.cli.tokens import role_of
    from fathom.interfaces.starting import Starting
    from fathom.service.caller import TokenLimits
    from fathom.service.options import Options, listen
    from fathom.service.tokens import check_reach
    from fathom.tools.documents.corpus import check_documents

    options = Options(
        artifact_root(artifacts),
        host,
        port,
        tuple(str(Path(path).expanduser().resolve()) for path in docs),
        pool,
        at_once,
        queue,
        hosts=tuple(host_name),
        origins=tuple(name.rstrip("/") for name in origin),
        sign_in=sign_in,
        user_header=user_header,
        trusted_proxies=tuple(trusted_proxy),
        proxy_role=role_of("--proxy-role", proxy_role),
        proxy_limits=TokenLimits(proxy_requests_per_minute, proxy_runs_per_day, proxy_daily_usd),
        public_links=public_links,
        models=tuple(allow_model),
        watch_every=period(watch_every, "--watch-every"),
        watches=watches,
    )
    check_documents(options.docs)
    asyncio.run(check_reach(options))
    from fathom.flows.server import be_patient, ensure_api

    with listen(options) as listener, Starting(listener) as starting:
        be_patient()
        ensure_api(_say)
        with loading():
            from fathom.interfaces.server import serve as run

        asyncio.run(run(options, listener, starting, _say))


def _say(line: str) -> None:
    if not logged(line):
        typer.echo(line, err=True)


def worker(
    *,
    pool: Annotated[str, typer.Option(metavar="NAME", help="Work pool to take runs from.")] = "fathom",
    limit: Annotated[int, typer.Option(metavar="N", min=1, max=200, help="Maximum concurrent runs.")] = 8,
    name: Annotated[str, typer.Option(metavar="NAME", help="Name of this worker in the Prefect UI.")] = "",
    drain_seconds: Annotated[
        float, typer.Option(metavar="S", min=0, help="Seconds to wait for runs in progress when the worker is stopped.")
    ] = 60,
    idle_seconds: Annotated[
        float, typer.Option(metavar="S", min=0, help="Stop after this many seconds without a run; 0: never.")
    ] = 0,
    attached: Annotated[
        bool, typer.Option(hidden=True, help="A line on stdin wakes it; once stdin is closed, it ends when idle.")
    ] = False,
) -> None:
    """Run the scheduled runs of a work pool, many in one process.

    `prefect worker start` gives each run its own process, which takes 3 to 4 seconds of processor time to start; both
    kinds of workers can serve the same pool. Ctrl-C or SIGTERM stops the worker: no new run starts, runs in progress
    get time to finish, and unfinished runs are then scheduled again for other workers. A second Ctrl-C stops it at
    once.

    The worker's environment must contain the keys of providers and FATHOM_ARTIFACTS.

    Example: fathom worker --limit 16
    """
    from fathom.flows.server import be_patient, ensure_api

    be_patient()
    ensure_api(_say_of_worker)
    with loading():
        from fathom.flows.execution.worker import Worker, attach, serve_until_stopped

    worker = Worker(pool, limit, name, _say_of_worker, drain_seconds, idle_seconds=idle_seconds or math.inf)
    if attached:
        with loading():
            from fathom.flows import deep_research  # noqa: F401 - so that the first run need not wait for it

        attach(worker, sys.stdin.fileno())
        _say_of_worker(f"Worker process {os.getpid()} is ready for a run.")  # how many run at once, the server has said
    else:
        _say_of_worker(f"{worker.name} takes up to {counted(limit, 'run')} at once from the pool {pool!r}.")
    serve_until_stopped(worker)


def _say_of_worker(line: str) -> None:

    if not logged(line):
        with suppress(OSError):  # the terminal of a server that was killed is gone; its runs go on
            typer.echo(f"{datetime.now(UTC):%H:%M:%S}  {line}", err=True)


def mcp(*, pool: _Pool = "", at_once: _AtOnce = 2, artifacts: Root = None) -> None:
    """Serve tools to an MCP client over standard input and output.

    The client starts this command: add `fathom mcp` as a server in the settings of Claude Desktop or another client.
    `fathom serve` offers the same tools at /mcp. The command needs the extra `mcp`.

    For Claude Code: claude mcp add fathom -- /path/to/fathom mcp

    Example: fathom mcp
    """

    from fathom.flows.server import be_patient, ensure_api

    try:
        import mcp as _package  # noqa: F401  (only whether it is installed)
    except ImportError:
        raise InvalidInput("The extra `mcp` is not installed.", next_step=installing("mcp")) from None
    be_patient()
    ensure_api()
    from fathom.interfaces.mcp.transports import serve_process
    from fathom.service.options import Options

    asyncio.run(serve_process(Options(artifact_root(artifacts), pool=pool, at_once=at_once)))


def metrics(
    port: Annotated[int, typer.Option(metavar="N", min=1, max=65_535, help="Port to listen on.")] = 9464,
    host: Annotated[
        str, typer.Option(metavar="ADDRESS", help="Address to listen on; 0.0.0.0 to serve other machines.")
    ] = "127.0.0.1",
    once: Annotated[bool, typer.Option("--once", help="Print the metrics and exit.")] = False,
    artifacts: Root = None,
) -> None:
    """Serve metrics for Prometheus at /metrics.

    The metrics come from the artifact store and, while it answers, from the Prefect API. The whole store is read at the
    start; after that, only new and unfinished runs are read.

    Example: fathom metrics --port 9464 --artifacts s3://my-bucket/fathom
    """
    from prometheus_client import CollectorRegistry, generate_latest, start_http_server

    from fathom.flows.operations.metrics import FathomCollector
    from fathom.flows.server import find_api

    try:
        problem = (
            "" if find_api() else "No Prefect server is known; set PREFECT_API_URL to include what waits in work pools."
        )
    except ServerUnreachable as error:
        problem = str(error)
    if problem:  # the metrics report it too
        typer.echo(f"fathom: {problem}", err=True)
    store = store_of(artifacts)
    registry = CollectorRegistry()
    registry.register(FathomCollector(store))
    first = generate_latest(registry)
    if once:
        typer.echo(first.decode(), nl=False)
        return
    try:
        _server, thread = start_http_server(port, host, registry)
    except OSError as error:
        how = "choose another --port or --host"
        raise InvalidInput(f"Port {port} of {host} cannot be used: {error}.", next_step=how) from error
    typer.echo(f"Metrics of {store.address()} at http://{host}:{port}/metrics", err=True)
    thread.join()

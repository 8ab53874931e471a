"""`fathom metrics`: what Prometheus scrapes."""

from __future__ import annotations

from typing import Annotated

import typer

from fathom.cli.options import Root


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

    from fathom.errors import InvalidInput, ServerUnreachable
    from fathom.flows.metrics import FathomCollector
    from fathom.flows.preflight import artifact_root
    from fathom.flows.server import find_api
    from fathom.storage.store import ArtifactStore

    try:
        problem = (
            "" if find_api() else "No Prefect server is known; set PREFECT_API_URL to include what waits in work pools."
        )
    except ServerUnreachable as error:
        problem = str(error)
    if problem:  # the metrics say it too
        typer.echo(f"fathom: {problem}", err=True)
    store = ArtifactStore(artifact_root(artifacts))
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

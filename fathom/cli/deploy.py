"""`fathom deploy`: Fathom's deployments on a Prefect server."""

from __future__ import annotations

from typing import Annotated

import typer

from fathom.cli.options import Json
from fathom.cli.printing import line, output


def deploy(
    *,
    pool: Annotated[str, typer.Option(metavar="NAME", help="Work pool whose workers run the deployments.")] = "fathom",
    as_json: Json = False,
) -> None:
    """Register Fathom's deployments on the Prefect server.

    Runs can then be started and scheduled there.

    Deployments of an earlier version are replaced. Schedules are paused until you resume them in the UI or with
    `prefect deployment schedule resume`. Start a worker to run the deployments: fathom worker --pool NAME

    Example: fathom deploy && prefect deployment run deep-research/on-demand --param query="What is a descriptor?"
    """
    import asyncio

    from fathom.flows.server import ensure_api

    server = ensure_api()
    from fathom.flows.deploying import deploy_shipped

    made = asyncio.run(deploy_shipped(pool))

    def show(_: object) -> None:
        for name, description in made.items():
            line(f"{name:<26} {description}")
        line(f"Start a worker that runs them: fathom worker --pool {pool}")
        line(f"For Prefect's own commands: export PREFECT_API_URL={server.api_url}")

    output(made, show, as_json=as_json)

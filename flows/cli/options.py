"""Arguments and options that several commands share."""

from __future__ import annotations

from typing import Annotated

import typer

MOST_COMPLETIONS = 50


def known_runs(context: typer.Context, incomplete: str) -> list[tuple[str, str]]:
    """Return the ids of the newest stored runs that begin like the word to complete, each with its question."""
    import asyncio

    from fathom.errors import FathomError
    from fathom.storage.store import ArtifactStore
    from flows.preflight import artifact_root
    from flows.runs import known

    try:
        found = asyncio.run(known(ArtifactStore(artifact_root(context.params.get("artifacts")))))
    except FathomError:  # a shell has no use for it
        return []
    digits = max(8, len(incomplete))
    newest = sorted(found, key=lambda run: str(run.get("started", "")), reverse=True)
    ids = [(str(run.get("run_id", ""))[:digits], str(run.get("query", ""))) for run in newest]
    return [(run_id, query) for run_id, query in ids if run_id.startswith(incomplete)][:MOST_COMPLETIONS]


def _use_servers(file: str | None) -> str | None:
    from fathom.config.environment import Environment

    if file:
        Environment.use_servers(file)
    return file


Mcp = Annotated[
    str | None,
    typer.Option(
        "--mcp", metavar="FILE", callback=_use_servers, help="JSON file of MCP servers, for this process. [FATHOM_MCP]"
    ),
]
Run = Annotated[
    str,
    typer.Argument(help="The run's id or its first digits, its folder, or its plan title.", autocompletion=known_runs),
]
Root = Annotated[
    str | None,
    typer.Option("--artifacts", metavar="URL", help="Where runs are stored: a folder or s3:// URL. [FATHOM_ARTIFACTS]"),
]
Corpora = Annotated[
    list[str] | None,
    typer.Option("--corpus", metavar="NAME", help="Uploaded corpus; fathom corpora list shows them; repeatable."),
]
Template = Annotated[
    str | None,
    typer.Option(
        metavar="NAME|FILE", help="Kind of research, which sets sections and more; fathom templates lists them."
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print only JSON: no progress and no notices.")]
Open = Annotated[bool, typer.Option("--open", help="Open the report's page in the browser.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print no progress and no notices.")]

"""Arguments and options that several commands share."""

from __future__ import annotations

from typing import Annotated

import typer


def _known_runs(incomplete: str) -> list[tuple[str, str]]:
    """Return the ids of stored runs that begin like the word that the shell completes, each with its question."""
    import asyncio

    from fathom.errors import FathomError
    from fathom.storage.store import ArtifactStore, runs
    from flows.preflight import artifact_root

    try:
        found = asyncio.run(runs(ArtifactStore(artifact_root())))
    except FathomError:  # a shell has no use for it
        return []
    ids = [(str(run.get("run_id", ""))[:8], str(run.get("query", ""))) for run in found]
    return [(run_id, query) for run_id, query in ids if run_id.startswith(incomplete)]


Run = Annotated[
    str,
    typer.Argument(help="The run's id or its first digits, its folder, or its plan title.", autocompletion=_known_runs),
]
Root = Annotated[
    str | None,
    typer.Option("--artifacts", metavar="URL", help="Where runs are stored: a folder or s3:// URL. [FATHOM_ARTIFACTS]"),
]
Json = Annotated[bool, typer.Option("--json", help="Print only JSON: no progress and no notices.")]
Open = Annotated[bool, typer.Option("--open", help="Open the report's page in the browser.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print no progress and no notices.")]

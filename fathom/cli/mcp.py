"""`fathom mcp`: Fathom as an MCP server for a program on this machine."""

from __future__ import annotations

from typing import Annotated

import typer

from fathom.cli.options import Root


def mcp(
    *,
    pool: Annotated[
        str, typer.Option(metavar="NAME", help="Work pool whose workers do the research (default: local processes).")
    ] = "",
    at_once: Annotated[
        int, typer.Option(metavar="N", min=1, max=64, help="Maximum concurrent runs without --pool.")
    ] = 2,
    artifacts: Root = None,
) -> None:
    """Serve tools to an MCP client over standard input and output.

    The client starts this command: add `fathom mcp` as a server in the settings of Claude Desktop or another client.
    For Claude Code: claude mcp add fathom -- /path/to/fathom mcp
    `fathom serve` offers the same tools at /mcp. Needs the extra `mcp`.

    Example: fathom mcp
    """
    import asyncio
    import sys

    from fathom.errors import InvalidInput
    from fathom.flows.preflight import artifact_root
    from fathom.flows.server import be_patient, ensure_api

    try:
        import mcp as _package  # noqa: F401  (only whether it is installed)
    except ImportError:
        raise InvalidInput(
            "The package mcp is not installed.",
            next_step=f"install it where fathom runs: {sys.executable} -m pip install 'mcp>=2.3,<3'",
        ) from None
    be_patient()
    ensure_api()
    from fathom.serve.mcp.stdio import serve
    from fathom.serve.options import Options

    asyncio.run(serve(Options(artifact_root(artifacts), pool=pool, at_once=at_once)))

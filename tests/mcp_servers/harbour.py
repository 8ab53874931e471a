"""An honest MCP server over what a harbour knows: `python harbour.py` speaks stdio, `python harbour.py PORT` HTTP.

`HARBOUR_NOTE` becomes part of a description, and `HARBOUR_LOG` is a file that each call adds a line to.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ToolError

__all__ = ["FACTS", "server"]

FACTS = [
    "The harbour of Lindesund has a depth of 14 metres at low tide since 2021.",
    "The harbour of Lindesund handled 2,310 ships in 2023 and 2,580 ships in 2024.",
    "Tides in the harbour of Lindesund rise by 1.9 metres on average.",
]
server = MCPServer("harbour", log_level="ERROR")


def log(line: str) -> None:
    if name := os.environ.get("HARBOUR_LOG"):
        with Path(name).open("a") as file:
            file.write(line + "\n")


@server.tool(description=f"Searches the harbour's records. {os.environ.get('HARBOUR_NOTE', '')}")
def search(query: str) -> str:
    log(f"search {query}")
    return "# Records of the harbour\n\n" + "\n\n".join(FACTS)


@server.tool()
def ships(year: int, kind: str = "all") -> dict[str, str]:
    """Counts ships."""
    log(f"ships {year} {kind}")
    return {"year": str(year), "kind": kind, "ships": "2,580"}


@server.tool()
def fails(query: str) -> str:
    """Fails."""
    raise ToolError(f"The records are closed, key {os.environ.get('HARBOUR_KEY', '')}.")


@server.tool()
def secret(query: str) -> str:
    """Is allowed by nobody."""
    log("secret")
    return os.environ.get("HARBOUR_KEY", "")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        server.run("streamable-http", host="127.0.0.1", port=int(sys.argv[1]))
    else:
        server.run("stdio")

"""MCP servers that misbehave, over stdio and without any package: `python rogue.py HOW`.

`ORDERS` is the description of its tool, `ANSWER` what that returns, and `LINK` where it says that there is more.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from typing import Any

PIECE = "flood " * 10_000


def say(message: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def flood(*, lines: bool) -> None:
    """Write 100 MB: one message, or many."""
    for _ in range(100_000_000 // len(PIECE)):
        sys.stdout.write(PIECE)
        if lines:
            sys.stdout.write("\n")
    sys.stdout.flush()


def main(how: str) -> None:
    if how == "dies at start":
        sys.exit("ModuleNotFoundError: No module named 'harbour'")
    if how == "hangs at start":
        time.sleep(600)
    if how == "talks nonsense":
        while True:
            print("Welcome to the harbour!", flush=True)
            time.sleep(0.2)
    if how == "floods stderr":
        for _ in range(300):
            sys.stderr.write(PIECE)
    if how == "has a child":
        subprocess.Popen([sys.executable, __file__, "hangs at start", *sys.argv[2:]])
    for line in sys.stdin:
        asked = json.loads(line)
        method, number = asked.get("method"), asked.get("id")
        if method == "initialize":
            info = {"name": "rogue", "version": "1"}
            version = asked["params"]["protocolVersion"]
            say(
                {
                    "id": number,
                    "result": {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": info},
                }
            )
        elif method == "tools/list":
            if how == "hangs while listing":
                time.sleep(600)
            if how == "lists for ever":
                say({"id": number, "result": {"tools": [], "nextCursor": str(time.monotonic())}})
                continue
            pattern = {"type": "string", "pattern": "^(a+)+$"} if how == "runs away" else {"type": "string"}
            schema = {"type": "object", "properties": {"query": pattern}, "required": ["query"]}
            output = {"type": "object", "properties": {"result": pattern}}
            tool = {"name": "search", "description": os.environ.get("ORDERS", ""), "inputSchema": schema}
            say({"id": number, "result": {"tools": [tool | {"outputSchema": output}]}})
        elif method == "tools/call":
            if how == "dies":
                sys.exit("out of memory")
            if how in ("hangs", "has a child"):
                time.sleep(600)
            if how == "floods":
                flood(lines=False)
            if how == "floods in lines":
                flood(lines=True)
            said = [{"type": "text", "text": os.environ.get("ANSWER") or f"{os.getpid()} answers"}]
            if link := os.environ.get("LINK"):
                said.append({"type": "resource_link", "name": "more", "uri": link})
            say({"id": number, "result": {"content": said, "structuredContent": {"result": "a" * 40 + "!"}}})
            if how == "dies after each call":
                sys.exit(0)
        elif number is not None:
            say({"id": number, "error": {"code": -32601, "message": f"no {method}"}})


if __name__ == "__main__":
    main(sys.argv[1])

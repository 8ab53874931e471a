"""Run the stubs as a process of their own, which outlives a client that is killed."""

from __future__ import annotations

import argparse
import asyncio
import json
import signal
from dataclasses import asdict
from pathlib import Path

from tests.stubs.server import Stubs
from tests.stubs.settings import Settings


async def _serve(stubs: Stubs, port_file: Path) -> None:
    stop = asyncio.Event()
    for name in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(name, stop.set)
    async with stubs:
        # Renamed into place: whoever waits for the file never reads half of it.
        partial = port_file.with_name(f"{port_file.name}.part")
        partial.write_text(stubs.url.rpartition(":")[2])
        partial.rename(port_file)
        await stop.wait()


def _set(text: str) -> set[str]:
    return set(text.split(","))


def main() -> None:
    """Parse the options, one for each field of `Settings`, and serve until told to stop."""
    parser = argparse.ArgumentParser(prog="python -m tests.stubs", description=__doc__)
    parser.add_argument("--port-file", type=Path, required=True, help="where the port is written once it is open")
    parser.add_argument("--log", type=Path, help="JSON lines: one when a request starts, one when it is answered")
    parser.add_argument("--port", type=int, default=0)
    for name, default in asdict(Settings()).items():
        kind = _set if isinstance(default, set) else json.loads if isinstance(default, dict | None) else type(default)
        parser.add_argument(f"--{name.replace('_', '-')}", type=kind, default=default)
    options = vars(parser.parse_args())
    port_file, log, port = options.pop("port_file"), options.pop("log"), options.pop("port")
    asyncio.run(_serve(Stubs(Settings(**options), log, port), port_file))


if __name__ == "__main__":
    main()

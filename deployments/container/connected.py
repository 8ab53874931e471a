"""Exit with 0 if this container has an open connection to its server, else with 1: what tells that it works.

A worker asks the Prefect API every few seconds, and Prefect's background services hold connections to the database, but
neither listens anywhere. It is the port of PREFECT_API_URL unless another one is given. Linux only.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from time import monotonic, sleep
from urllib.parse import urlsplit

ESTABLISHED = "01"
SECONDS = 6  # connections are closed and opened again


def ports() -> Iterator[int]:
    """Yield the remote port of every open connection."""
    for table in (Path("/proc/net/tcp"), Path("/proc/net/tcp6")):
        for line in table.read_text(encoding="ascii").splitlines()[1:] if table.exists() else []:
            _slot, _local, remote, state, *_rest = line.split()
            if state == ESTABLISHED:
                yield int(remote.rpartition(":")[2], 16)


def main() -> int:
    """Look for a while for a connection."""
    api = urlsplit(os.environ.get("PREFECT_API_URL", "http://127.0.0.1:4200/api"))
    port = int(sys.argv[1]) if len(sys.argv) > 1 else api.port or {"https": 443}.get(api.scheme, 80)
    deadline = monotonic() + SECONDS
    while monotonic() < deadline:
        if port in ports():
            return 0
        sleep(0.2)
    sys.stderr.write(f"no connection to port {port}\n")
    return 1


if __name__ == "__main__":
    sys.exit(main())
